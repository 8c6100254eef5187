"""What was played, the baseline, uniform play and other policies would have earned in some time of a log."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.core.policy import Policy
from rbmle.evaluation import EvaluationWarning, LogFileError, evaluate
from rbmle.evaluation.overlap import overlap_warnings
from rbmle.evaluation.rounds import Rounds
from rbmle.policies.specification import name_of
from rbmle.service.evaluations.series import Series
from rbmle.service.exports.logged import ServiceLog
from rbmle.service.learning.model import service_policy, settings_in
from rbmle.service.log.base import Log
from rbmle.service.log.records import EvaluationAsked, NamedPolicy, PolicyEstimate
from rbmle.service.statistics.estimates import snips
from rbmle.service.statistics.weights import weights_of

TRIED = ("neural-rbmle-pc", "neural-rbmle-ga", "neural-ucb")  # which any service can apply
ONLINE, BASELINE, RANDOM = "Online", "Baseline", "Random"
CUSTOM, EXPERIMENT = "Custom", "OfflineExperimentation"

Step = Callable[[], None]  # is called now and then


def judged(log: Log, asked: EvaluationAsked, step: Step) -> list[PolicyEstimate]:
    """Return what each policy would have earned; raise LogFileError if there is nothing to judge on."""
    found = _series(log_of(log, asked), step)
    estimates = [_estimate(source, series) for source, series in found.items()]
    tried = [_tried(name) for name in TRIED] if asked.is_optimizing else []
    known = {policy.name for policy in asked.policies}
    for source, policies in (
        (CUSTOM, asked.policies),
        (EXPERIMENT, [policy for policy in tried if policy.name not in known]),
    ):
        for policy in policies:
            estimates.append(_judged(log_of(log, asked), policy, source, step))
    return estimates


def log_of(log: Log, asked: EvaluationAsked) -> ServiceLog:
    """Return the decisions of the time that is asked for."""
    return ServiceLog(log, "the log of the service", asked.start, asked.end)


def _series(log: ServiceLog, step: Step) -> dict[str, Series]:
    """Return the sums of what needs no policy."""
    found = {source: Series() for source in (ONLINE, BASELINE, RANDOM)}
    is_settled = False
    for row in log.rows():
        step()
        if row.final_reward is None:
            continue
        is_settled, time, weights = True, row.stored.row.time, weights_of(row.play)
        found[ONLINE].at(time).add(1.0, row.final_reward)
        for source, weight in ((BASELINE, weights.baseline), (RANDOM, weights.uniform)):
            value = None if weight is None else weight.weight
            found[source].at(time).add(value, row.final_reward)
    if not is_settled:
        raise LogFileError(
            "no decision of this time is settled; give another time, or wait until its events are settled"
        )
    return found


def _estimate(source: str, series: Series) -> PolicyEstimate:
    sums = series.total()
    found = snips(sums)
    doubts = overlap_warnings(source, sums) if sums.w else [f"{source}: {found.problem}"]
    ends = found.low, found.high
    return _found(NamedPolicy(name=source), source, series, found.value, ends, doubts)


def _judged(log: ServiceLog, policy: NamedPolicy, source: str, step: Step) -> PolicyEstimate:
    """Return what a policy would have earned that learns as the log goes on."""
    series = Series()

    def watch(name: str, rounds: Rounds, weights: Float[np.ndarray, " rounds"]) -> None:
        assert rounds.times is not None
        series.add_all(rounds.times, weights, rounds.rewards)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # they go into the estimate
        found = evaluate(
            log,
            {policy.name: policy_of(policy)},
            estimators="snips",
            interval="normal",
            step=lambda *_: step(),
            watch=watch,
        )
    (one,) = found.estimates
    return _found(policy, source, series, one.value, (one.low, one.high), found.warnings)


def _found(
    policy: NamedPolicy,
    source: str,
    series: Series,
    value: float | None,
    ends: tuple[float | None, float | None],
    doubts: list[str],
) -> PolicyEstimate:
    """Return an estimate with the interval around it, and its windows."""
    sums, (low, high) = series.total(), ends
    return PolicyEstimate(
        name=policy.name,
        arguments=policy.arguments,
        source=source,
        ips_numerator=sums.wr,
        ips_denominator=float(sums.plays),
        snips_denominator=sums.w,
        average_reward=value,
        half_width=None if low is None or high is None else (high - low) / 2,
        warnings=doubts,
        minutes=series.minutes,
        windows=dict(sorted(series.windows.items())),
    )


def policy_of(policy: NamedPolicy) -> Policy[Any]:
    """Return a policy by the first word of its name, and its settings; raise SettingError if it has none."""
    name, _, _ = policy.name.partition(" ")
    return service_policy(name, policy.arguments)


def _tried(name: str) -> NamedPolicy:
    policy = service_policy(name)
    return NamedPolicy(name=name_of(policy), arguments=settings_in(policy))
