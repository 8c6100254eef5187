"""Z = λI + Σ g gᵀ/m, and what policies ask of its inverse: widths and corrections."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Indices, Rows
from rbmle.engine.layout import Net, Parameters
from rbmle.engine.precision_diagonal import diagonal_add, diagonal_corrected, diagonal_estimates
from rbmle.models.precision_exact import ExactState


class Precision(Protocol):
    """How Z is kept; m is that of the network, see `Network.m`."""

    def init(self, net: Net, ridge: float) -> Any:
        """Return Z = λI."""
        ...

    def estimates(self, state: Any, net: Net, rows: Rows, m: float) -> tuple[Indices, Indices]:
        """Return f(x_i; θ) and ‖g_i‖²_{Z⁻¹} for every context."""
        ...

    def corrected(self, state: Any, net: Net, rows: Rows, amount: float, m: float) -> Indices:
        """Return f(x_i; θ + amount · Z⁻¹ g_i) for every context."""
        ...

    def add(self, state: Any, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m for a single context."""
        ...

    def grow(self, state: Any, net: Net, ridge: float) -> None:
        """Make room for the blocks that the network has grown by."""
        ...

    def frozen(self, state: Any) -> Any:
        """Return Z as it is, which stays so when the state learns."""
        ...


@dataclass(slots=True, kw_only=True)
class DiagonalState:
    """D = 1/diag(Z), in the shape of the parameters."""

    D: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """The inverse of diag(Z) in the place of Z⁻¹, as in the paper's experiments."""

    def init(self, net: Net, ridge: float) -> DiagonalState:
        """Return Z = λI."""
        _check(net, "Diagonal")
        return DiagonalState(D=Parameters(*(np.full_like(part, 1 / ridge) for part in net.theta)))

    def estimates(
        self, state: DiagonalState, net: Net, rows: Rows, m: float
    ) -> tuple[Indices, Indices]:
        """Return f(x_i; θ) and Σ g_i²/diag(Z) for every context."""
        f, norms = np.empty(len(rows.blocks)), np.empty(len(rows.blocks))
        diagonal_estimates(net, rows, state.D, f, norms)
        return f, norms

    def corrected(
        self, state: DiagonalState, net: Net, rows: Rows, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · g_i/diag(Z)) for every context."""
        f = np.empty(len(rows.blocks))
        diagonal_corrected(net, rows, state.D, amount, f)
        return f

    def add(self, state: DiagonalState, net: Net, rows: Rows, m: float) -> None:
        """diag(Z) ← diag(Z) + g²/m."""
        diagonal_add(net, rows, 1 / m, state.D)

    def grow(self, state: DiagonalState, net: Net, ridge: float) -> None:
        """Give the new rows of W_1 the precision λ."""
        more = len(net.theta.first) - len(state.D.first)
        new = np.full((more, state.D.first.shape[1]), 1 / ridge, state.D.first.dtype)
        state.D = state.D._replace(first=np.concatenate([state.D.first, new]))

    def frozen(self, state: DiagonalState) -> DiagonalState:
        """Return a copy."""
        return DiagonalState(D=Parameters(*(part.copy() for part in state.D)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Z⁻¹ itself, equal to the dense p × p inverse within rounding.

    By the Gram matrix of the gradients while that is smaller, t²/2 numbers, and by the p × p inverse
    and Sherman and Morrison's formula from then on, p² numbers. Both grow large: this is for
    faithfulness; the cost of a round grows with the rounds until there are more of them than p.
    """

    def init(self, net: Net, ridge: float) -> ExactState:
        """Return Z = λI."""
        _check(net, "Exact")
        return ExactState.start(net, ridge)

    def estimates(
        self, state: ExactState, net: Net, rows: Rows, m: float
    ) -> tuple[Indices, Indices]:
        """Return f(x_i; θ) and ‖g_i‖²_{Z⁻¹} for every context."""
        return state.estimates(net, rows, m)

    def corrected(
        self, state: ExactState, net: Net, rows: Rows, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · Z⁻¹ g_i) for every context."""
        return state.corrected(net, rows, amount, m)

    def add(self, state: ExactState, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        state.add(net, rows, m)

    def grow(self, state: ExactState, net: Net, ridge: float) -> None:
        """Give the new rows of W_1 the precision λ."""
        state.grow(net)

    def frozen(self, state: ExactState) -> ExactState:
        """Return a copy of the inverse; gradients are only appended, so they are shared."""
        return replace(state, inverse=state.inverse.copy())


def _check(net: object, name: str) -> None:
    """Raise SettingError for a network of another library."""
    if not isinstance(net, Net):
        raise SettingError(
            f"the precision {name}() is for networks of rbmle, got a {type(net).__name__}; give the policy "
            "the precision that goes with its model, such as precision=TorchDiagonal()"
        )
