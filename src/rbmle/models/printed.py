"""The learner of the paper as it is printed: sections 2.2 and 4, and the constants of its appendix F."""

from rbmle.models.network import Network
from rbmle.models.regression import Regression
from rbmle.models.training import FullBatch

J, ETA, LAMBDA = 100, 0.001, 0.001


def printed_model() -> Regression:
    """Return a network with the paired start, trained from θ₀ in each round: J = 100 steps of η = 0.001 on ℓ_λ.

    It never forgets. The number of features must be even, and each context (x, x)/√2 for f(x; θ₀) = 0. A round
    costs J passes over all rounds before it.
    """
    return Regression(
        network=Network(start="paired"),
        ridge=LAMBDA,
        training=FullBatch(steps=J, rate=ETA, objective="sum", warm=False),
        alarm=0.0,
    )
