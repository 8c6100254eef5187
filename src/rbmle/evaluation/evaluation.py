"""A log, policies, and what each of them would have earned."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rbmle.evaluation.context_propensities import ContextPropensities
from rbmle.evaluation.errors import EvaluationWarning, LogFileError
from rbmle.evaluation.estimators import estimators_of
from rbmle.evaluation.judge import Judge, Watch
from rbmle.evaluation.logs import Log, Reading, TableLog, open_log
from rbmle.evaluation.propensities import ArmShares, Propensities
from rbmle.evaluation.results import Evaluation
from rbmle.evaluation.rounds import rounds_of
from rbmle.evaluation.settings import Settings
from rbmle.evaluation.survey import survey
from rbmle.evaluation.targets import BASELINE, BaselineTarget
from rbmle.policies.specification import policy_from

Step = Callable[[str, int, int | None], object]  # what is done, rounds so far, and of how many


def _unseen(what: str, done: int, of: int | None) -> None:
    """Show nobody how far it is."""


def evaluate(
    log: Log | str | Any,
    policies: Mapping[str, Any] | Sequence[Any] | str,
    *,
    estimators: str = "all",
    skips_bad: bool = False,
    step: Step = _unseen,
    watch: Watch | None = None,
    **settings: Any,
) -> Evaluation:
    """Return what policies would have earned on a log that they did not write.

    A policy is a name such as "lin-ucb:exploration=0.1", a `Policy`, a `Bandit`, which stays as it is, a
    function that returns the probabilities of all arms of some `Rounds`, or "baseline", for the baseline
    actions of a log that has them, as exports of the service do. A log is what `open_log` returns,
    a path, a data frame or a table with its columns. Other settings are those of `Settings`. What is
    doubtful is told by an EvaluationWarning, too. `watch` is given the name of each policy with rounds that
    it was judged on, their times among them, and its weights there.
    """
    how = Settings(estimators=estimators_of(estimators), **settings)
    opened = as_log(log)
    given = _named(policies)
    found = survey(
        opened,
        Reading(skips_bad=skips_bad),
        how.default_reward,
        lambda rows: step("reading", rows, None),
    )
    if not found.baselines and any(isinstance(one, BaselineTarget) for one in given.values()):
        raise LogFileError(
            f"{opened.name} has no baseline actions, so `baseline` cannot be judged on it; give a log with "
            "the column `baseline`, as Parquet files of rbmle log export, or the folder of the service"
        )
    read = partial(rounds_of, opened, default_reward=how.default_reward)
    propensities: Propensities = ArmShares(shares={})
    if found.unknown and how.propensities == "contexts":
        propensities = ContextPropensities.learned(
            lambda: read(Reading(skips_bad=skips_bad), has_contexts=True),
            found.rows,
            lambda done: step("estimating propensities", done, None),
        )
    elif found.unknown:
        propensities = ArmShares.counted(read(Reading(skips_bad=skips_bad), has_contexts=False))
    judge, reading = Judge(given, found, propensities, how, watch), Reading(skips_bad=skips_bad)
    for rounds in read(
        reading, has_contexts=judge.has_contexts, has_times=watch is not None, has_logged=True
    ):
        judge.add(rounds)
        step("judging", judge.seen, found.rows)
    if not judge.seen:
        raise LogFileError(f"{opened.name} has no decision with an arm and a reward")
    result = judge.evaluation(reading)
    for message in result.warnings:
        warnings.warn(message, EvaluationWarning, stacklevel=2)
    return result


def as_log(given: Any) -> Log:
    """Return a log, or what is given as one."""
    if hasattr(given, "batches"):
        return given
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        return open_log(given)
    return TableLog(given)


def _named(policies: Mapping[str, Any] | Sequence[Any] | str) -> dict[str, Any]:
    """Return policies by the names that estimates have."""
    if isinstance(policies, str) or not isinstance(policies, Mapping | Sequence):
        policies = [policies]
    if not isinstance(policies, Mapping):
        policies = {one if isinstance(one, str) else _name(one): one for one in policies}
    return {name: _policy(one) for name, one in policies.items()}


def _policy(given: Any) -> Any:
    """Return what a name means; what is given otherwise stays as it is."""
    if isinstance(given, str) and given == BASELINE:
        return BaselineTarget()
    return policy_from(given) if isinstance(given, str | type) else given


def _name(given: Any) -> str:
    return getattr(given, "__name__", None) or type(given).__name__
