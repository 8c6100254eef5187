"""MDPs are checked where they are made."""

import numpy as np
import pytest

from rbmle.control import MDP


def test_an_mdp_does_not_change_with_the_arrays_it_was_made_of() -> None:
    P, R = np.full((2, 1, 2), 0.5), np.zeros((2, 1))
    mdp = MDP(transitions=P, rewards=R)
    R[0, 0] = 7.0
    assert mdp.rewards[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        mdp.rewards[0, 0] = 7.0


@pytest.mark.parametrize(
    ("P", "R", "message"),
    [
        (np.ones((2, 2)), np.ones((2, 1)), r"shape \(states, actions, states\).*got \(2, 2\)"),
        (np.full((2, 1, 3), 1 / 3), np.ones((2, 1)), r"got \(2, 1, 3\)"),
        (np.full((2, 1, 2), 0.5), np.ones((2, 3)), r"\(2, 1\) by its transitions, got \(2, 3\)"),
        (np.full((2, 1, 2), 0.6), np.ones((2, 1)), r"state 0 and action 0 .*got \[0.6, 0.6\]"),
        (np.array([[[1.5, -0.5]], [[1, 0]]]), np.ones((2, 1)), r"must be 0 or more and sum to 1"),
        (np.full((2, 1, 2), np.nan), np.ones((2, 1)), r"sum to 1"),
        (np.full((2, 1, 2), 0.5), np.array([[0.0], [np.nan]]), r"got nan for state 1 and action 0"),
    ],
)
def test_an_invalid_mdp_is_refused(P: np.ndarray, R: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MDP(transitions=P, rewards=R)
