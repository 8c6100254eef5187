"""The arguments of kernels: networks, contexts, histories and settings as tuples of arrays and numbers."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

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
    """A network: its parameters, its start, and how much of the pull to the start each row still owes.

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


class TrainingWalk(NamedTuple):
    """The point that training moves, if θ of a network is an average of such points; else empty."""

    theta: Parameters
    ages: Float[np.ndarray, " rows"]  # as in `Net`; UNTOUCHED where no step has moved a row
    clock: Float[np.ndarray, " 2"]  # as in `Net`, and what it was when the average last followed


class Factors(NamedTuple):
    """Gradients g(x_i; θ) as factors: the gradient of layer l is δ_l ⊗ h_{l−1}, with h_0 = x_i."""

    rows: Rows  # x_i
    hiddens: Float[np.ndarray, "n depth-1 width"]  # h_1 … h_{L−1}
    deltas: Float[np.ndarray, "n depth-1 width"]  # δ_1 … δ_{L−1}, ∂f/∂(input of layer l)


class Past(NamedTuple):
    """The arrays of a history; see `models/history.py`."""

    rows: Rows
    squares: Float[np.ndarray, " slots"]
    rewards: Float[np.ndarray, " slots"]
    serials: Int[np.ndarray, " slots"]
    places: Int[np.ndarray, " slots"]
    members: Int[np.ndarray, " members"]
    member_starts: Int[np.ndarray, " blocks"]
    member_counts: Int[np.ndarray, " blocks"]
    member_limits: Int[np.ndarray, " blocks"]


class Samples(NamedTuple):
    """The first `count` rows and rewards."""

    rows: Rows
    rewards: Float[np.ndarray, " n"]
    count: int


class Arrivals(NamedTuple):
    """Observations to be added to the history one after the other, each with its slot."""

    rows: Rows
    rewards: Float[np.ndarray, " n"]
    slots: Int[np.ndarray, " n"]
    listed: int  # the number of slots of the memory
    is_fitted: Bool[np.ndarray, " n"]
    keys: UInt64[np.ndarray, " n"]  # of the fit to each
    weights: Float[np.ndarray, " n"]  # in the average, of the walk's point after each


class Fit(NamedTuple):
    """J steps on ℓ_λ, and the view of the history: the units of rewards, their noise, and the share seen."""

    steps: int  # J
    rate: float  # η
    ridge: float  # mλ
    mean: int  # the address of b′
    noise: float  # standard deviation of one draw for each observation and round
    share: float
    share_key: np.uint64  # which share
    alarm: float  # see `notice`
    is_standardised: bool  # the network learns (r − centre) · gain; see `units_of`
    centre: float
    gain: float


class Push(NamedTuple):
    """How an observation changes Z: 1/D grows by weight · g². With a weight of 0 there is no Z."""

    weight: float
    D: Parameters


class Bias(NamedTuple):
    """The reward bias α f(x_a; θ) of an objective. With an α of 0 there is none, and x_a is not read."""

    contexts: Rows
    arm: int
    alpha: float


class FeelGood(NamedTuple):
    """Steps of one amount on min(cap, max_a f(x_a; θ))."""

    steps: int
    amount: float
    cap: float


__all__ = [
    "Arrivals",
    "Bias",
    "Factors",
    "FeelGood",
    "Fit",
    "Net",
    "Parameters",
    "Past",
    "Push",
    "Rows",
    "Samples",
    "TrainingWalk",
]
