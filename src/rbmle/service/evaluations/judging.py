"""What was played, the baseline, uniform play and other policies would have earned in some time of a log."""

import warnings
from collections.abc import Callable
from typing import Any

from rbmle.core.policy import Policy
from rbmle.evaluation import EvaluationWarning, LogFileError, evaluate
from rbmle.evaluation.overlap import overlap_warnings
from rbmle.evaluation.weight_sums import WeightSums
from rbmle.policies.specification import name_of, policy_with, settings_of
from rbmle.service.exports.logged import ServiceLog
from rbmle.service.learning.model import bounded
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
    found = _sums(log_of(log, asked), step)
    estimates = [_estimate(source, sums) for source, sums in found.items()]
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


def _sums(log: ServiceLog, step: Step) -> dict[str, WeightSums]:
    """Return the sums of what needs no policy."""
    found = {source: WeightSums() for source in (ONLINE, BASELINE, RANDOM)}
    for row in log.rows():
        step()
        if row.final_reward is None:
            continue
        weights = weights_of(row.play)
        found[ONLINE].add(1.0, row.final_reward)
        for source, weight in ((BASELINE, weights.baseline), (RANDOM, weights.uniform)):
            found[source].add(None if weight is None else weight.weight, row.final_reward)
    if not found[ONLINE].plays:
        raise LogFileError(
            "no decision of this time is settled; give another time, or wait until its events are settled"
        )
    return found


def _estimate(source: str, sums: WeightSums) -> PolicyEstimate:
    found = snips(sums)
    half = None if found.low is None or found.high is None else (found.high - found.low) / 2
    return PolicyEstimate(
        name=source,
        arguments="",
        source=source,
        ips_numerator=sums.wr,
        ips_denominator=float(sums.plays),
        snips_denominator=sums.w,
        average_reward=found.value,
        half_width=half,
        warnings=overlap_warnings(source, sums) if sums.w else [f"{source}: {found.problem}"],
    )


def _judged(log: ServiceLog, policy: NamedPolicy, source: str, step: Step) -> PolicyEstimate:
    """Return what a policy would have earned that learns as the log goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # they go into the estimate
        found = evaluate(
            log,
            {policy.name: policy_of(policy)},
            estimators="ips,snips",
            interval="normal",
            step=lambda *_: step(),
        )
    ips, snips = found[policy.name, "ips"], found[policy.name, "snips"]
    total = ips.n * (ips.value or 0.0)  # Σ w r
    half = None if snips.low is None or snips.high is None else (snips.high - snips.low) / 2
    return PolicyEstimate(
        name=policy.name,
        arguments=policy.arguments,
        source=source,
        ips_numerator=total,
        ips_denominator=float(ips.n),
        snips_denominator=total / snips.value if snips.value else float(ips.n),
        average_reward=snips.value,
        half_width=half,
        warnings=found.warnings,
    )


def policy_of(policy: NamedPolicy) -> Policy[Any]:
    """Return a policy by the first word of its name, and its settings; raise SettingError if it has none."""
    name, _, _ = policy.name.partition(" ")
    return bounded(policy_with(name, policy.arguments))


def _tried(name: str) -> NamedPolicy:
    policy = bounded(policy_with(name, ""))
    return NamedPolicy(name=name_of(policy), arguments=settings_of(policy))
