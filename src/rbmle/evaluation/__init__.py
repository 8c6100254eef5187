"""Off-policy evaluation: estimators, intervals and confidence sequences for policies on logs of others.

Names are loaded when they are first used: the service uses some of these modules without PyArrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbmle.evaluation.conservative import ConservativeBandit as ConservativeBandit
    from rbmle.evaluation.evaluation import evaluate as evaluate
    from rbmle.evaluation.evaluation import warm_start as warm_start
    from rbmle.evaluation.logs import TableLog as TableLog
    from rbmle.evaluation.logs import from_bandit_feedback as from_bandit_feedback
    from rbmle.evaluation.logs import open_log as open_log
    from rbmle.evaluation.logs import to_bandit_feedback as to_bandit_feedback
    from rbmle.evaluation.logs import write_log as write_log
    from rbmle.evaluation.results import Estimate as Estimate
    from rbmle.evaluation.results import Evaluation as Evaluation
    from rbmle.evaluation.results import EvaluationWarning as EvaluationWarning
    from rbmle.evaluation.results import LogFileError as LogFileError
    from rbmle.evaluation.rounds import Rounds as Rounds
    from rbmle.evaluation.sequences import ValueSequence as ValueSequence

_NAMES = {
    "conservative": "ConservativeBandit",
    "evaluation": "evaluate warm_start",
    "logs": "TableLog from_bandit_feedback open_log to_bandit_feedback write_log",
    "results": "Estimate Evaluation EvaluationWarning LogFileError",
    "rounds": "Rounds",
    "sequences": "ValueSequence",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)  # noqa: PLE0605  # strings, all of them


def __getattr__(name: str) -> Any:
    """Load a name; raise AttributeError if there is none."""
    if name not in _HOMES:
        raise AttributeError(f"rbmle.evaluation has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"rbmle.evaluation.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
