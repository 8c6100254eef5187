"""Finite Markov decision processes: values, planning by their equations, and examples to learn in."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.checks import whole_number
from rbmle.core.randomness import Purpose, generator
from rbmle.engine.markov import KNOWN, iterate

ROUNDING = 1e-9  # tolerance of the sum of probabilities
MOST_ITERATIONS = 1_000_000
TIE = 1e-11  # an action must be better by more, in units of the largest value, to replace another
WORST_CONDITION = 1e14  # of the equations of one policy
NEAR = 1e-7  # how close value iteration comes before policy iteration makes it exact
LEFT, RIGHT = 0, 1
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
SLIP = 0.1  # to each side, of a step on the grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MDP:
    """P(s′ | s, a) = `transitions[s, a, s′]`, and `rewards[s, a]` for a in s; both become read-only copies.

    >>> import numpy as np
    >>> chain = MDP(transitions=np.full((2, 1, 2), 0.5), rewards=np.array([[0.0], [1.0]]))
    >>> chain.states, chain.actions
    (2, 1)
    """

    transitions: Float[np.ndarray, "states actions states"]
    rewards: Float[np.ndarray, "states actions"]

    def __post_init__(self) -> None:
        P, R = (np.array(values, np.float64) for values in (self.transitions, self.rewards))
        if P.ndim != 3 or P.shape[0] != P.shape[2] or P.size == 0:
            raise ValueError(
                "`transitions` must have the shape (states, actions, states), "
                f"with at least one state and one action, got {P.shape}"
            )
        if R.shape != P.shape[:2]:
            raise ValueError(
                f"`rewards` must have the shape (states, actions), {P.shape[:2]} by its transitions, "
                f"got {R.shape}"
            )
        is_bad = ~((P >= 0).all(axis=2) & (np.abs(P.sum(axis=2) - 1) <= ROUNDING))
        if is_bad.any():
            s, a = (int(i) for i in np.argwhere(is_bad)[0])
            raise ValueError(
                f"the probabilities of state {s} and action {a} must be 0 or more and sum to 1, "
                f"got {P[s, a].tolist()}; divide them by their sum if they are counts"
            )
        if not np.isfinite(R).all():
            s, a = (int(i) for i in np.argwhere(~np.isfinite(R))[0])
            raise ValueError(
                f"a reward must be a finite number, got {R[s, a]} for state {s} and action {a}"
            )
        for name, array in (("transitions", P), ("rewards", R)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def states(self) -> int:
        """Return the number of states."""
        return int(self.rewards.shape[0])

    @property
    def actions(self) -> int:
        """Return the number of actions."""
        return int(self.rewards.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A policy, its average reward J, and its relative values h with h(0) = 0.

    J* + h(s) = max_a { R(s, a) + Σ_j P(j | s, a) h(j) } for an optimal policy: J* is the gain, and h are the
    relative values, or the bias (Puterman 1994, "Markov decision processes", chapter 8). The gain is assumed
    to be the same for all states: every state can be reached from every other, or the best policy has one
    recurrent class.
    """

    gain: float  # J
    values: Float[np.ndarray, " states"]  # h
    policy: Int[np.ndarray, " states"]


def solve(mdp: MDP) -> Solution:
    """Return an optimal policy, exactly: value iteration until it is close, then policy iteration.

    >>> import numpy as np
    >>> stay_or_go = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    >>> solve(MDP(transitions=stay_or_go, rewards=np.array([[0.0, 0.0], [1.0, 0.0]]))).policy.tolist()
    [1, 0]
    """
    return policy_iteration(mdp, value_iteration(mdp, tolerance=NEAR).policy)


def value_iteration(mdp: MDP, tolerance: float = 1e-10) -> Solution:
    """Return a greedy policy, with its optimal gain within the tolerance."""
    h, policy = np.zeros(mdp.states), np.zeros(mdp.states, np.int64)
    slack = np.zeros_like(mdp.rewards)
    # Copies, because numba would compile the kernel again for read-only arrays.
    P, R = mdp.transitions.copy(), mdp.rewards.copy()
    gain, error = iterate(KNOWN, P, R, slack, tolerance, MOST_ITERATIONS, h, policy)
    if error > tolerance:
        raise ValueError(
            f"after {MOST_ITERATIONS:,} iterations the gain is known to ±{error:g} only, not to "
            f"±{tolerance:g}; check that every state can be reached from every other"
        )
    return Solution(gain=gain, values=h, policy=policy)


def policy_iteration(mdp: MDP, start: Int[np.ndarray, " states"] | None = None) -> Solution:
    """Return an optimal policy by Howard's iteration: evaluate, improve, until nothing improves.

    Without `start` it begins with the actions of the largest rewards.
    """
    policy = np.argmax(mdp.rewards, axis=1) if start is None else start
    while True:
        solution = evaluate(mdp, policy)
        Q = mdp.rewards + mdp.transitions @ solution.values
        kept = Q[np.arange(mdp.states), policy]
        is_better = Q.max(axis=1) > kept + TIE * (1 + np.abs(Q).max())
        if not is_better.any():
            return solution
        policy = np.where(is_better, Q.argmax(axis=1), policy)


def evaluate(mdp: MDP, policy: Int[np.ndarray, " states"]) -> Solution:
    """Return gain and values of a policy: J + h = r + P h with h(0) = 0, by linear equations."""
    places = np.arange(mdp.states)
    P, r = mdp.transitions[places, policy], mdp.rewards[places, policy]
    A = np.eye(mdp.states) - P
    A[:, 0] = 1.0  # J replaces h(0), which is 0
    if np.linalg.cond(A) > WORST_CONDITION:
        raise ValueError(
            f"the policy {policy.tolist()} has more than one recurrent class, so its average reward "
            "depends on where it starts; begin from another policy, or use value_iteration"
        )
    x = np.linalg.solve(A, r)
    return Solution(gain=float(x[0]), values=np.r_[0.0, x[1:]], policy=np.array(policy, np.int64))


def river_swim(states: int = 6) -> MDP:
    """Return RiverSwim (Strehl and Littman 2008), with the numbers of Osband, Russo and Van Roy (2013).

    Left goes with the current, and pays 0.005 at the left bank. Right goes against it: about one stroke in
    three succeeds, and only the right bank pays, namely 1.
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

    A step goes in its direction with probability 0.8, and to each side of it with 0.1; at a wall it stays.
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
