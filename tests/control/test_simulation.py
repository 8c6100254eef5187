"""Simulations: chance is as stated, regret is what it claims, and no step depends on the others' pace."""

from dataclasses import dataclass

import numpy as np
import pytest

from rbmle.control import (
    MDP,
    PSRL,
    Transition,
    Walk,
    grid_world,
    random_mdp,
    river_swim,
    simulate,
    solve,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Follow one policy, and count what happens."""

    policy: tuple[int, ...]

    def init(self, rewards: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros((*rewards.shape, len(rewards)), np.int64)

    def act(self, state: np.ndarray, place: int, rng: np.random.Generator) -> int:
        return self.policy[place]

    def update(self, state: np.ndarray, seen: Transition, rng: np.random.Generator) -> None:
        state[seen] += 1


@pytest.mark.parametrize("mdp", [river_swim(6), grid_world(3), random_mdp(5, 3, 0)])
def test_transitions_are_as_frequent_as_they_are_likely(mdp: MDP) -> None:
    walk = Walk.begin(mdp, seed=1)
    for s in range(mdp.states):
        for a in range(mdp.actions):
            counts = np.zeros(mdp.states)
            for _ in range(400):
                walk.place[0] = s
                counts[walk.take(a)] += 1
            p = mdp.transitions[s, a]
            assert (counts[p == 0] == 0).all()
            assert (np.abs(counts / 400 - p) < 4.5 * np.sqrt(p * (1 - p) / 400) + 1e-12).all()


def test_an_optimal_policy_has_no_regret_and_earns_its_gain() -> None:
    mdp = random_mdp(4, 2, 3)
    best = solve(mdp)
    found = simulate(mdp, Fixed(policy=tuple(best.policy.tolist())), [3000], seed=0)
    assert found.regrets[-1] == pytest.approx(0.0, abs=1e-9)
    earned = (found.state.sum(axis=2) * mdp.rewards).sum()
    assert earned / 3000 == pytest.approx(best.gain, abs=0.05)


def test_regret_is_the_reward_that_was_missed_up_to_noise() -> None:
    mdp = river_swim(6)
    found = simulate(mdp, Fixed(policy=(0,) * 6), [2000], seed=0)
    earned = (found.state.sum(axis=2) * mdp.rewards).sum()
    assert found.regrets[-1] == pytest.approx(solve(mdp).gain * 2000 - earned, abs=10)


def test_looking_more_often_changes_nothing() -> None:
    often = simulate(river_swim(6), PSRL(), list(range(0, 2001, 7)), seed=4)
    once = simulate(river_swim(6), PSRL(), [often.times[-1]], seed=4)
    assert often.regrets[-1] == once.regrets[-1]
    np.testing.assert_array_equal(often.state.counts, once.state.counts)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="in order, got"):
        simulate(river_swim(6), PSRL(), [5, 3], seed=0)
    with pytest.raises(ValueError, match="from 0 to 5, got 6"):
        simulate(river_swim(6), PSRL(), [5], seed=0, start=6)
    with pytest.raises(ValueError, match="`states` must be an integer of at least 3, got 2"):
        river_swim(2)
    with pytest.raises(ValueError, match="`side` must be an integer of at least 2, got 1"):
        grid_world(1)
