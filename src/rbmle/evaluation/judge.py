"""Judge policies on a log: rounds are read once, and each policy is judged on them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation.estimators import ESTIMATORS, Bounds, Estimator, Judged, OfferedArms
from rbmle.evaluation.features import Featuriser, featuriser_of
from rbmle.evaluation.intervals import bernstein, bootstrap, normal
from rbmle.evaluation.logs.lines import TOLERANCE
from rbmle.evaluation.logs.table import DecisionLog, LogReading
from rbmle.evaluation.propensities import Propensities
from rbmle.evaluation.results import Estimate, Evaluation
from rbmle.evaluation.rounds import Rounds, spans
from rbmle.evaluation.sequences import SEQUENCES, ValueSequence
from rbmle.evaluation.sums import RatioSums, WeightSums
from rbmle.evaluation.targets import BaselineTarget, PolicyTarget, RewardModel, Target, target_of


@dataclass(slots=True, kw_only=True)
class Survey:
    """Counts and ranges from the first reading of a log; invalid rows are included."""

    rows: int = 0
    lowest: float = np.inf  # reward
    highest: float = -np.inf
    smallest: float = 1.0  # propensity
    unknown: int = 0  # rows without a propensity
    baselines: int = 0  # rows with a baseline action


def survey(
    log: DecisionLog, reading: LogReading, default_reward: float, step: Callable[[int], object]
) -> Survey:
    """Read a few columns of a log once; `step` is called with the rows read so far."""
    result = Survey()
    for batch in log.batches(reading, ("propensity", "reward", "baseline")):
        rewards = batch.table["reward"].to_numpy(zero_copy_only=False)
        rewards = np.where(np.isnan(rewards), default_reward, rewards)
        rewards = rewards[np.isfinite(rewards)]
        chances = batch.table["propensity"].to_numpy(zero_copy_only=False)
        result.rows += len(chances)
        result.unknown += int(np.isnan(chances).sum())
        result.baselines += len(chances) - batch.table["baseline"].null_count
        result.lowest = min(result.lowest, float(rewards.min(initial=np.inf)))
        result.highest = max(result.highest, float(rewards.max(initial=-np.inf)))
        result.smallest = min(result.smallest, float(chances[chances > 0].min(initial=1.0)))
        step(result.rows)
    return result


INTERVALS = ("bootstrap", "bernstein", "sequence", "normal")
PROPENSITIES = ("contexts", "arms")
CLIP = 10.0  # c
USUAL = ((0.0, 1.0), (-1.0, 1.0))  # bounds that are assumed for rewards within them


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """How a log is judged."""

    estimators: Sequence[Estimator]
    interval: str = "sequence"
    confidence: float = 0.95
    # The first part of the log, which is learned but not judged; None: every round is judged, then learned.
    frozen: float | None = None
    clip: float = CLIP
    rewards: tuple[float, float] | None = None  # the bounds; None: see `bounds_of`
    default_reward: float = 0.0
    propensities: str = "contexts"  # how missing propensities are estimated
    floor: float | None = None  # the smallest probability that any action had; None: not known
    seed: int = 0

    def __post_init__(self) -> None:
        if self.interval not in INTERVALS:
            raise SettingError(no_such("interval", self.interval, INTERVALS))
        if self.propensities not in PROPENSITIES:
            raise SettingError(
                f"`propensities` must be {' or '.join(PROPENSITIES)}, got {self.propensities!r}"
            )
        if not 0 < self.confidence < 1:
            raise SettingError(f"`confidence` must be between 0 and 1, got {self.confidence}")
        if self.frozen is not None and not 0 <= self.frozen < 1:
            raise SettingError(f"`frozen` must be a part from 0 to below 1, got {self.frozen}")
        if not self.clip > 0:
            raise SettingError(f"`clip` must be above 0, got {self.clip}")
        if self.floor is not None and not 0 < self.floor <= 1:
            raise SettingError(f"`floor` must be above 0 and at most 1, got {self.floor}")
        if self.rewards is not None and not self.rewards[0] < self.rewards[1]:
            raise SettingError(f"`rewards` must be (lowest, highest), got {self.rewards}")


def bounds_of(log: Survey, settings: EvaluationSettings) -> tuple[float, float]:
    """Return the bounds of rewards: those of the settings, or [0, 1] or [−1, 1] if all fit, or their range."""
    if settings.rewards is not None:
        low, high = settings.rewards
        if log.lowest < low or log.highest > high:
            raise SettingError(
                f"`rewards` are from {low:g} to {high:g}, but the log has some from {log.lowest:g} to "
                f"{log.highest:g}; give the smallest and the largest there can be"
            )
        return settings.rewards
    for low, high in USUAL:
        if low <= log.lowest and log.highest <= high:
            return low, high
    if settings.interval in ("bernstein", "sequence"):
        raise SettingError(
            f"rewards are from {log.lowest:g} to {log.highest:g}, and an interval by {settings.interval!r} "
            "needs their bounds; give --rewards LOWEST,HIGHEST (rewards=(lowest, highest)), or "
            "--interval bootstrap, which needs no bounds and holds for one look"
        )
    return log.lowest, max(log.highest, math.nextafter(log.lowest, math.inf))


FEW = 100.0  # effective rounds below which estimates by weights are unreliable
LITTLE, SMALL_PART = (
    0.5,
    0.01,
)  # shares of effective rounds that are too small; the first for short logs
UNSEEN = 4.0  # a warning is due if the expected Σ w² is this many times the observed one
ROUNDING = 1e-9  # of probabilities
DEVIATIONS = 5.0  # by which the mean weight may differ from 1


class Reach:
    """The weights that a policy could have had, whatever was played."""

    def __init__(self) -> None:
        self.unknown = 0  # rounds with an action of unknown probability
        self.lost = 0  # rounds where it may play an action that could not be played
        self.largest = 0.0  # the largest weight there could have been
        self.squares = 0.0  # the expected Σ w²

    def add(
        self,
        rounds: Rounds,
        chances: Float[np.ndarray, " arms"],
        predictions: Float[np.ndarray, " arms"],
        floor: float | None,
    ) -> OfferedArms | None:
        """Add rounds, and return all of their arms; None if some weights are not known."""
        p = rounds.logged
        if p is None:
            p = np.full(len(chances), np.nan)
        is_unknown = np.isnan(p)
        unknown = int((rounds.totals(is_unknown.astype(float)) > 0).sum())
        if unknown and floor is None:
            self.unknown += unknown
            return None
        p = np.where(is_unknown, floor or 0.0, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(chances > 0, chances / p, 0.0)
        is_lost = (p == 0) & (chances > 0)
        if is_lost.any():
            self.lost += int((rounds.totals(np.where(is_lost, chances, 0.0)) > ROUNDING).sum())
        seen = np.where(is_lost, 0.0, weights)
        self.largest = max(self.largest, float(seen.max(initial=0.0)))
        self.squares += float((seen * np.where(is_unknown, 0.0, chances)).sum())
        return OfferedArms(
            sizes=rounds.sizes,
            at=rounds.at,
            chances=chances,
            falls=np.maximum(weights - chances, 0.0),
            predictions=predictions,
        )


def overlap_warnings(policy: str, sums: WeightSums, reach: Reach | None = None) -> list[str]:
    """Return warnings about the numbers of a policy."""
    n = sums.plays
    if not n:
        return [
            f"{policy}: no round is left to judge it on; give a longer log, or a smaller --frozen."
        ]
    if not sums.w:
        return [
            f"{policy}: NO OVERLAP. In none of {n:,} rounds did the log play an arm that this policy would "
            "play, so ips, snips, clipped and replay say nothing about it, and dm, dr and switch rest on the "
            "reward model alone."
        ]
    messages = []
    worth = f"{n:,} rounds are worth {sums.effective:,.1f} ({sums.effective / n:.2%})"
    if sums.effective < min(FEW, LITTLE * n) or sums.effective < SMALL_PART * n:
        messages.append(
            f"{policy}: POOR OVERLAP. {worth}, because it rarely plays the arms that the log played. Weighted "
            "estimates depend on a few rounds, and their intervals may be too narrow."
        )
    elif sums.effective < FEW:
        messages.append(f"{policy}: FEW ROUNDS. {worth}; intervals may be too narrow.")
    if reach is not None and reach.squares > UNSEEN * sums.ww:
        messages.append(
            f"{policy}: UNSEEN WEIGHTS. Weights could have been as large as {reach.largest:,.0f}, but the log "
            "has hardly any such rounds, on which the value depends too. snips, dr and replay describe the "
            "other rounds only, and bootstrap and normal intervals do not account for it."
        )
    mean = sums.w / n
    deviation = math.sqrt(max(sums.ww / n - mean**2, 0.0) / n)
    if abs(mean - 1) > DEVIATIONS * deviation + 1e-9 and n >= FEW:
        messages.append(
            f"{policy}: THE PROPENSITIES DO NOT FIT. The mean weight is {mean:.3g}; it should be 1 if the "
            "propensities are right and every arm could be played. ips is off by about that factor; snips "
            "less so."
        )
    return messages


# Reasons why there is no interval, and what to do.
UNKNOWN = (
    "they need the probability of every offered action, and the log has only that of the played one, so "
    "large weights are mostly unseen. Give a log with the column `probabilities`, or the smallest probability "
    "that any action could have, --floor (floor=0.01). ips with 'sequence' needs neither."
)
LOST = (
    " had actions that this policy would play, but the logging policy could not. With 'sequence', ips, snips "
    "and dr hold nevertheless."
)
LEARNING = (
    "Bernstein's inequality needs independent rounds, and a policy or a reward model that learns from them "
    "makes them dependent. Give --interval sequence, or --frozen for the policy."
)


class JudgedPolicy:
    """A policy, and the sums from which its estimates are made."""

    def __init__(
        self,
        name: str,
        policy: Any,
        bounds: Bounds,
        settings: EvaluationSettings,
        log_survey: Survey,
    ) -> None:
        self.name, self._bounds, self._settings = name, bounds, settings
        limits = log_survey.lowest, log_survey.highest
        self.target: Target = target_of(policy, settings.seed, *limits)
        self._has_replay = any(estimator.name == "replay" for estimator in settings.estimators)
        is_twin = self._has_replay and self.target.is_learning and settings.frozen is None
        twin = target_of(policy, settings.seed, *limits) if is_twin else None
        self._twin = twin if isinstance(twin, PolicyTarget) else None
        self._has_estimated = bool(log_survey.unknown)
        self.weights = WeightSums()
        self.left_out = 0  # rounds without a baseline action that could be played
        self._accepted = 0
        self._sums = {estimator.name: RatioSums() for estimator in settings.estimators}
        self.reach = Reach()
        has_sequences = settings.interval == "sequence"
        self._sequences = {
            estimator.name: ValueSequence(estimator.name, bounds.low, bounds.high)
            for estimator in settings.estimators
            if has_sequences and estimator.name in SEQUENCES
        }

    def add(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        predictions: Float[np.ndarray, " arms"] | None,
        is_judged: bool,
    ) -> tuple[Rounds, Float[np.ndarray, " rounds"]] | None:
        """Judge the policy on some rounds; return the rounds that count, and its weights there.

        None: the rounds were only learned, or none counts.
        """
        if (
            is_judged
            and self._settings.frozen is not None
            and isinstance(self.target, PolicyTarget)
        ):
            self.target.is_frozen = True
        elif not is_judged and not self.target.is_learning:
            return None
        if isinstance(self.target, BaselineTarget):
            places = self.target.find_judgeable(rounds)
            self.left_out += len(rounds) - len(places)
            if not len(places):
                return None
            if predictions is not None:
                predictions = predictions[spans(rounds.starts[places], rounds.sizes[places])]
            rounds, propensities = rounds.part(places), propensities[places]
        chances = self.target.chances(rounds)
        if not is_judged:
            return None
        weights = chances[rounds.at] / propensities
        if predictions is None:
            predictions = np.zeros(len(chances))
        shown = Judged(
            rewards=rounds.rewards,
            weights=weights,
            predicted=predictions[rounds.at],
            expected=rounds.totals(chances * predictions),
            accepted=self._accept(rounds, propensities, weights),
            offered=self.reach.add(rounds, chances, predictions, self._settings.floor),
        )
        self.weights.add_all(weights, rounds.rewards)
        self._accepted += int(shown.accepted.sum())
        for estimator in self._settings.estimators:
            self._sums[estimator.name].add(*estimator.terms(shown, self._bounds))
        for sequence in self._sequences.values():
            sequence.add(shown)
        return rounds, weights

    def _accept(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
    ) -> Bool[np.ndarray, " rounds"]:
        """Return which rounds replay accepts: each with probability weight / largest weight.

        If the largest weight is only that of the log, rounds with larger ones are accepted too rarely.
        """
        if not self._has_replay:
            return np.zeros(len(rounds), bool)
        rng = generator(self._settings.seed, Purpose.EVALUATE, f"replay-{rounds.numbers[0]}")
        limits = rng.random(len(rounds)) * self._bounds.weight
        if self._twin is None:
            return limits < weights
        return self._twin.replay(
            rounds, lambda i, chance: bool(limits[i] < chance / propensities[i])
        )[1]

    @property
    def refused(self) -> dict[str, str]:
        """Return why estimators have no interval, for those that usually have one."""
        settings, reach = self._settings, self.reach
        if not self._is_exact or self._has_estimated or not self.weights.plays:
            return {}
        reasons = {}
        for name in (
            estimator.name for estimator in settings.estimators if estimator.name in SEQUENCES
        ):
            if settings.interval == "bernstein" and (name == "dr" or self._is_learning):
                reasons[name] = LEARNING
            elif reach.unknown and (settings.interval == "bernstein" or name != "ips"):
                reasons[name] = UNKNOWN
            elif reach.lost and (settings.interval == "bernstein" or name == "replay"):
                reasons[name] = f"{reach.lost:,} rounds{LOST}"
        return reasons

    @property
    def _is_learning(self) -> bool:
        return self.target.is_learning and self._settings.frozen is None

    @property
    def _is_exact(self) -> bool:
        """Whether intervals hold for any number of rounds, not only asymptotically."""
        return self._settings.interval in ("sequence", "bernstein")

    def estimates(self) -> list[Estimate]:
        refused = ESTIMATORS if self._is_exact and self._has_estimated else self.refused
        return [
            self._estimate(estimator, estimator.name in refused)
            for estimator in self._settings.estimators
        ]

    def _estimate(self, estimator: Estimator, is_refused: bool) -> Estimate:
        sums, settings = self._sums[estimator.name], self._settings
        interval = None if is_refused else self._interval(estimator, sums)
        n = self.weights.plays
        effective = {"replay": float(self._accepted), "dm": float(n)}
        return Estimate(
            policy=self.name,
            estimator=estimator.name,
            value=sums.value,
            low=None if interval is None else interval[0],
            high=None if interval is None else interval[1],
            effective_sample_size=effective.get(estimator.name, self.weights.effective),
            n=n,
            interval=settings.interval,
            confidence=settings.confidence,
        )

    def _interval(self, estimator: Estimator, sums: RatioSums) -> tuple[float, float] | None:
        """Return the interval of the kind in the settings; None if there is none."""
        settings, bounds = self._settings, self._bounds
        if sums.value is None:
            return None
        if settings.interval == "bootstrap":
            return bootstrap(sums, settings.confidence, settings.seed)
        if settings.interval == "normal":
            return normal(sums, settings.confidence)
        if estimator.name not in SEQUENCES:  # a biased estimator has no interval for the value
            return None
        if estimator.name == "replay" and settings.floor is None:  # see `_accept`
            return None
        if settings.interval == "bernstein":
            spread = estimator.spread(bounds._replace(weight=self.reach.largest))
            return bernstein(sums, settings.confidence, spread, bounds.low, bounds.high)
        sequence = self._sequences.get(estimator.name)
        return None if sequence is None else sequence.interval(settings.confidence)


ESTIMATED = {  # how, and when that is wrong
    "contexts": "they were estimated from the contexts, by logistic regression. If the logging policy used "
    "information that the log lacks, or does not resemble such a model, all estimates but dm are biased",
    "arms": "they were estimated from how often each arm was played, whatever the context. If the logging "
    "policy looked at the context, all estimates but dm are biased",
}

# A policy, rounds that it was judged on, and its weights there.
Watch = Callable[[str, Rounds, Float[np.ndarray, " rounds"]], object]


class Judge:
    """Judges policies on rounds of a log."""

    def __init__(
        self,
        policies: Mapping[str, Any],
        log_survey: Survey,
        propensities: Propensities,
        settings: EvaluationSettings,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._survey, self._propensities, self._settings = log_survey, propensities, settings
        self.seen, self._total = 0, 0.0  # rounds, and their rewards
        low, high = bounds_of(log_survey, settings)
        smallest = min(log_survey.smallest, propensities.smallest)
        if settings.floor is not None:
            _check_floor(settings.floor, smallest)
            smallest = settings.floor
        weight = 1 / smallest
        self._bounds = Bounds(low=low, high=high, weight=weight, clip=settings.clip)
        self._unjudged = 0 if settings.frozen is None else int(settings.frozen * log_survey.rows)
        self._judged = {
            name: JudgedPolicy(name, judged, self._bounds, settings, log_survey)
            for name, judged in policies.items()
        }
        self._has_model = any(estimator.has_model for estimator in settings.estimators)
        self._model: RewardModel | None = None
        self._featuriser: Featuriser | None = None

    @property
    def has_contexts(self) -> bool:
        targets = (judged.target for judged in self._judged.values())
        return (
            self._has_model
            or (bool(self._survey.unknown) and self._settings.propensities == "contexts")
            or any(target.has_contexts for target in targets)
        )

    def add(self, rounds: Rounds) -> None:
        """Judge all policies on some rounds; those before the judged part are only learned."""
        ahead = self._unjudged - self.seen
        if 0 < ahead < len(rounds):
            self.add(rounds.part(slice(None, ahead)))
            rounds = rounds.part(slice(ahead, None))
        self.seen += len(rounds)
        self._total += float(rounds.rewards.sum())
        predictions = self._predictions(rounds)
        is_judged = self.seen > self._unjudged
        propensities = self._propensities.fill(rounds)
        if self._settings.floor is not None and rounds.logged is not None:
            _check_floor(self._settings.floor, float(np.fmin.reduce(rounds.logged, initial=1.0)))
        for policy in self._judged.values():
            judged = policy.add(rounds, propensities, predictions, is_judged)
            if judged is not None and self._watch is not None:
                self._watch(policy.name, *judged)

    def _predictions(self, rounds: Rounds) -> Float[np.ndarray, " arms"] | None:
        if not self._has_model:
            return None
        if self._model is None or self._featuriser is None:
            self._featuriser = featuriser_of(rounds)
            self._model = RewardModel(self._featuriser, self._bounds.low, self._bounds.high)
        return self._model.predict_then_learn(rounds, self._featuriser.rows(rounds))

    def evaluation(self, reading: LogReading) -> Evaluation:
        """Return the estimates, and warnings about them; `reading` has counted the bad rows."""
        messages = []
        if self._survey.unknown:
            messages.append(
                f"ESTIMATED PROPENSITIES. {self._survey.unknown:,} of {self._survey.rows:,} rounds have none; "
                f"{ESTIMATED[self._settings.propensities]}, and no interval shows by how much. There are no "
                "intervals by 'sequence' and 'bernstein'; those by 'bootstrap' hold if the estimates are right."
            )
        if reading.unrewarded:
            messages.append(
                f"MISSING REWARDS. {reading.unrewarded:,} of {self.seen:,} rounds have no reward, and count "
                f"as {self._settings.default_reward:g} (--default-reward)."
            )
        if reading.bad:
            messages.append(
                f"BAD ROWS. {reading.bad:,} rows were left out; the first: {reading.messages[0]}."
            )
        refused: dict[str, list[str]] = {}  # by the reason
        for judged in self._judged.values():
            for name, why in judged.refused.items():
                refused.setdefault(why, []).append(f"{judged.name} {name}")
        messages += [
            f"NO INTERVAL by {self._settings.interval!r} for {', '.join(names)}: {why}"
            for why, names in refused.items()
        ]
        for judged in self._judged.values():
            if judged.left_out:
                messages.append(
                    f"{judged.name}: LEFT OUT. {judged.left_out:,} rounds have no baseline action, or one that "
                    "could not be played; the value is that of the other rounds."
                )
            messages += overlap_warnings(judged.name, judged.weights, judged.reach)
        return Evaluation(
            estimates=[
                estimate for judged in self._judged.values() for estimate in judged.estimates()
            ],
            warnings=messages,
            rounds=self.seen,
            mean=self._total / self.seen,
        )


def _check_floor(floor: float, smallest: float) -> None:
    if smallest < floor * (1 - TOLERANCE):
        raise SettingError(
            f"`floor` is {floor:g}, but the log has an action whose probability was {smallest:g}; give the "
            "smallest one that any action could have, whether it was played or not"
        )
