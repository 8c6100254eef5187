"""The contract of learners of MDPs, to test your own."""

import copy
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.control import MDP, Learner, LearnsWalking, Transition, Walk, step_by_step
from rbmle.core.policy import has
from rbmle.core.randomness import Purpose, generator
from rbmle.testing.playing import Check, checks_of, content, require

STEPS = 200
LONG = 4000  # steps, enough to learn the easy MDP
SEED = 3

# Two states: action 0 mostly stays, action 1 mostly moves to the other, and state 1 pays.
EASY = MDP(
    transitions=np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.8, 0.2]]]),
    rewards=np.array([[0.0, 0.0], [1.0, 1.0]]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformPlay:
    """Takes any action at random: the baseline that a learner must beat."""

    def init(self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator) -> int:
        """Return the number of actions."""
        return int(rewards.shape[1])

    def act(self, state: int, place: int, rng: np.random.Generator) -> int:
        """Return any action."""
        return int(rng.integers(state))

    def update(self, state: int, seen: Transition, rng: np.random.Generator) -> None:
        """Learn nothing."""


def actions_are_numbers_of_actions(learner: Learner[Any], mdp: MDP) -> None:
    """In every state, before any transition and after some."""
    for steps in (0, 1, STEPS):
        state, _ = train(learner, mdp, steps)
        for place in range(mdp.states):
            action = learner.act(state, place, _stream(Purpose.CHOOSE))
            is_one = isinstance(action, int) and 0 <= action < mdp.actions
            require(is_one, f"in state {place} it does {action!r}, of {mdp.actions} actions")


def acting_changes_nothing(learner: Learner[Any], mdp: MDP) -> None:
    """Byte for byte: only `update` learns."""
    state, _ = train(learner, mdp)
    before = content(state)
    for place in range(mdp.states):
        learner.act(state, place, _stream(Purpose.CHOOSE))
    require(content(state) == before, "the state changed: only `update` may learn")


def acting_twice_does_the_same(learner: Learner[Any], mdp: MDP) -> None:
    """With equal streams."""
    state, _ = train(learner, mdp)
    for place in range(mdp.states):
        actions = {learner.act(state, place, _stream(Purpose.CHOOSE)) for _ in range(20)}
        require(len(actions) == 1, f"in state {place} it does any of {sorted(actions)}")


def updating_learns(learner: Learner[Any], mdp: MDP) -> None:
    """A transition leaves a trace in the state, and none in the transition or in the rewards."""
    rewards = mdp.rewards.copy()
    state = learner.init(rewards, _stream(Purpose.START))
    before = content(state)
    learner.update(state, Transition(state=0, action=0, successor=0), _stream(Purpose.UPDATE))
    require(content(state) != before, "the state is as before: `update` learned nothing")
    require((rewards == mdp.rewards).all(), "the rewards changed: copy before you scale")


def same_seed_same_run(learner: Learner[Any], mdp: MDP) -> None:
    """Bit for bit."""
    (first, walk), (second, other) = train(learner, mdp), train(learner, mdp)
    require(content(first) == content(second), "two runs of one seed differ")
    require((walk.place == other.place).all(), "two runs of one seed end in different states")


def global_random_state_is_untouched(learner: Learner[Any], mdp: MDP) -> None:
    """Neither read nor written."""
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002  # what is guarded
    try:
        runs = []
        for seed in (1, 2):
            np.random.seed(seed)  # noqa: NPY002  # what is guarded
            random.seed(seed)
            before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002  # what is guarded
            runs.append(content(train(learner, mdp)[0]))
            after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002  # what is guarded
            require(before == after, "a run drew from a global generator; draw from `rng`")
        require(runs[0] == runs[1], "a run depends on a global generator")
    finally:
        np.random.set_state(legacy)  # noqa: NPY002  # what is guarded
        random.setstate(plain)


def a_copied_state_goes_its_own_way(learner: Learner[Any], mdp: MDP) -> None:
    """A state has all that was learned, and shares nothing with its copy."""
    state, walk = train(learner, mdp)
    twin, other = copy.deepcopy(state), copy.deepcopy(walk)
    before = content(twin)
    step_by_step(learner, state, walk, 2 * STEPS)
    require(content(twin) == before, "a copy changed with its original")
    step_by_step(learner, twin, other, 2 * STEPS)
    require(content(twin) == content(state), "a copy did not learn the same")


def many_steps_at_once_are_as_one_by_one(learner: Learner[Any], mdp: MDP) -> None:
    """Bit for bit, for a learner that has `advance`, however the steps are divided."""
    slow, one_by_one = train(learner, mdp)
    pace = ((STEPS,), (1, 2, STEPS // 2, STEPS))
    states = [learner.init(mdp.rewards, _stream(Purpose.START)) for _ in pace]
    if not has(learner, LearnsWalking):
        return
    for ends, state in zip(pace, states, strict=True):
        walk = Walk.begin(mdp, SEED)
        for end in ends:
            learner.advance(state, walk, end)
        require(content(state) == content(slow), f"`advance` to {ends} learned something else")
        require((walk.place == one_by_one.place).all(), f"`advance` to {ends} went elsewhere")


def it_learns(learner: Learner[Any], mdp: MDP) -> None:
    """In the second half of its steps, less than a quarter of the regret of uniform play."""
    ours, theirs = _late_regret(learner, mdp), _late_regret(UniformPlay(), mdp)
    require(ours < theirs / 4, f"the regret is {ours:g}; that of uniform play is {theirs:g}")


def train(learner: Learner[Any], mdp: MDP, steps: int = STEPS) -> tuple[Any, Walk]:
    """Return the state of a learner after some steps, one by one, and its walk."""
    walk = Walk.begin(mdp, SEED)
    state = learner.init(mdp.rewards, _stream(Purpose.START))
    step_by_step(learner, state, walk, steps)
    return state, walk


def _late_regret(learner: Learner[Any], mdp: MDP) -> float:
    """Return the regret of the second half of many steps."""
    state, walk = train(learner, mdp, LONG // 2)
    before = walk.regret
    step_by_step(learner, state, walk, LONG)
    return walk.regret - before


def _stream(purpose: Purpose) -> np.random.Generator:
    return generator(SEED, purpose, 0)


Promise = Callable[[Learner[Any], MDP], None]

PROMISES: tuple[Promise, ...] = (
    actions_are_numbers_of_actions,
    acting_changes_nothing,
    acting_twice_does_the_same,
    updating_learns,
    same_seed_same_run,
    global_random_state_is_untouched,
    a_copied_state_goes_its_own_way,
    many_steps_at_once_are_as_one_by_one,
    it_learns,
)


def check_learner(
    learner: Learner[Any],
    *,
    mdp: MDP = EASY,
    expected_failures: Mapping[str, str] | None = None,
) -> None:
    """Raise AssertionError, naming the promise, if a learner breaks one.

    `mdp` is where it is tried; a learner of a finite set needs one of that set. `expected_failures` has the
    promises that the learner cannot keep, each with the reason; one that it keeps after all is an error too.

    >>> from rbmle.control import PSRL
    >>> check_learner(PSRL())
    """
    for _, check in learner_checks(learner, mdp=mdp, expected_failures=expected_failures):
        check()


def learner_checks(
    learner: Learner[Any],
    *,
    mdp: MDP = EASY,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return each promise by name, and a function that checks it; pytest can be parametrised with them."""
    return checks_of(PROMISES, learner, mdp, expected_failures=expected_failures)
