"""One policy on a log: its weights, and what every estimator sums up of them."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation.estimators import ESTIMATORS, Bounds, Estimator, Judged
from rbmle.evaluation.intervals import bernstein, bootstrap, normal
from rbmle.evaluation.overlap import Reach
from rbmle.evaluation.results import Estimate
from rbmle.evaluation.rounds import Rounds, spans
from rbmle.evaluation.sequences import SEQUENCES, ValueSequence
from rbmle.evaluation.settings import Settings
from rbmle.evaluation.sums import RatioSums
from rbmle.evaluation.survey import Survey
from rbmle.evaluation.targets import BaselineTarget, PolicyTarget, Target, target_of
from rbmle.evaluation.weight_sums import WeightSums

# Reasons why there is no interval, and what to do.
UNKNOWN = (
    "they need the probability that every offered action had, and the log tells that of the played one "
    "alone: large weights are mostly unseen. Give a log with the column `probabilities`, or the smallest "
    "probability that any action could have, --floor (floor=0.01). By 'sequence', ips needs neither."
)
LOST = (
    " had actions that the policy would play and the log could not. By 'sequence', ips, snips and dr hold "
    "nevertheless."
)
LEARNING = (
    "Bernstein's inequality needs rounds that are independent, and a policy or a reward model that learns "
    "on the way makes them depend on each other. Give --interval sequence, or --frozen for the policy."
)


class JudgedPolicy:
    """One policy, and all that is summed up of it."""

    def __init__(self, name: str, given: Any, bounds: Bounds, how: Settings, found: Survey) -> None:
        self.name, self._bounds, self._how = name, bounds, how
        limits = found.lowest, found.highest
        self.target: Target = target_of(given, how.seed, *limits)
        self._has_replay = any(each.name == "replay" for each in how.estimators)
        is_twin = self._has_replay and self.target.is_learning and how.frozen is None
        twin = target_of(given, how.seed, *limits) if is_twin else None
        self._twin = twin if isinstance(twin, PolicyTarget) else None
        self._has_estimated = bool(found.unknown)
        self.weights = WeightSums()
        self.left_out = 0  # rounds that tell nothing of the baseline action
        self._accepted = 0
        self._sums = {each.name: RatioSums() for each in how.estimators}
        self.reach = Reach()
        has_sequences = how.interval == "sequence"
        self._sequences = {
            each.name: ValueSequence(each.name, bounds.low, bounds.high)
            for each in how.estimators
            if has_sequences and each.name in SEQUENCES
        }

    def add(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        predictions: Float[np.ndarray, " arms"] | None,
        is_judged: bool,
    ) -> tuple[Rounds, Float[np.ndarray, " rounds"]] | None:
        """Judge the policy on some rounds; return those that tell of it, and its weights there.

        None: they are only learned.
        """
        if is_judged and self._how.frozen is not None and isinstance(self.target, PolicyTarget):
            self.target.is_frozen = True
        elif not is_judged and not self.target.is_learning:
            return None
        if isinstance(self.target, BaselineTarget):
            places = self.target.told(rounds)
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
        judged = Judged(
            rewards=rounds.rewards,
            weights=weights,
            predicted=predictions[rounds.at],
            expected=rounds.totals(chances * predictions),
            accepted=self._accept(rounds, propensities, weights),
            offered=self.reach.add(rounds, chances, predictions, self._how.floor),
        )
        self.weights.add_all(weights, rounds.rewards)
        self._accepted += int(judged.accepted.sum())
        for each in self._how.estimators:
            self._sums[each.name].add(*each.terms(judged, self._bounds))
        for sequence in self._sequences.values():
            sequence.add(judged)
        return rounds, weights

    def _accept(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
    ) -> Bool[np.ndarray, " rounds"]:
        """Return which rounds a policy would have played, with those probabilities that it has.

        Where the largest weight is that of the log, contexts with larger ones are accepted too seldom.
        """
        if not self._has_replay:
            return np.zeros(len(rounds), bool)
        rng = generator(self._how.seed, Purpose.EVALUATE, f"replay-{rounds.numbers[0]}")
        limits = rng.random(len(rounds)) * self._bounds.weight
        if self._twin is None:
            return limits < weights
        return self._twin.played(
            rounds, lambda i, chance: bool(limits[i] < chance / propensities[i])
        )[1]

    @property
    def refused(self) -> dict[str, str]:
        """Return why estimators have no interval that have one where propensities are known."""
        how, reach = self._how, self.reach
        if not self._is_exact or self._has_estimated or not self.weights.plays:
            return {}
        found = {}
        for name in (each.name for each in how.estimators if each.name in SEQUENCES):
            if how.interval == "bernstein" and (name == "dr" or self._is_learning):
                found[name] = LEARNING
            elif reach.unknown and (how.interval == "bernstein" or name != "ips"):
                found[name] = UNKNOWN
            elif reach.lost and (how.interval == "bernstein" or name == "replay"):
                found[name] = f"{reach.lost:,} rounds{LOST}"
        return found

    @property
    def _is_learning(self) -> bool:
        return self.target.is_learning and self._how.frozen is None

    @property
    def _is_exact(self) -> bool:
        """Return whether intervals hold for any number of rounds, and not approximately for many."""
        return self._how.interval in ("sequence", "bernstein")

    def estimates(self) -> list[Estimate]:
        """Return what every estimator says."""
        refused = ESTIMATORS if self._is_exact and self._has_estimated else self.refused
        return [self._estimate(each, each.name in refused) for each in self._how.estimators]

    def _estimate(self, estimator: Estimator, is_refused: bool) -> Estimate:
        sums, how = self._sums[estimator.name], self._how
        found = None if is_refused else self._interval(estimator, sums)
        n = self.weights.plays
        effective = {"replay": float(self._accepted), "dm": float(n)}
        return Estimate(
            policy=self.name,
            estimator=estimator.name,
            value=sums.value,
            low=None if found is None else found[0],
            high=None if found is None else found[1],
            effective_sample_size=effective.get(estimator.name, self.weights.effective),
            n=n,
            interval=how.interval,
            confidence=how.confidence,
        )

    def _interval(self, estimator: Estimator, sums: RatioSums) -> tuple[float, float] | None:
        """Return the interval of the kind that is asked for; None if there is none."""
        how, bounds = self._how, self._bounds
        if sums.value is None:
            return None
        if how.interval == "bootstrap":
            return bootstrap(sums, how.confidence, how.seed)
        if how.interval == "normal":
            return normal(sums, how.confidence)
        if estimator.name not in SEQUENCES:  # what is biased is not around the value
            return None
        if estimator.name == "replay" and how.floor is None:  # see `_accept`
            return None
        if how.interval == "bernstein":
            spread = estimator.spread(bounds._replace(weight=self.reach.largest))
            return bernstein(sums, how.confidence, spread, bounds.low, bounds.high)
        sequence = self._sequences.get(estimator.name)
        return None if sequence is None else sequence.interval(how.confidence)
