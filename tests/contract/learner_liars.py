"""One liar for each promise of learners of MDPs; the contract must catch them all."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbmle.control import PSRL, TabularRBMLE, Transition, Walk
from rbmle.control.tabular import EpochState


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """RBMLE step by step, which keeps every promise: the liars differ from it in one line."""

    inner: TabularRBMLE | PSRL = field(default_factory=TabularRBMLE)

    def init(self, rewards: np.ndarray, rng: np.random.Generator) -> EpochState:
        return self.inner.init(rewards, rng)

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        return self.inner.act(state, place, rng)

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        self.inner.update(state, seen, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsFromOne(Honest):
    """Numbers its actions 1, 2, …"""

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        return 1 + Honest.act(self, state, place, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsWhileActing(Honest):
    """Counts a visit when it is asked, so that a repeated question ends an epoch."""

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        action = Honest.act(self, state, place, rng)
        state.visits[place, action] += 1
        return action


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploresFromNowhere(Honest):
    """Acts at random now and then, by a generator that is seeded by the machine."""

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        if np.random.default_rng().random() < 0.5:
            return 0
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnsInACopy(Honest):
    """Takes care not to change its argument, and loses what it learned."""

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        Honest.update(self, copy.deepcopy(state), seen, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalesRewardsInPlace(Honest):
    """Normalises the rewards where they lie."""

    def init(self, rewards: np.ndarray, rng: np.random.Generator) -> EpochState:
        if rewards.flags.writeable:
            rewards /= 2 * rewards.max()
        return self.inner.init(rewards, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesFromNowhere(Honest):
    """Draws from the posterior by a generator that no seed decides."""

    inner: TabularRBMLE | PSRL = field(default_factory=PSRL)

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        Honest.update(self, state, seen, np.random.default_rng())


@dataclass(frozen=True, slots=True, kw_only=True)
class UsesTheGlobalStream(Honest):
    """Breaks ties of its values by numpy's global generator."""

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        Honest.update(self, state, seen, rng)
        state.values += 1e-9 * np.random.normal(size=len(state.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemembersOutsideItsState(Honest):
    """Keeps what it learned where no copy finds it."""

    memory: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        Honest.update(self, state, seen, rng)
        self.memory[id(state)] = self.memory.get(id(state), 0) + 1
        state.gain = float(self.memory[id(state)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipsTheLastPlan(Honest):
    """Walks many steps at once, but leaves out a plan that is due at their end."""

    def advance(self, state: EpochState, walk: Walk, end: int) -> None:
        self.inner.advance(state, walk, end)
        state.deadline += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverPlansAgain(Honest):
    """Counts, and keeps its first policy."""

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        state.counts[seen] += 1
        state.policy[:] = 0


# A promise, and a liar that breaks it.
LIARS: tuple[tuple[str, Any], ...] = (
    ("actions_are_numbers_of_actions", CountsFromOne()),
    ("acting_changes_nothing", CountsWhileActing()),
    ("acting_twice_does_the_same", ExploresFromNowhere()),
    ("updating_learns", LearnsInACopy()),
    ("updating_learns", ScalesRewardsInPlace()),
    ("same_seed_same_run", SamplesFromNowhere()),
    ("global_random_state_is_untouched", UsesTheGlobalStream()),
    ("a_copied_state_goes_its_own_way", RemembersOutsideItsState()),
    ("many_steps_at_once_are_as_one_by_one", SkipsTheLastPlan()),
    ("it_learns", NeverPlansAgain()),
)
