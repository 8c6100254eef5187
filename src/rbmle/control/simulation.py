"""Simulations: a learner in an MDP, and its regret over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.base import Learner, LearnsWalking, Transition
from rbmle.control.mdp import MDP
from rbmle.control.walk import Walk
from rbmle.core.policy import has
from rbmle.core.randomness import Purpose, generator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """What happened: regret after some numbers of steps, and what was asked of the learner then."""

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
    """Let a learner act and learn, and look at it after each of some numbers of steps, in order.

    `ask` is called with the learner's state at each of them, and reads only.

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
