"""Average-reward planning, by hand and against linear programming."""

import numpy as np
import pytest
from scipy.optimize import linprog

from rbmle.control import (
    MDP,
    evaluate,
    grid_world,
    policy_iteration,
    random_mdp,
    river_swim,
    solve,
    value_iteration,
)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.1, 0.3), (1.0, 1.0), (0.02, 0.9)])
def test_the_gain_of_a_chain_of_two_states_is_the_share_of_time_in_the_state_that_pays(
    p: float, q: float
) -> None:
    """0 goes to 1 with probability p, 1 to 0 with q: the share of 1 is p/(p + q), and h(1) = 1/(p + q)."""
    chain = MDP(transitions=np.array([[[1 - p, p]], [[q, 1 - q]]]), rewards=np.array([[0.0], [1]]))
    for found in (solve(chain), policy_iteration(chain), value_iteration(chain, tolerance=1e-12)):
        assert found.gain == pytest.approx(p / (p + q), abs=1e-11)
        assert found.values.tolist() == pytest.approx([0, 1 / (p + q)], abs=1e-9)


def test_the_better_of_two_actions_is_found() -> None:
    """In 0, action 1 pays nothing and leads to 1 at once; 1 pays 3 and leads back: (0 + 3)/2 > 1."""
    P = np.array([[[1.0, 0], [0, 1]], [[1, 0], [1, 0]]])
    found = solve(MDP(transitions=P, rewards=np.array([[1.0, 0], [3, 3]])))
    assert found.policy[0] == 1
    assert found.gain == pytest.approx(1.5, abs=1e-14)


def test_two_hundred_random_mdps_have_the_gains_of_linear_programming() -> None:
    for seed in range(200):
        states, actions = 2 + seed % 7, 1 + seed % 4
        mdp = random_mdp(states, actions, seed, concentration=0.2 + seed % 3)
        best = _by_linear_programming(mdp)
        assert policy_iteration(mdp).gain == pytest.approx(best, abs=1e-9)
        assert value_iteration(mdp, tolerance=1e-10).gain == pytest.approx(best, abs=1e-9)
        assert solve(mdp).gain == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("mdp", [river_swim(6), river_swim(12), grid_world(3)])
def test_the_examples_have_the_gains_of_linear_programming(mdp: MDP) -> None:
    assert solve(mdp).gain == pytest.approx(_by_linear_programming(mdp), abs=1e-9)


def test_a_chain_with_a_period_converges() -> None:
    ring = MDP(
        transitions=np.roll(np.eye(3), 1, axis=1)[:, None], rewards=np.array([[0.0], [0], [6]])
    )
    assert value_iteration(ring).gain == pytest.approx(2, abs=1e-9)


def test_a_policy_with_two_recurrent_classes_is_refused() -> None:
    apart = MDP(transitions=np.eye(2)[:, None], rewards=np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="more than one recurrent class"):
        evaluate(apart, np.zeros(2, np.int64))


def _by_linear_programming(mdp: MDP) -> float:
    """Return max Σ x R over x ≥ 0 with Σ x = 1 and as much flow into each state as out of it."""
    into = mdp.transitions.transpose(2, 0, 1).reshape(mdp.states, -1)
    out = np.repeat(np.eye(mdp.states), mdp.actions, axis=1)
    flow = (into - out)[1:]  # the first row follows from the others
    A = np.vstack([flow, np.ones(mdp.states * mdp.actions)])
    found = linprog(
        -mdp.rewards.ravel(),
        A_eq=A,
        b_eq=np.r_[np.zeros(mdp.states - 1), 1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.success
    return float(-found.fun)
