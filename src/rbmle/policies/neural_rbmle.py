"""NeuralRBMLE: the prototypic algorithm of the paper's section 4.1, which GA and PC approximate."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import check_not_negative
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import gradient, log_likelihood
from rbmle.engine.layout import Bias, Fit, Net, Parameters, Samples
from rbmle.engine.network import predict
from rbmle.models.regression import (
    Regression,
    RegressionState,
    in_units_of,
    settle,
)
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule

PROMISED = 0.5  # share of the gain predicted by the slope that a step must reach (Armijo 1966)
HALVINGS = 30  # of a step, before no better point is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLE(ModelPolicy[RegressionState]):
    """Index f(x_a; θ†_t), with θ†_t = argmax_θ {ℓ_λ(F_t; θ) + α(t) max_a f(x_a; θ)}, Eq. (11).

    The maximum is over arms and θ at once, so θ†_t is the best of the arms' own maximisers θ†_a, Eq. (12), each
    of which is found by ascent on the whole history from θ̂. By Lemma E.1 the arm that is played is that of the
    largest index ℓ_λ(F_t; θ†_a) + α(t) f(x_a; θ†_a), Eq. (13). A decision costs `steps` passes over the history
    for each arm: it is a reference for small problems.
    """

    model: Regression = field(default_factory=Regression)
    bias: float = 0.01  # ν
    growth: Schedule = field(default_factory=Power)
    steps: int = 20  # of the ascent of each arm, at most

    title: ClassVar[str] = "NeuralRBMLE"

    def __post_init__(self) -> None:
        check_not_negative("bias", self.bias)
        if self.steps < 1:
            raise SettingError(f"`steps` must be at least 1, got {self.steps}")

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        alpha = self.bias * self.growth(state.round + 1)
        likelihoods, values = self.maxima(state, contexts, alpha)
        best = np.argmax(likelihoods + alpha * values.max(axis=1))  # Eq. (11)
        return values[best]

    def maxima(
        self, state: RegressionState, contexts: Contexts, alpha: float
    ) -> tuple[Float[np.ndarray, " arms"], Float[np.ndarray, "arms arms"]]:
        """Return ℓ_λ(F_t; θ†_a) of each arm a, and f(x_b; θ†_a) in row a and column b."""
        model, n = self.model, len(contexts)
        samples = state.history.samples_in(in_units_of(model.fit, state.watch))
        rows, potential = model.network.rows(contexts), scalar(model.likelihood.b)
        base, fit = settle(state.net), model.fit._replace(steps=self.steps)
        likelihoods, values = np.empty(n), np.empty((n, n))
        for arm in range(n):
            net = base._replace(theta=Parameters(*(part.copy() for part in base.theta)))
            reached = maximise(net, samples, fit, potential, Bias(rows, arm, float(alpha)))
            predict(net, rows, values[arm])
            likelihoods[arm] = reached - alpha * values[arm, arm]
        return likelihoods, values

    def frozen(self, state: RegressionState) -> RegressionState:
        return self.model.frozen_with_history(state)


def maximise(net: Net, samples: Samples, fit: Fit, potential: int, bias: Bias) -> float:
    """θ ← θ + s ∇{ℓ_λ(F_t; θ) + α f(x_a; θ)}, at most J times; return the objective that is reached.

    A step s that gains less than PROMISED times s‖∇‖² is halved, and the next one is tried with twice the last:
    the objective never falls, whatever the size of contexts and rewards. The first is 1/(mλ + Σ‖g‖²), which is
    short enough for b″ ≤ 1. A step raises f(x_a) by the bias by at most one unit of reward, to first order:
    where the history has nothing about x_a, and α f outgrows the pull to θ₀, there is no maximum.
    """
    slopes = Parameters(*map(np.empty_like, net.theta))
    before = Parameters(*(part.copy() for part in net.theta))
    best, step = objective(net, samples, fit, potential, bias), 0.0
    for _ in range(fit.steps):
        norms, bias_norm = gradient(net, samples, fit, bias, slopes)
        length = sum(float(np.vdot(part, part)) for part in slopes)
        step = 2 * step if step > 0 else 1 / (fit.ridge + norms)
        step = min(step, 1 / bias_norm) if bias_norm > 0 else step
        for _ in range(HALVINGS):
            for part, start, slope in zip(net.theta, before, slopes, strict=True):
                np.add(start, step * slope, out=part, casting="same_kind")
            reached = objective(net, samples, fit, potential, bias)
            if reached >= best + PROMISED * step * length:
                break
            step /= 2
        else:
            _copy(before, net.theta)
            return best
        best = reached
        _copy(net.theta, before)
    return best


def objective(net: Net, samples: Samples, fit: Fit, potential: int, bias: Bias) -> float:
    """Return ℓ_λ(F_t; θ) + α f(x_a; θ)."""
    f = np.empty(len(bias.contexts.blocks))
    predict(net, bias.contexts, f)
    likelihood = log_likelihood(net, samples, fit.ridge, potential)
    return float(likelihood + bias.alpha * f[bias.arm])


def _copy(source: Parameters, target: Parameters) -> None:
    for part, values in zip(target, source, strict=True):
        part[:] = values
