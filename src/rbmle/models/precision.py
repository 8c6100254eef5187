"""Z = λI + Σ g gᵀ/m, and what policies ask of its inverse: widths and corrections."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rbmle.core.types import Indices
from rbmle.engine.layout import Factors, Net, Parameters
from rbmle.engine.precision_diagonal import diagonal_add, diagonal_corrected, diagonal_norms
from rbmle.models.precision_exact import ExactState


class Precision(Protocol):
    """How Z is kept; m is that of the network, see `Network.m`."""

    def init(self, net: Net, ridge: float) -> Any:
        """Return Z = λI."""
        ...

    def norms(self, state: Any, net: Net, g: Factors, m: float) -> Indices:
        """Return ‖g_i‖²_{Z⁻¹} for every gradient."""
        ...

    def corrected(self, state: Any, net: Net, g: Factors, amount: float, m: float) -> Indices:
        """Return f(x_i; θ + amount · Z⁻¹ g_i) for every gradient."""
        ...

    def add(self, state: Any, net: Net, g: Factors, m: float) -> None:
        """Z ← Z + g gᵀ/m for a single gradient."""
        ...

    def grow(self, state: Any, net: Net, ridge: float) -> None:
        """Make room for the blocks that the network has grown by."""
        ...


@dataclass(slots=True, kw_only=True)
class DiagonalState:
    """diag(Z), in the shape of the parameters."""

    Z: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """The inverse of diag(Z) in the place of Z⁻¹, as in the paper's experiments."""

    def init(self, net: Net, ridge: float) -> DiagonalState:
        """Return Z = λI."""
        return DiagonalState(Z=Parameters(*(np.full_like(part, ridge) for part in net.theta)))

    def norms(self, state: DiagonalState, net: Net, g: Factors, m: float) -> Indices:
        """Return Σ g²/diag(Z) for every gradient."""
        norms = np.empty(len(g.deltas))
        diagonal_norms(net, g, state.Z, norms)
        return norms

    def corrected(
        self, state: DiagonalState, net: Net, g: Factors, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · g_i/diag(Z)) for every gradient."""
        f = np.empty(len(g.deltas))
        diagonal_corrected(net, g, state.Z, amount, f)
        return f

    def add(self, state: DiagonalState, net: Net, g: Factors, m: float) -> None:
        """diag(Z) ← diag(Z) + g²/m."""
        diagonal_add(net, g, 0, 1 / m, state.Z)

    def grow(self, state: DiagonalState, net: Net, ridge: float) -> None:
        """Give the new rows of W_1 the precision λ."""
        more = len(net.theta.first) - len(state.Z.first)
        new = np.full((more, state.Z.first.shape[1]), ridge, state.Z.first.dtype)
        state.Z = state.Z._replace(first=np.concatenate([state.Z.first, new]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Z⁻¹ itself, equal to the dense p × p inverse within rounding.

    By the Gram matrix of the gradients while that is smaller, t²/2 numbers, and by the p × p inverse
    and Sherman and Morrison's formula from then on, p² numbers. Both grow large: this is for
    faithfulness; the cost of a round grows with the rounds until there are more of them than p.
    """

    def init(self, net: Net, ridge: float) -> ExactState:
        """Return Z = λI."""
        return ExactState.start(net, ridge)

    def norms(self, state: ExactState, net: Net, g: Factors, m: float) -> Indices:
        """Return ‖g_i‖²_{Z⁻¹} for every gradient."""
        return state.norms(net, g, m)

    def corrected(self, state: ExactState, net: Net, g: Factors, amount: float, m: float) -> Indices:
        """Return f(x_i; θ + amount · Z⁻¹ g_i) for every gradient."""
        return state.corrected(net, g, amount, m)

    def add(self, state: ExactState, net: Net, g: Factors, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        state.add(net, g, m)

    def grow(self, state: ExactState, net: Net, ridge: float) -> None:
        """Give the new rows of W_1 the precision λ."""
        state.grow(net)
