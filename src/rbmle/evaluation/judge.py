"""All policies on a log: rounds are read once, and each policy is judged on them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.evaluation.contexts import Featuriser, featuriser_of
from rbmle.evaluation.estimators import Bounds
from rbmle.evaluation.judged_policy import JudgedPolicy
from rbmle.evaluation.logs import Reading
from rbmle.evaluation.logs.lines import TOLERANCE
from rbmle.evaluation.overlap import overlap_warnings
from rbmle.evaluation.propensities import Propensities
from rbmle.evaluation.results import Evaluation
from rbmle.evaluation.reward_model import RewardModel
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.settings import Settings, bounds_of
from rbmle.evaluation.survey import Survey

ESTIMATED = {  # how, and when that is wrong
    "contexts": "they were estimated from the contexts, by logistic regression. If the logging policy saw "
    "what the log does not have, or is far from such a model, all but dm are biased",
    "arms": "they were estimated by how often each arm was played, whatever the context. If the logging "
    "policy looked at the context, all but dm are biased",
}

# A policy, rounds that it was judged on, and its weights there.
Watch = Callable[[str, Rounds, Float[np.ndarray, " rounds"]], object]


class Judge:
    """Reads rounds, and judges all policies on them."""

    def __init__(
        self,
        given: Mapping[str, Any],
        found: Survey,
        propensities: Propensities,
        how: Settings,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._survey, self._propensities, self._how = found, propensities, how
        self.seen, self._total = 0, 0.0  # rounds, and their rewards
        low, high = bounds_of(found, how)
        smallest = min(found.smallest, propensities.smallest)
        if how.floor is not None:
            _check_floor(how.floor, smallest)
            smallest = how.floor
        weight = 1 / smallest
        self._bounds = Bounds(low=low, high=high, weight=weight, clip=how.clip)
        self._unjudged = 0 if how.frozen is None else int(how.frozen * found.rows)
        self._judged = {
            name: JudgedPolicy(name, one, self._bounds, how, found) for name, one in given.items()
        }
        self._has_model = any(estimator.has_model for estimator in how.estimators)
        self._model: RewardModel | None = None
        self._featuriser: Featuriser | None = None

    @property
    def has_contexts(self) -> bool:
        """Return whether features are read at all."""
        targets = (one.target for one in self._judged.values())
        return (
            self._has_model
            or (bool(self._survey.unknown) and self._how.propensities == "contexts")
            or any(target.has_contexts for target in targets)
        )

    def add(self, rounds: Rounds) -> None:
        """Judge some rounds; those that are to be learned only, are."""
        ahead = self._unjudged - self.seen
        if 0 < ahead < len(rounds):
            self.add(rounds.part(slice(None, ahead)))
            rounds = rounds.part(slice(ahead, None))
        self.seen += len(rounds)
        self._total += float(rounds.rewards.sum())
        predictions = self._predictions(rounds)
        is_judged = self.seen > self._unjudged
        propensities = self._propensities.fill(rounds)
        if self._how.floor is not None and rounds.logged is not None:
            _check_floor(self._how.floor, float(np.fmin.reduce(rounds.logged, initial=1.0)))
        for one in self._judged.values():
            judged = one.add(rounds, propensities, predictions, is_judged)
            if judged is not None and self._watch is not None:
                self._watch(one.name, *judged)

    def _predictions(self, rounds: Rounds) -> Float[np.ndarray, " arms"] | None:
        """Return q̂ of all arms; None if nobody needs it."""
        if not self._has_model:
            return None
        if self._model is None or self._featuriser is None:
            self._featuriser = featuriser_of(rounds)
            self._model = RewardModel(self._featuriser, self._bounds.low, self._bounds.high)
        return self._model.predict_then_learn(rounds, self._featuriser.rows(rounds))

    def evaluation(self, reading: Reading) -> Evaluation:
        """Return what was found; `reading` tells what was wrong with rows."""
        messages = []
        if self._survey.unknown:
            messages.append(
                f"ESTIMATED PROPENSITIES. {self._survey.unknown:,} of {self._survey.rows:,} rounds have none; "
                f"{ESTIMATED[self._how.propensities]}, and no interval tells by how much. Intervals by "
                "'sequence' and 'bernstein' are not given; those by 'bootstrap' hold if estimates are right."
            )
        if reading.unrewarded:
            messages.append(
                f"MISSING REWARDS. {reading.unrewarded:,} of {self.seen:,} rounds have no reward, and count "
                f"as {self._how.default_reward:g} (--default-reward)."
            )
        if reading.bad:
            messages.append(
                f"BAD ROWS. {reading.bad:,} rows were left out; the first: {reading.messages[0]}."
            )
        refused: dict[str, list[str]] = {}  # by the reason
        for one in self._judged.values():
            for name, why in one.refused.items():
                refused.setdefault(why, []).append(f"{one.name} {name}")
        messages += [
            f"NO INTERVAL by {self._how.interval!r} for {', '.join(names)}: {why}"
            for why, names in refused.items()
        ]
        for one in self._judged.values():
            if one.left_out:
                messages.append(
                    f"{one.name}: LEFT OUT. {one.left_out:,} rounds have no baseline action, or one that had "
                    "no chance of being played; the value is that of the other rounds."
                )
            messages += overlap_warnings(one.name, one.weights, one.reach)
        return Evaluation(
            estimates=[each for one in self._judged.values() for each in one.estimates()],
            warnings=messages,
            rounds=self.seen,
            mean=self._total / self.seen,
        )


def _check_floor(floor: float, smallest: float) -> None:
    """Raise SettingError for a floor that is not one."""
    if smallest < floor * (1 - TOLERANCE):
        raise SettingError(
            f"`floor` is {floor:g}, but the log has an action whose probability was {smallest:g}; give the "
            "smallest one that any action could have, whether it was played or not"
        )
