"""Judging a policy on logs that it did not write: estimators, intervals and confidence sequences.

Names are loaded when they are first used: the service counts by some of these modules, and needs no PyArrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbmle.evaluation.errors import EvaluationWarning as EvaluationWarning
    from rbmle.evaluation.errors import LogFileError as LogFileError
    from rbmle.evaluation.evaluation import evaluate as evaluate
    from rbmle.evaluation.logs import TableLog as TableLog
    from rbmle.evaluation.logs import from_bandit_feedback as from_bandit_feedback
    from rbmle.evaluation.logs import open_log as open_log
    from rbmle.evaluation.logs import to_bandit_feedback as to_bandit_feedback
    from rbmle.evaluation.logs import write_log as write_log
    from rbmle.evaluation.results import Estimate as Estimate
    from rbmle.evaluation.results import Evaluation as Evaluation
    from rbmle.evaluation.rounds import Rounds as Rounds
    from rbmle.evaluation.sequences import ValueSequence as ValueSequence
    from rbmle.evaluation.warm_starting import warm_start as warm_start

_HOMES = {
    "Estimate": "results",
    "Evaluation": "results",
    "EvaluationWarning": "errors",
    "LogFileError": "errors",
    "Rounds": "rounds",
    "TableLog": "logs",
    "ValueSequence": "sequences",
    "evaluate": "evaluation",
    "from_bandit_feedback": "logs",
    "open_log": "logs",
    "to_bandit_feedback": "logs",
    "warm_start": "warm_starting",
    "write_log": "logs",
}
__all__ = [*_HOMES]  # noqa: PLE0604  # strings, all of them


def __getattr__(name: str) -> Any:
    """Load a name; raise AttributeError if there is none."""
    if name not in _HOMES:
        raise AttributeError(f"rbmle.evaluation has no {name!r}; it has {', '.join(_HOMES)}")
    return getattr(import_module(f"rbmle.evaluation.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
