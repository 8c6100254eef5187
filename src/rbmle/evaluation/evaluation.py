"""Judge policies on a log, or let a bandit learn from one."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from rbmle.core.bandit import Bandit
from rbmle.core.types import Encoding
from rbmle.evaluation.estimators import Judged, OfferedArms, estimators_of
from rbmle.evaluation.features import Featuriser, Hashed, Vectors
from rbmle.evaluation.judge import EvaluationSettings, Judge, Watch, survey
from rbmle.evaluation.logs import DecisionLog, LogReading, TableLog, open_log
from rbmle.evaluation.logs.files import ParquetLog, SpooledLog
from rbmle.evaluation.logs.lines import objects
from rbmle.evaluation.propensities import ArmShares, ContextPropensities, Propensities
from rbmle.evaluation.results import Evaluation, EvaluationWarning, LogFileError
from rbmle.evaluation.rounds import COLUMNS, LOGGED, Offer, Rounds, rounds_of
from rbmle.evaluation.sequences import ValueSequence
from rbmle.evaluation.targets import BASELINE, BaselineTarget, RewardModel
from rbmle.policies.registry import policy_from

Step = Callable[[str, int, int | None], object]  # the stage, rounds so far, and rounds in all


def _unseen(what: str, done: int, of: int | None) -> None:
    """Report no progress."""


def evaluate(
    log: DecisionLog | str | Any,
    policies: Mapping[str, Any] | Sequence[Any] | str,
    *,
    estimators: str = "all",
    skips_bad: bool = False,
    step: Step = _unseen,
    watch: Watch | None = None,
    **settings: Any,
) -> Evaluation:
    """Estimate what policies would have earned on a log that another policy wrote.

    Doubts about the estimates are in `Evaluation.warnings`, and are issued as EvaluationWarning too.

    Parameters
    ----------
    log
        What `open_log` returns, a path, or a data frame or table with the columns of a log.
    policies
        One or several, or a dictionary by name. Each is a name such as "lin-ucb:exploration=0.1", a `Policy`, a
        `Bandit` (which does not learn from the log), a function that returns the probabilities of all arms of
        some `Rounds`, or "baseline" for the baseline actions that exports of the service have.
    estimators
        Names separated by commas, or "all".
    skips_bad
        Leave bad rows out instead of raising LogFileError.
    step
        Called with the stage, the rounds so far and the rounds in all.
    watch
        Called with the name of each policy, the rounds that it was judged on (with their times), and its
        weights there.
    settings
        The other settings are those of `EvaluationSettings`.

    """
    how = EvaluationSettings(estimators=estimators_of(estimators), **settings)
    opened, targets = as_log(log), _name_policies(policies)
    if isinstance(opened, ParquetLog | TableLog):  # they read a few columns quickly
        result = _evaluate(opened, targets, how, skips_bad, step, watch)
    else:
        columns = (*COLUMNS, *LOGGED, *(() if watch is None else ("time",)))
        with SpooledLog(opened, columns) as spooled:
            result = _evaluate(spooled, targets, how, skips_bad, step, watch)
    for message in result.warnings:
        warnings.warn(message, EvaluationWarning, stacklevel=2)
    return result


def _evaluate(
    opened: DecisionLog,
    targets: Mapping[str, Any],
    settings: EvaluationSettings,
    skips_bad: bool,
    step: Step,
    watch: Watch | None,
) -> Evaluation:
    log_survey = survey(
        opened,
        LogReading(skips_bad=skips_bad),
        settings.default_reward,
        lambda rows: step("reading", rows, None),
    )
    if not log_survey.baselines and any(
        isinstance(target, BaselineTarget) for target in targets.values()
    ):
        raise LogFileError(
            f"{opened.name} has no baseline actions, so `baseline` cannot be judged on it; give a log with "
            "the column `baseline`, as Parquet files of rbmle log export, or the folder of the service"
        )
    read = partial(rounds_of, opened, default_reward=settings.default_reward)
    propensities: Propensities = ArmShares(shares={})
    if log_survey.unknown and settings.propensities == "contexts":
        propensities = ContextPropensities.fit(
            lambda: read(LogReading(skips_bad=skips_bad), has_contexts=True),
            log_survey.rows,
            lambda done: step("estimating propensities", done, None),
        )
    elif log_survey.unknown:
        propensities = ArmShares.fit(read(LogReading(skips_bad=skips_bad), has_contexts=False))
    judge, reading = (
        Judge(targets, log_survey, propensities, settings, watch),
        LogReading(skips_bad=skips_bad),
    )
    for rounds in read(
        reading, has_contexts=judge.has_contexts, has_times=watch is not None, has_logged=True
    ):
        judge.add(rounds)
        step("judging", judge.seen, log_survey.rows)
    if not judge.seen:
        raise LogFileError(f"{opened.name} has no decision with an arm and a reward")
    return judge.evaluation(reading)


def as_log(log: Any) -> DecisionLog:
    """Return a log, opening a path or wrapping a table if needed."""
    if hasattr(log, "batches"):
        return log
    if isinstance(log, str) or hasattr(log, "__fspath__"):
        return open_log(log)
    return TableLog(log)


def _name_policies(policies: Mapping[str, Any] | Sequence[Any] | str) -> dict[str, Any]:
    if isinstance(policies, str) or not isinstance(policies, Mapping | Sequence):
        policies = [policies]
    if not isinstance(policies, Mapping):
        policies = {
            policy if isinstance(policy, str) else _name(policy): policy for policy in policies
        }
    return {name: _policy(policy) for name, policy in policies.items()}


def _policy(policy: Any) -> Any:
    """Return the target or policy of a name; anything but a name or a class stays as it is."""
    if isinstance(policy, str) and policy == BASELINE:
        return BaselineTarget()
    return policy_from(policy) if isinstance(policy, str | type) else policy


def _name(policy: Any) -> str:
    return getattr(policy, "__name__", None) or type(policy).__name__


def warm_start(
    bandit: Bandit, log: Any, *, skips_bad: bool = False, default_reward: float = 0.0
) -> int:
    """Let a bandit learn all decisions of a log with `Bandit.partial_fit`, and return how many.

    Propensities are not needed: a reward model may learn from any arm that was played. With contexts per arm,
    the bandit sees (context, features of the arm); otherwise the context alone, and unknown arms are added.
    """
    learned = 0
    reading = LogReading(skips_bad=skips_bad)
    for rounds in rounds_of(as_log(log), reading, has_contexts=True, default_reward=default_reward):
        arms = [
            rounds.offers[k].ids[place]
            for k, place in zip(rounds.offered.tolist(), rounds.played.tolist(), strict=True)
        ]
        if bandit.encoding is Encoding.DISJOINT and bandit.arms is not None:
            for arm in dict.fromkeys(arms):
                if arm not in bandit.arms.ids:
                    bandit.add_arm(arm)
        bandit.partial_fit(_observed_features(bandit, rounds), arms, rounds.rewards)
        learned += len(rounds)
    return learned


def _observed_features(bandit: Bandit, rounds: Rounds) -> Any:
    assert rounds.contexts is not None
    contexts = [msgspec.json.decode(text) for text in rounds.contexts.to_pylist()]
    if bandit.encoding is Encoding.PER_ARM:
        features = {k: rounds.offers[k].features for k in set(rounds.offered.tolist())}
        pairs = zip(contexts, rounds.offered.tolist(), rounds.played.tolist(), strict=True)
        return [
            (objects(x), objects(msgspec.json.decode(features[k][place]))) for x, k, place in pairs
        ]
    if isinstance(contexts[0], list) and contexts[0] and isinstance(contexts[0][0], dict):
        return [{name: part for item in x for name, part in item.items()} for x in contexts]
    return contexts if isinstance(contexts[0], dict) else np.array(contexts, float)


def warm_up() -> None:
    """Learn two rounds whose contexts are arrays, and two whose contexts are dictionaries."""
    _learn(Vectors(features=2), "[0.5, 1.0]")
    _learn(Hashed(), '{"age": 31}')
    _bet()


def _bet() -> None:
    ones, arms = np.ones(2), np.full(4, 0.5)
    offered = OfferedArms(np.full(2, 2), np.array([0, 2]), arms, arms, arms)
    for name in ("ips", "dr"):
        ValueSequence(name, 0.0, 1.0).add(Judged(ones, ones, ones, ones, ones > 0, offered))


def _learn(featuriser: Featuriser, context: str) -> None:
    rounds = Rounds(
        numbers=np.arange(2),
        contexts=pa.array([context] * 2),
        offers=[Offer(ids=("a", "b"), text='["a", "b"]')],
        offered=np.zeros(2, np.int64),
        sizes=np.full(2, 2),
        played=np.arange(2),
        propensities=np.full(2, 0.5),
        rewards=np.ones(2),
    )
    RewardModel(featuriser, low=0.0, high=1.0).predict_then_learn(rounds, featuriser.rows(rounds))
