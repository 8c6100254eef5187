"""Simulate a learner in an MDP, and compute its regret over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.base import Learner, LearnsWalking, Transition, Walk
from rbmle.control.finite import TRUTH, FiniteRBMLE, closed_loop
from rbmle.control.mdp import MDP, river_swim
from rbmle.control.tabular import TabularRBMLE
from rbmle.core.policy import has
from rbmle.core.randomness import Purpose, generator

WARM_UP_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """The regret of a learner after some numbers of steps, and the answers of `ask` at those times."""

    times: Int[np.ndarray, " times"]
    regrets: Float[np.ndarray, " times"]
    answers: tuple[Any, ...]
    state: Any  # of the learner, at the end


def simulate(
    mdp: MDP,
    learner: Learner[Any],
    times: Sequence[int],
    seed: int,
    *,
    start: int = 0,
    ask: Callable[[Any], Any] = lambda _: None,
) -> Trajectory:
    """Let a learner act and learn, and record its regret after each number of steps in `times`, in order.

    `ask` is called with the learner's state at each of them, and must not change it.

    >>> from rbmle.control import PSRL, river_swim
    >>> simulate(river_swim(6), PSRL(), times=[1, 1000], seed=0).regrets.shape
    (2,)
    """
    if list(times) != sorted(times) or (len(times) and times[0] < 0):
        raise ValueError(f"`times` must be 0 or more and in order, got {list(times)}")
    walk = Walk.begin(mdp, seed, start)
    state = learner.init(mdp.rewards, generator(seed, Purpose.START, 0))
    regrets, answers = [], []
    for end in times:
        if has(learner, LearnsWalking):
            learner.advance(state, walk, end)
        else:
            step_by_step(learner, state, walk, end)
        regrets.append(walk.regret)
        answers.append(ask(state))
    return Trajectory(
        times=np.array(times, np.int64),
        regrets=np.array(regrets),
        answers=tuple(answers),
        state=state,
    )


def step_by_step(learner: Learner[Any], state: Any, walk: Walk, end: int) -> None:
    """Act and learn, one step after the other, until the walk has taken `end` steps."""
    while walk.steps < end:
        place = walk.state
        action = learner.act(state, place, walk.stream(Purpose.CHOOSE))
        successor = walk.take(action)
        seen = Transition(state=place, action=action, successor=successor)
        learner.update(state, seen, walk.stream(Purpose.UPDATE))


def warm_up() -> None:
    """Compile every kernel of this package: simulate a learner of each kind for a few steps."""
    family = closed_loop()
    _walk(family.mdp(TRUTH), FiniteRBMLE(family=family))
    _walk(river_swim(3), TabularRBMLE())


def _walk(mdp: MDP, learner: Learner[Any]) -> None:
    simulate(mdp, learner, [WARM_UP_STEPS], seed=0)
    state = learner.init(mdp.rewards, generator(0, Purpose.START, 0))
    step_by_step(learner, state, Walk.begin(mdp, seed=0), WARM_UP_STEPS)
