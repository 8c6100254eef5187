"""The precision matrix Z of a network's gradients: its diagonal, or Z⁻¹ exactly."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import SettingError
from rbmle.core.types import Indices, Rows, rows_at
from rbmle.engine.layout import Factors, Net, Parameters
from rbmle.engine.network import differentiate, predict
from rbmle.engine.precision import (
    backward_solve,
    diagonal_add,
    diagonal_corrected,
    diagonal_estimates,
    flatten_gradient,
    forward_solve,
    gram,
    gram_corrected,
)

FIRST_CAPACITY = 64


@dataclass(slots=True, kw_only=True)
class ExactState:
    """The gradients of played contexts, in factors, with L of λI + GGᵀ/m = LLᵀ (the Gram form); or Z⁻¹.

    In the Gram form `inverse` is empty; later the other arrays are.
    """

    ridge: float  # λ
    count: int  # gradients in the Gram form
    starts: Int[np.ndarray, " slots"]
    lengths: Int[np.ndarray, " slots"]
    blocks: Int[np.ndarray, " slots"]
    indices: Int[np.ndarray, " pool"]
    values: Float[np.ndarray, " pool"]
    hiddens: Float[np.ndarray, "slots depth-1 width"]
    deltas: Float[np.ndarray, "slots depth-1 width"]
    L: Float[np.ndarray, " packed"]
    inverse: Float[np.ndarray, "p p"]  # Z⁻¹

    @staticmethod
    def start(net: Net, ridge: float) -> "ExactState":
        """Return Z = λI."""
        slots, (layers, width) = FIRST_CAPACITY, net.theta.biases.shape
        dtype = net.theta.first.dtype
        return ExactState(
            ridge=ridge,
            count=0,
            starts=np.zeros(slots, np.int64),
            lengths=np.zeros(slots, np.int64),
            blocks=np.zeros(slots, np.int64),
            indices=np.zeros(slots, np.int32),
            values=np.zeros(slots, dtype),
            hiddens=np.zeros((slots, layers, width), dtype),
            deltas=np.zeros((slots, layers, width), dtype),
            L=np.zeros(slots),
            inverse=np.zeros((0, 0)),
        )

    @property
    def is_dense(self) -> bool:
        return self.inverse.size > 0

    @property
    def past(self) -> Factors:
        rows = Rows(self.starts, self.lengths, self.blocks, self.indices, self.values)
        return Factors(rows, self.hiddens, self.deltas)

    def half_solve(self, net: Net, g: Factors, m: float) -> tuple[np.ndarray, np.ndarray]:
        """Return L⁻¹k_i with k_i = G g_i/√m, and ‖g_i‖²."""
        n = len(g.deltas)
        k, squares = np.empty((n, self.count)), np.empty(n)
        gram(net, self.past, self.count, g, k, squares)
        k /= m**0.5
        forward_solve(self.L, self.count, k)
        return k, squares

    def remember(self, g: Factors) -> None:
        """Append a gradient to the past."""
        at, length = self.count, int(g.rows.lengths[0])
        start = int(self.starts[at - 1] + self.lengths[at - 1]) if at else 0
        for name in ("starts", "lengths", "blocks", "hiddens", "deltas"):
            setattr(self, name, _room(getattr(self, name), at + 1))
        self.indices = _room(self.indices, start + length)
        self.values = _room(self.values, start + length)
        first = int(g.rows.starts[0])
        self.indices[start : start + length] = g.rows.indices[first : first + length]
        self.values[start : start + length] = g.rows.values[first : first + length]
        self.starts[at], self.lengths[at], self.blocks[at] = start, length, g.rows.blocks[0]
        self.hiddens[at], self.deltas[at] = g.hiddens[0], g.deltas[0]
        self.count = at + 1

    def become_dense(self, net: Net, m: float) -> None:
        """Compute Z⁻¹ as a matrix, and forget the Gram form."""
        rows = rows_at(self.past.rows, slice(self.count))
        past = Factors(rows, self.hiddens[: self.count], self.deltas[: self.count])
        G = _flat(net, past)
        Z = self.ridge * np.eye(_size(net)) + G.T @ G / m
        empty = ExactState.start(net, self.ridge)
        for name in ("starts", "lengths", "blocks", "indices", "values", "hiddens", "deltas", "L"):
            setattr(self, name, getattr(empty, name))
        self.count = 0
        self.inverse = np.linalg.inv(Z)


def _size(net: Net) -> int:
    return sum(part.size for part in net.theta)


def _flat(net: Net, g: Factors) -> np.ndarray:
    G = np.empty((len(g.deltas), _size(net)))
    for i, row in enumerate(G):
        flatten_gradient(net, g, i, row)
    return G


def _shift(net: Net, step: Float[np.ndarray, " p"]) -> Net:
    """Return the network at θ + step, for a step in the order of `flatten_gradient`."""
    first, hidden, output, biases, shift = net.theta
    keep = np.exp(net.clock[0] - net.ages)[:, None]  # what the ridge's pull still owes
    settled = net.start.first + keep * (first - net.start.first)
    ends = np.cumsum([shift.size, output.size, biases.size, hidden.size])
    to_shift, to_output, to_biases, to_hidden, to_first = np.split(step, ends)
    theta = Parameters(
        (settled + to_first.reshape(first.shape)).astype(first.dtype),
        hidden + to_hidden.reshape(hidden.shape).astype(first.dtype),
        output + to_output.astype(first.dtype),
        biases + to_biases.reshape(biases.shape).astype(first.dtype),
        shift + to_shift.astype(first.dtype),
    )
    return net._replace(theta=theta, ages=np.full_like(net.ages, net.clock[0]))


def differentiate_rows(net: Net, rows: Rows) -> tuple[Indices, Factors]:
    """Return f(x_i; θ), and g(x_i; θ) in factors, for every context."""
    n = len(rows.blocks)
    shape = (n, *net.theta.biases.shape)
    f, dtype = np.empty(n), net.theta.biases.dtype
    factors = Factors(rows, np.empty(shape, dtype), np.empty(shape, dtype))
    differentiate(net, factors, f)
    return f, factors


def _room(array: np.ndarray, size: int) -> np.ndarray:
    """Return the array, or a longer copy if it has fewer than `size` rows."""
    if size <= len(array):
        return array
    longer = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class Precision(Protocol):
    """How Z is stored; m is that of the network, see `Network.m`."""

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
        """Return a copy of Z that later learning does not change."""
        ...


@dataclass(slots=True, kw_only=True)
class DiagonalState:
    """D = 1/diag(Z), in the shape of the parameters."""

    D: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """The inverse of diag(Z) instead of Z⁻¹, as in the paper's experiments."""

    def init(self, net: Net, ridge: float) -> DiagonalState:
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
        return DiagonalState(D=Parameters(*(part.copy() for part in state.D)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Z⁻¹ itself, equal to the dense p × p inverse within rounding.

    The Gram matrix of the gradients, t²/2 numbers, is used while it is smaller than the p × p inverse, and
    the inverse with Sherman and Morrison's formula from then on. Both grow large, and the cost of a round
    grows until there are more rounds than parameters: use it to check results, not in production.
    """

    def init(self, net: Net, ridge: float) -> ExactState:
        _check(net, "Exact")
        return ExactState.start(net, ridge)

    def estimates(
        self, state: ExactState, net: Net, rows: Rows, m: float
    ) -> tuple[Indices, Indices]:
        f, g = differentiate_rows(net, rows)
        if state.is_dense:
            G = _flat(net, g)
            return f, np.einsum("ip,ip->i", G @ state.inverse, G)
        y, squares = state.half_solve(net, g, m)
        return f, (squares - (y * y).sum(axis=1)) / state.ridge

    def corrected(
        self, state: ExactState, net: Net, rows: Rows, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · Z⁻¹ g_i)."""
        f, g = differentiate_rows(net, rows)
        if state.is_dense:
            f_row = np.empty(1)
            for i, step in enumerate(amount * _flat(net, g) @ state.inverse):
                row = rows_at(rows, slice(i, i + 1))
                predict(_shift(net, step), row, f_row)
                f[i] = f_row[0]
            return f
        y, _ = state.half_solve(net, g, m)
        backward_solve(state.L, state.count, y)
        gram_corrected(net, state.past, state.count, y / m**0.5, g, amount / state.ridge, f)
        return f

    def add(self, state: ExactState, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        _, g = differentiate_rows(net, rows)
        if not state.is_dense and (state.count + 1) * (state.count + 2) / 2 > _size(net) ** 2:
            state.become_dense(net, m)
        if state.is_dense:
            (flat,) = _flat(net, g)
            u = state.inverse @ flat / m**0.5
            state.inverse -= np.outer(u, u) / (1 + flat @ u / m**0.5)  # Sherman and Morrison
            return
        y, squares = state.half_solve(net, g, m)
        row = y[0] / m**0.5  # of L: K has ⟨g_s, g⟩/m beside its diagonal
        row = np.append(row, (state.ridge + squares[0] / m - row @ row) ** 0.5)
        at = state.count * (state.count + 1) // 2
        state.L = _room(state.L, at + len(row))
        state.L[at : at + len(row)] = row
        state.remember(g)

    def grow(self, state: ExactState, net: Net, ridge: float) -> None:
        """Give the new rows of W_1 the precision λ; in the Gram form there is nothing to do."""
        if state.is_dense:
            old, p = len(state.inverse), _size(net)
            inverse = np.eye(p) / state.ridge
            inverse[:old, :old] = state.inverse
            state.inverse = inverse

    def frozen(self, state: ExactState) -> ExactState:
        return replace(state, inverse=state.inverse.copy())


def _check(net: object, name: str) -> None:
    if not isinstance(net, Net):
        raise SettingError(
            f"the precision {name}() is for networks of rbmle, got a {type(net).__name__}; give the policy "
            "the precision that goes with its model, such as precision=TorchDiagonal()"
        )
