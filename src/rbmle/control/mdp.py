"""Finite Markov decision processes, as values."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

ROUNDING = 1e-9  # by which probabilities may miss the sum 1


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
        """Raise ValueError unless shapes fit, rows are distributions and rewards are finite."""
        P, R = (np.array(given, np.float64) for given in (self.transitions, self.rewards))
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
