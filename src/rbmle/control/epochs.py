"""Learning in epochs: a policy is kept for a while, and then there is a new plan.

An epoch ends when some state and action were visited twice as often as at its start (UCRL2: Jaksch, Ortner
and Auer 2010; here with the visit that doubles, there before the next one), or when it is one step longer than
the epoch before (TSDE: Ouyang, Gagrani, Nayyar and Jain 2017, "Learning unknown Markov decision processes: a
Thompson sampling approach"). UCRL2 and KL-UCRL have the first rule alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.base import Transition
from rbmle.control.likelihood import frequencies
from rbmle.control.walk import Walk
from rbmle.core.randomness import Purpose
from rbmle.engine.markov_chain import follow
from rbmle.engine.relative_values import KNOWN, iterate

MOST_ITERATIONS = 20_000  # of a plan; a plan that is not finished is followed all the same
PRECISION = 1e-6  # of the gain of a plan, in units of the range of rewards
NEVER = np.iinfo(np.int64).max


@dataclass(slots=True, kw_only=True)
class EpochState:
    """What was counted, and the policy of this epoch."""

    rewards: Float[np.ndarray, "states actions"]  # R, known
    counts: Int[np.ndarray, "states actions states"]  # N(s, a, s′)
    visits: Int[np.ndarray, "states actions"]  # N(s, a)
    limits: Int[np.ndarray, "states actions"]  # of visits, at which the epoch ends
    values: Float[np.ndarray, " states"]  # h of the last plan, from which the next one starts
    policy: Int[np.ndarray, " states"]
    gain: float  # of the last plan
    round: int = 0
    begun: int = 0  # the round in which the epoch began
    deadline: int = 0  # the round in which it ends at the latest

    @staticmethod
    def before(rewards: Float[np.ndarray, "states actions"]) -> "EpochState":
        """Return the state before any transition and any plan."""
        states, actions = rewards.shape
        return EpochState(
            rewards=np.array(rewards, np.float64),
            counts=np.zeros((states, actions, states), np.int64),
            visits=np.zeros((states, actions), np.int64),
            limits=np.ones((states, actions), np.int64),
            values=np.zeros(states),
            policy=np.zeros(states, np.int64),
            gain=float(rewards.max()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLearner(ABC):
    """A learner that follows one policy in each epoch; what differs is the plan."""

    @abstractmethod
    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> EpochState:
        """Return the state before any transition, with a first plan."""
        state = EpochState.before(rewards)
        self.replan(state, rng)
        return state

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        """Return what the policy of this epoch does."""
        return int(state.policy[place])

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        """Count a transition, and plan anew if the epoch is over."""
        state.counts[seen] += 1
        state.visits[seen[:2]] += 1
        state.round += 1
        if state.visits[seen[:2]] >= state.limits[seen[:2]] or state.round >= state.deadline:
            self.replan(state, rng)

    def advance(self, state: EpochState, walk: Walk, end: int) -> None:
        """Follow the policy of each epoch until the walk has taken `end` steps."""
        while walk.steps < end:
            before = walk.steps
            stop = min(end, before + state.deadline - state.round)
            walk.regret, is_over = follow(
                walk.cumulative,
                walk.gaps,
                state.policy,
                state.limits,
                stop,
                walk.key,
                walk.regret,
                walk.place,
                state.counts,
                state.visits,
            )
            state.round += walk.steps - before
            if is_over or state.round >= state.deadline:
                self.replan(state, walk.stream(Purpose.UPDATE))


def plan(
    state: EpochState,
    kind: int,
    p: Float[np.ndarray, "states actions states"],
    slack: Float[np.ndarray, "states actions"],
    precision: float = PRECISION,
) -> None:
    """Plan by value iteration of a kind, from the values of the last plan; an epoch begins."""
    R = state.rewards
    tolerance = precision * float(np.ptp(R))
    gain, _ = iterate(kind, p, R, slack, tolerance, MOST_ITERATIONS, state.values, state.policy)
    state.gain = float(gain)
    state.limits = state.visits + np.maximum(state.visits, 1)
    length = state.round - state.begun
    state.begun, state.deadline = state.round, state.round + length + 1


def plan_known(state: EpochState, p: Float[np.ndarray, "states actions states"]) -> None:
    """Plan as if p were true."""
    plan(state, KNOWN, p, np.zeros_like(state.rewards))


def estimated(state: EpochState) -> Float[np.ndarray, "states actions states"]:
    """Return p̂, the transitions of the largest likelihood."""
    return frequencies(state.counts)
