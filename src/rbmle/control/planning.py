"""The best average reward of a known MDP: J* + h(s) = max_a { R(s, a) + Σ_j P(j | s, a) h(j) }.

J* is the gain, h are relative values, or the bias (Puterman 1994, "Markov decision processes", chapter 8). One
gain for all states is taken for granted: every state can be reached from every other, or the best policy has
one recurrent class.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.mdp import MDP
from rbmle.engine.relative_values import KNOWN, iterate

MOST_ITERATIONS = 1_000_000
TIE = 1e-11  # an action must be better by more, in units of the largest value, to replace another
WORST_CONDITION = 1e14  # of the equations of one policy
NEAR = 1e-7  # how close value iteration comes before policy iteration makes it exact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A policy, its average reward J, and its relative values h with h(0) = 0."""

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
    # Copies, since kernels would be compiled once more for arrays that are read-only.
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
        found = evaluate(mdp, policy)
        Q = mdp.rewards + mdp.transitions @ found.values
        kept = Q[np.arange(mdp.states), policy]
        is_better = Q.max(axis=1) > kept + TIE * (1 + np.abs(Q).max())
        if not is_better.any():
            return found
        policy = np.where(is_better, Q.argmax(axis=1), policy)


def evaluate(mdp: MDP, policy: Int[np.ndarray, " states"]) -> Solution:
    """Return gain and values of a policy: J + h = r + P h with h(0) = 0, by linear equations."""
    places = np.arange(mdp.states)
    P, r = mdp.transitions[places, policy], mdp.rewards[places, policy]
    A = np.eye(mdp.states) - P
    A[:, 0] = 1.0  # J takes the place of h(0)
    if np.linalg.cond(A) > WORST_CONDITION:
        raise ValueError(
            f"the policy {policy.tolist()} has more than one recurrent class, so its average reward "
            "depends on where it starts; begin from another policy, or use value_iteration"
        )
    x = np.linalg.solve(A, r)
    return Solution(gain=float(x[0]), values=np.r_[0.0, x[1:]], policy=np.array(policy, np.int64))
