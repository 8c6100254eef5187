"""Judging a policy on logs that it did not write: estimators, intervals and confidence sequences."""

from rbmle.evaluation.errors import LogFileError
from rbmle.evaluation.logs import (
    TableLog,
    from_bandit_feedback,
    open_log,
    to_bandit_feedback,
    write_log,
)

__all__ = [
    "LogFileError",
    "TableLog",
    "from_bandit_feedback",
    "open_log",
    "to_bandit_feedback",
    "write_log",
]
