"""diag(Z) = λ + Σ g²/m over the gradients of a network of PyTorch."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from rbmle.core.types import Indices
from rbmle.interop.torch_network import TorchNet, TorchRows, put


@dataclass(slots=True, kw_only=True)
class TorchDiagonalState:
    """diag(Z), and the shapes of the parameters that it is for."""

    Z: Float[np.ndarray, " p"]
    shapes: list[Int[np.ndarray, " dimensions"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDiagonal:
    """The inverse of diag(Z) in the place of Z⁻¹, as `Diagonal` is for networks of rbmle."""

    def init(self, net: TorchNet, ridge: float) -> TorchDiagonalState:
        """Return Z = λI."""
        return TorchDiagonalState(Z=np.full_like(net.theta, ridge), shapes=list(net.shapes))

    def estimates(
        self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, m: float
    ) -> tuple[Indices, Indices]:
        """Return f(x_i; θ) and Σ g_i²/diag(Z) for every context."""
        f, g = rows.network.gradients(net, rows.rows)
        return f, (g * g / state.Z).sum(axis=1, dtype=np.float64)

    def corrected(
        self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · g_i/diag(Z)) for every context."""
        network = rows.network
        _, g = network.gradients(net, rows.rows)
        moved = torch.from_numpy((net.theta + amount * g / state.Z).astype(network.dtype))
        X = network.inputs(net, rows.rows)
        with torch.no_grad():
            each = [network.f(net, moved[i], X[i : i + 1])[0] for i in range(len(X))]
        return np.array(each, np.float64)

    def add(self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, m: float) -> None:
        """diag(Z) ← diag(Z) + g²/m."""
        _, (g,) = rows.network.gradients(net, rows.rows)
        state.Z += g * g / m

    def grow(self, state: TorchDiagonalState, net: TorchNet, ridge: float) -> None:
        """Give new parameters the precision λ."""
        Z = np.full_like(net.theta, ridge)
        put(net.shapes, Z, state.shapes, state.Z)
        state.Z, state.shapes = Z, list(net.shapes)

    def frozen(self, state: TorchDiagonalState) -> TorchDiagonalState:
        """Return a copy."""
        return TorchDiagonalState(Z=state.Z.copy(), shapes=state.shapes)
