"""How networks and contexts lie in memory: tuples of arrays that every kernel takes."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Rows


class Parameters(NamedTuple):
    """θ of f(x; θ) = scale · (W_L σ(W_{L−1} … σ(W_1 x + b_1) … + b_{L−1}) + b_L).

    W_1 has a row of `width` units for each (block, feature), at block · features + feature: a
    context that lives in one block touches the rows of its non-zero features and no others.
    """

    first: Float[np.ndarray, "rows width"]  # W_1, transposed
    hidden: Float[np.ndarray, "depth-2 width width"]  # W_2 … W_{L−1}, as [layer, from, to]
    output: Float[np.ndarray, " width"]  # W_L
    biases: Float[np.ndarray, "depth-1 width"]  # b_1 … b_{L−1}
    shift: Float[np.ndarray, " 1"]  # b_L


class Net(NamedTuple):
    """A network: its parameters, its start, and how far the pull to the start has got.

    The pull (the ridge) shrinks θ − θ₀ of every row a little in every round. Rows of W_1 are
    brought up to date when they are touched: `ages[row]` is the `clock` at that time, and
    exp(clock − age) is the shrinkage that the row still owes. All else is always up to date.
    """

    theta: Parameters
    start: Parameters  # θ₀
    ages: Float[np.ndarray, " rows"]
    clock: Float[np.ndarray, " 1"]
    features: int  # rows of W_1 in a block
    scale: float  # √m in the paper's network, else 1
    biased: float  # 1 if biases are trained, 0 if the network has none


class Walk(NamedTuple):
    """What training moves, where θ of a network is the average of its points; else empty."""

    theta: Parameters
    ages: Float[np.ndarray, " rows"]  # as in `Net`
    clock: Float[np.ndarray, " 1"]


class Factors(NamedTuple):
    """Gradients g(x_i; θ) as factors: the gradient of layer l is δ_l ⊗ h_{l−1}, with h_0 = x_i."""

    rows: Rows  # x_i
    hiddens: Float[np.ndarray, "n depth-1 width"]  # h_1 … h_{L−1}
    deltas: Float[np.ndarray, "n depth-1 width"]  # δ_1 … δ_{L−1}, ∂f/∂(input of layer l)


__all__ = ["Factors", "Net", "Parameters", "Rows", "Walk"]
