"""The example in which maximum likelihood alone ends at a wrong parameter, and the reward bias helps.

Under certainty equivalence only the transitions of the closed loop are identified, those of the actions that
are taken (Borkar and Varaiya 1979, "Adaptive control of Markov chains, I: finite parameter set").
"""

import numpy as np

from rbmle.control.family import Family
from rbmle.control.mdp import MDP

PARAMETERS = (0.01, 0.02, 0.03)  # Θ
TRUTH = 0.02
BLIND, TELLING = 0, 1
BLIND_REWARD, GOOD_REWARD, BAD_REWARD = 1.0, 1.1, 0.9


def closed_loop() -> Family:
    """Return two states, which action 0 changes with probability ½, and action 1 with ½ − θ.

    Action 0 pays 1; action 1 pays 1.1 if θ = 0.02, and else 0.9. So J* is 1.1 for 0.02 and 1 for the
    others, whose best action never shows which parameter is the true one.

    >>> closed_loop().gains.round(12).tolist()
    [1.0, 1.1, 1.0]
    """
    return Family(parameters=PARAMETERS, mdps=tuple(_mdp(theta) for theta in PARAMETERS))


def _mdp(theta: float) -> MDP:
    """Return the MDP of a parameter."""
    P, R = np.empty((2, 2, 2)), np.empty((2, 2))
    for action, change in ((BLIND, 0.5), (TELLING, 0.5 - theta)):
        P[:, action] = [[1 - change, change], [change, 1 - change]]
    R[:, BLIND] = BLIND_REWARD
    R[:, TELLING] = GOOD_REWARD if theta == TRUTH else BAD_REWARD
    return MDP(transitions=P, rewards=R)
