"""The learner of the paper as it is printed: sections 2.2 and 4, and the constants of its appendix F."""

from typing import Literal

from rbmle.models.history import Memory
from rbmle.models.network import Network
from rbmle.models.regression import Regression
from rbmle.models.training import FullBatch

J, ETA, LAMBDA = 100, 0.001, 0.001


def printed_model(*, objective: Literal["sum", "mean"] = "sum", warm: bool = False) -> Regression:
    """Return a network with the paired start and, in each round, J = 100 steps of η = 0.001.

    The paper does not say where a round's ascent starts, or whether its steps are on ℓ_λ or on ℓ_λ/t. Read
    literally they are on the sum ℓ_λ, from θ₀. With `objective="mean"` they are on ℓ_λ/t, as in the published
    code of NeuralUCB, and with `warm=True` they start from the last round's θ̂.

    It never forgets. The number of features must be even, and each context (x, x)/√2 for f(x; θ₀) = 0. A round
    costs J passes over all rounds before it.
    """
    return Regression(
        network=Network(start="paired"),
        ridge=LAMBDA,
        training=FullBatch(steps=J, rate=ETA, objective=objective, warm=warm),
        memory=Memory(),
        alarm=0.0,
        is_standardised=False,
    )
