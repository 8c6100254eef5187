"""Evaluations that a client requests: what policies would have earned, and which features matter.

Feature importance: a ridge regression of the reward on the features of the context, of the chosen action and
their products, hashed as the service hashes them, is fitted to a random half of the decisions. In the other
half

    score = (E′ − E) / Var(r),

where E is the mean squared error of its predictions, and E′ that with the values of one feature permuted
between decisions (Breiman 2001; Fisher, Rudin and Dominici 2019). It is 0 for a feature that the model does not
use, and at most 2. Two features with the same information share it.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsqr

from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation import EvaluationWarning, LogFileError, evaluate
from rbmle.evaluation.judge import overlap_warnings
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.sums import WeightSums
from rbmle.features import Hashing
from rbmle.features.hashing import with_prefix
from rbmle.policies.registry import name_of
from rbmle.service.exports.export import ServiceLog
from rbmle.service.exports.rows import ExportRow
from rbmle.service.log.base import Log
from rbmle.service.log.records import (
    EvaluationAsked,
    FeatureScore,
    NamedPolicy,
    PolicyEstimate,
    unpack_features,
)
from rbmle.service.model.settings import service_policy, settings_in
from rbmle.service.statistics.estimates import snips_estimate, weigh_play
from rbmle.service.statistics.ranges import MINUTE, lengthen

MOST_WINDOWS = 96
LENGTHS = (5, 60, 360, 720, 1440)  # minutes, those of Personalizer; then 2, 4, 8, … days

TRIED = ("neural-rbmle-pc", "neural-rbmle-ga", "neural-ucb")  # policies for every service
ONLINE, BASELINE, RANDOM = "Online", "Baseline", "Random"
CUSTOM, EXPERIMENT = "Custom", "OfflineExperimentation"

BITS = 14
MOST_DECISIONS = 20_000  # the last ones
MOST_FEATURES = 100  # the most frequent ones
FEWEST = 20  # decisions
DAMPING = 1.0  # √λ
SHUFFLES = 3
CONTEXT, ACTION = "context", "action"  # namespaces of features that have none


class Windows:
    """Windows of five minutes, or of an hour, six, … if there would be too many.

    The number of a window is the time of its decisions divided by its length.
    """

    def __init__(self) -> None:
        self.minutes = LENGTHS[0]
        self.windows: dict[int, WeightSums] = {}

    def at(self, time: int) -> WeightSums:
        """Return the sums of a time in milliseconds, to add to."""
        if time // (self.minutes * MINUTE) not in self.windows:
            self.windows, self.minutes = lengthen(
                self.windows, self.minutes, time, MOST_WINDOWS, _longer
            )
        return self.windows.setdefault(time // (self.minutes * MINUTE), WeightSums())

    def add_all(
        self,
        times: Int[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
        rewards: Float[np.ndarray, " rounds"],
    ) -> None:
        """Count some rounds."""
        for time in (int(times.min()), int(times.max())):
            self.at(time)
        numbers = times // (self.minutes * MINUTE)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self.at(number * self.minutes * MINUTE).add_all(weights[here], rewards[here])

    def total(self) -> WeightSums:
        total = WeightSums()
        for sums in self.windows.values():
            total = total.merged(sums)
        return total


def _longer(minutes: int) -> int:
    return next((length for length in LENGTHS if length > minutes), 2 * minutes)


Step = Callable[[], None]  # called now and then


def judge_policies(log: Log, asked: EvaluationAsked, step: Step) -> list[PolicyEstimate]:
    """Return what each policy would have earned; raise LogFileError if no decision is settled."""
    references = _sum_references(log_of(log, asked), step)
    estimates = [_estimate(source, windows) for source, windows in references.items()]
    tried = [_default_policy(name) for name in TRIED] if asked.is_optimizing else []
    known = {policy.name for policy in asked.policies}
    for source, policies in (
        (CUSTOM, asked.policies),
        (EXPERIMENT, [policy for policy in tried if policy.name not in known]),
    ):
        for policy in policies:
            estimates.append(_judge_policy(log_of(log, asked), policy, source, step))
    return estimates


def log_of(log: Log, asked: EvaluationAsked) -> ServiceLog:
    return ServiceLog(log, "the log of the service", asked.start, asked.end)


def _sum_references(log: ServiceLog, step: Step) -> dict[str, Windows]:
    """Return the sums for what was played, for the baseline and for uniform play."""
    references = {source: Windows() for source in (ONLINE, BASELINE, RANDOM)}
    is_settled = False
    for row in log.rows():
        step()
        if row.final_reward is None:
            continue
        is_settled, time, weights = True, row.stored.row.time, weigh_play(row.play)
        references[ONLINE].at(time).add(1.0, row.final_reward)
        for source, weight in ((BASELINE, weights.baseline), (RANDOM, weights.uniform)):
            value = None if weight is None else weight.weight
            references[source].at(time).add(value, row.final_reward)
    if not is_settled:
        raise LogFileError(
            "no decision of this time is settled; give another time, or wait until its events are settled"
        )
    return references


def _estimate(source: str, windows: Windows) -> PolicyEstimate:
    sums = windows.total()
    mean = snips_estimate(sums)
    doubts = overlap_warnings(source, sums) if sums.w else [f"{source}: {mean.problem}"]
    ends = mean.low, mean.high
    return _to_estimate(NamedPolicy(name=source), source, windows, mean.value, ends, doubts)


def _judge_policy(log: ServiceLog, policy: NamedPolicy, source: str, step: Step) -> PolicyEstimate:
    """Return what a policy would have earned that learns from the log as it goes on."""
    windows = Windows()

    def watch(name: str, rounds: Rounds, weights: Float[np.ndarray, " rounds"]) -> None:
        assert rounds.times is not None
        windows.add_all(rounds.times, weights, rounds.rewards)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # they go into the estimate
        results = evaluate(
            log,
            {policy.name: policy_of(policy)},
            estimators="snips",
            interval="normal",
            step=lambda *_: step(),
            watch=watch,
        )
    (mean,) = results.estimates
    ends = mean.low, mean.high
    return _to_estimate(policy, source, windows, mean.value, ends, results.warnings)


def _to_estimate(
    policy: NamedPolicy,
    source: str,
    windows: Windows,
    value: float | None,
    ends: tuple[float | None, float | None],
    doubts: list[str],
) -> PolicyEstimate:
    sums, (low, high) = windows.total(), ends
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
        minutes=windows.minutes,
        windows=dict(sorted(windows.windows.items())),
    )


def policy_of(policy: NamedPolicy) -> Policy[Any]:
    """Return the policy that the first word of the name says, with its settings; raise SettingError."""
    name, _, _ = policy.name.partition(" ")
    return service_policy(name, policy.arguments)


def _default_policy(name: str) -> NamedPolicy:
    policy = service_policy(name)
    return NamedPolicy(name=name_of(policy), arguments=settings_in(policy))


Features = dict[str, dict[str, Any]]  # by namespace and name


class ScoredDecision(NamedTuple):
    """The features of the context and of the chosen action of a decision, and its reward."""

    context: Features
    action: Features
    id: str
    reward: float


def score_features(log: Log, asked: EvaluationAsked, step: Step) -> list[FeatureScore]:
    """Return how much each feature matters, the most important first.

    Raise LogFileError if there are too few decisions.
    """
    rounds: list[ScoredDecision] = []
    for row in log_of(log, asked).rows():
        step()
        if row.final_reward is not None:
            rounds.append(_round(row, row.final_reward))
            del rounds[: -2 * MOST_DECISIONS]
    rounds = rounds[-MOST_DECISIONS:]
    if len(rounds) < FEWEST:
        raise LogFileError(
            f"{len(rounds)} decisions of this time are settled, but {FEWEST} are needed; give another time"
        )
    rounds = _scale(rounds)
    order = generator(0, Purpose.EVALUATE, "halves").permutation(len(rounds)).tolist()
    fitting, tested = [rounds[at] for at in order[::2]], [rounds[at] for at in order[1::2]]
    theta = lsqr(_matrix(fitting), _rewards(fitting), damp=DAMPING)[0]
    r = _rewards(tested)
    error = _error(theta, tested, r)
    scale = max(float(r.var()), 1e-12)
    scores = []
    for place, (namespace, name) in enumerate(_names(tested)):
        errors = []
        for shuffle in range(SHUFFLES):
            step()
            rng = generator(0, Purpose.EVALUATE, f"shuffle-{place}-{shuffle}")
            shuffled = _shuffle(tested, namespace, name, rng)
            errors.append(_error(theta, shuffled, r))
        score = (sum(errors) / SHUFFLES - error) / scale
        scores.append(FeatureScore(namespace=namespace, name=name, score=score))
    return sorted(scores, key=lambda feature: -feature.score)


def _round(row: ExportRow, reward: float) -> ScoredDecision:
    shared = [*unpack_features(row.decided.context), *unpack_features(row.play.features)]
    chosen = row.decided.actions[row.play.chosen]
    return ScoredDecision(
        _by_namespace(shared, CONTEXT),
        _by_namespace(unpack_features(chosen.features), ACTION),
        chosen.id,
        reward,
    )


def _by_namespace(objects: Sequence[dict[str, Any]], default: str) -> Features:
    """Return features by namespace and name; those without a namespace get the default one."""
    features: Features = {}
    for item in objects:
        for name, value in item.items():
            if isinstance(value, dict):
                features.setdefault(name, {}).update(_flatten(value))
            else:
                features.setdefault(default, {})[name] = value
    return features


def _flatten(group: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace without nested objects, with the names that a model sees."""
    flat: dict[str, Any] = {}
    for name, value in group.items():
        flat |= _flatten(with_prefix(name, value)) if isinstance(value, dict) else {name: value}
    return flat


def _scale(rounds: Sequence[ScoredDecision]) -> list[ScoredDecision]:
    """Return rounds whose numbers have mean 0 and deviation 1, as the service scales them."""
    seen: dict[tuple[str, str], list[float]] = {}
    for decision in rounds:
        for namespace, name, value in _numbers(decision):
            seen.setdefault((namespace, name), []).append(value)
    scales = {key: (float(np.mean(all_)), float(np.std(all_))) for key, all_ in seen.items()}

    def scale(features: Features) -> Features:
        return {
            namespace: {
                name: (value - scales[namespace, name][0]) / (scales[namespace, name][1] or 1.0)
                if _is_number(value)
                else value
                for name, value in values.items()
            }
            for namespace, values in features.items()
        }

    return [d._replace(context=scale(d.context), action=scale(d.action)) for d in rounds]


def _numbers(decision: ScoredDecision) -> Iterator[tuple[str, str, float]]:
    for features in (decision.context, decision.action):
        for namespace, values in features.items():
            for name, value in values.items():
                if _is_number(value):
                    yield namespace, name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names(rounds: Sequence[ScoredDecision]) -> list[tuple[str, str]]:
    counts = Counter(
        (namespace, name)
        for decision in rounds
        for features in (decision.context, decision.action)
        for namespace, values in features.items()
        for name in values
    )
    return [name for name, _ in counts.most_common(MOST_FEATURES)]


def _shuffle(
    rounds: Sequence[ScoredDecision], namespace: str, name: str, rng: np.random.Generator
) -> list[ScoredDecision]:
    """Return rounds with the values of one feature permuted; a missing value stays missing."""
    order = rng.permutation(len(rounds)).tolist()
    return [
        decision._replace(
            context=_exchange(decision.context, rounds[other].context, namespace, name),
            action=_exchange(decision.action, rounds[other].action, namespace, name),
        )
        for decision, other in zip(rounds, order, strict=True)
    ]


def _exchange(features: Features, other: Features, namespace: str, name: str) -> Features:
    values = {key: value for key, value in features.get(namespace, {}).items() if key != name}
    if name in other.get(namespace, {}):
        values[name] = other[namespace][name]
    return {**features, namespace: values}


def _error(
    theta: Float[np.ndarray, " slots"],
    rounds: Sequence[ScoredDecision],
    r: Float[np.ndarray, " rounds"],
) -> float:
    return float(((r - _matrix(rounds) @ theta) ** 2).mean())


def _rewards(rounds: Sequence[ScoredDecision]) -> Float[np.ndarray, " rounds"]:
    return np.array([decision.reward for decision in rounds])


def _matrix(rounds: Sequence[ScoredDecision]) -> csr_matrix:
    hashing = Hashing(bits=BITS)
    pairs = [([decision.context], [decision.action]) for decision in rounds]
    _, lengths, _, indices, values = hashing.rows(pairs, [d.id for d in rounds]).rows
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((values, indices, ends), shape=(len(rounds), hashing.size))
