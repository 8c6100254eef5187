"""Judging a policy on logs that it did not write: estimators, intervals and confidence sequences."""

from rbmle.evaluation.errors import EvaluationWarning, LogFileError
from rbmle.evaluation.evaluation import evaluate
from rbmle.evaluation.logs import (
    TableLog,
    from_bandit_feedback,
    open_log,
    to_bandit_feedback,
    write_log,
)
from rbmle.evaluation.results import Estimate, Evaluation
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.sequences import ValueSequence
from rbmle.evaluation.warm_start import warm_start

__all__ = [
    "Estimate",
    "Evaluation",
    "EvaluationWarning",
    "LogFileError",
    "Rounds",
    "TableLog",
    "ValueSequence",
    "evaluate",
    "from_bandit_feedback",
    "open_log",
    "to_bandit_feedback",
    "warm_start",
    "write_log",
]
