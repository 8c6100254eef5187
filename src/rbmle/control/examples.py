"""MDPs to learn in: RiverSwim, a random one, and a grid."""

import numpy as np

from rbmle.control.mdp import MDP
from rbmle.core.checks import whole_number
from rbmle.core.randomness import Purpose, generator

LEFT, RIGHT = 0, 1
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
SLIP = 0.1  # to each side, of a step on the grid


def river_swim(states: int = 6) -> MDP:
    """Return RiverSwim (Strehl and Littman 2008), with the numbers of Osband, Russo and Van Roy (2013).

    Left goes with the current, and pays 0.005 at the left bank. Right goes against it: about one stroke of
    three succeeds, and only the right bank pays, 1.
    """
    n = whole_number("states", states, least=3)
    P, R = np.zeros((n, 2, n)), np.zeros((n, 2))
    for s in range(n):
        P[s, LEFT, max(s - 1, 0)] = 1.0
    P[0, RIGHT, :2] = 0.4, 0.6
    for s in range(1, n - 1):
        P[s, RIGHT, s - 1 : s + 2] = 0.05, 0.6, 0.35
    P[n - 1, RIGHT, n - 2 :] = 0.4, 0.6
    R[0, LEFT], R[n - 1, RIGHT] = 0.005, 1.0
    return MDP(transitions=P, rewards=R)


def random_mdp(states: int, actions: int, seed: int, concentration: float = 1.0) -> MDP:
    """Return P(· | s, a) ~ Dirichlet(concentration, …) and R(s, a) ~ U(0, 1), a function of the seed."""
    rng = generator(seed, Purpose.ENVIRONMENT, f"random MDP {states} {actions} {concentration}")
    drawn = rng.standard_gamma(concentration, size=(states, actions, states)) + np.finfo(float).tiny
    P = drawn / drawn.sum(axis=2, keepdims=True)
    return MDP(transitions=P, rewards=rng.random((states, actions)))


def grid_world(side: int = 4) -> MDP:
    """Return a square with a goal in the last corner, which pays 1 and leads back to the first corner.

    A step goes where it should with probability 0.8, and to each side of that with 0.1; who meets a wall stays.
    """
    n = whole_number("side", side, least=2)
    P, R = np.zeros((n * n, 4, n * n)), np.zeros((n * n, 4))
    goal = n * n - 1
    for s in range(goal):
        for a in range(4):
            for turn, chance in ((0, 1 - 2 * SLIP), (1, SLIP), (-1, SLIP)):
                down, right = MOVES[(a + turn) % 4]
                row, column = s // n + down, s % n + right
                is_inside = 0 <= row < n and 0 <= column < n
                P[s, a, row * n + column if is_inside else s] += chance
    P[goal, :, 0], R[goal] = 1.0, 1.0
    return MDP(transitions=P, rewards=R)
