"""One policy on a log: its weights, and what every estimator sums up of them."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation.estimators import Bounds, Estimator, Judged
from rbmle.evaluation.intervals import bernstein, bootstrap, normal
from rbmle.evaluation.results import Estimate
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.sequences import SEQUENCES, ValueSequence
from rbmle.evaluation.settings import Settings
from rbmle.evaluation.sums import RatioSums
from rbmle.evaluation.survey import Survey
from rbmle.evaluation.targets import PolicyTarget, Target, target_of
from rbmle.evaluation.weight_sums import WeightSums


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
        self.weights = WeightSums()
        self._accepted = 0
        self._sums = {each.name: RatioSums() for each in how.estimators}
        has_sequences = how.interval == "sequence"
        self._sequences = {
            each.name: ValueSequence(each.name, bounds.low, bounds.high, bounds.weight)
            for each in how.estimators
            if has_sequences and each.name in SEQUENCES
        }

    def add(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        predictions: Float[np.ndarray, " arms"] | None,
        is_judged: bool,
    ) -> Float[np.ndarray, " rounds"] | None:
        """Judge the policy on some rounds, and return its weights; None: they are only learned."""
        if is_judged and self._how.frozen is not None and isinstance(self.target, PolicyTarget):
            self.target.is_frozen = True
        elif not is_judged and not self.target.is_learning:
            return None
        chances = self.target.chances(rounds)
        if not is_judged:
            return None
        weights = chances[rounds.at] / propensities
        nothing = np.zeros(len(rounds))
        judged = Judged(
            rewards=rounds.rewards,
            weights=weights,
            predicted=nothing if predictions is None else predictions[rounds.at],
            expected=nothing if predictions is None else rounds.totals(chances * predictions),
            accepted=self._accept(rounds, propensities, weights),
        )
        self.weights.add_all(weights, rounds.rewards)
        self._accepted += int(judged.accepted.sum())
        for each in self._how.estimators:
            self._sums[each.name].add(*each.terms(judged, self._bounds))
        for sequence in self._sequences.values():
            sequence.add(judged)
        return weights

    def _accept(
        self,
        rounds: Rounds,
        propensities: Float[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
    ) -> Bool[np.ndarray, " rounds"]:
        """Return which rounds a policy would have played, with those probabilities that it has."""
        if not self._has_replay:
            return np.zeros(len(rounds), bool)
        rng = generator(self._how.seed, Purpose.EVALUATE, f"replay-{rounds.numbers[0]}")
        limits = rng.random(len(rounds)) * self._bounds.weight
        if self._twin is None:
            return limits < weights
        return self._twin.played(
            rounds, lambda i, chance: bool(limits[i] < chance / propensities[i])
        )[1]

    def estimates(self) -> list[Estimate]:
        """Return what every estimator says."""
        return [self._estimate(each) for each in self._how.estimators]

    def _estimate(self, estimator: Estimator) -> Estimate:
        sums, how = self._sums[estimator.name], self._how
        found = self._interval(estimator, sums)
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
        if how.interval == "bernstein":
            spread = estimator.spread(bounds)
            return bernstein(sums, how.confidence, spread, bounds.low, bounds.high)
        sequence = self._sequences.get(estimator.name)
        return None if sequence is None else sequence.interval(how.confidence)
