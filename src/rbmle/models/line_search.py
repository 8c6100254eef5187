"""A local maximiser of the biased likelihood of the whole history, by gradient ascent with a line search."""

import numpy as np

from rbmle.engine.full_batch import gradient, log_likelihood
from rbmle.engine.layout import Bias, Fit, Net, Parameters, Samples
from rbmle.engine.network import predict

PROMISED = 0.5  # part of what the slope promises that a step must gain (Armijo 1966)
HALVINGS = 30  # of a step, before no better point is looked for


def maximise(net: Net, samples: Samples, fit: Fit, potential: int, bias: Bias) -> float:
    """θ ← θ + s ∇{ℓ_λ(F_t; θ) + α f(x_a; θ)}, at most J times; return the objective that is reached.

    A step s that gains less than PROMISED times s‖∇‖² is halved, and the next one is tried with twice the last:
    the objective never falls, whatever the size of contexts and rewards. The first is 1/(mλ + Σ‖g‖²), which is
    short enough for b″ ≤ 1. A step raises f(x_a) by the bias by at most one unit of reward, to first order:
    where the history says nothing of x_a, and α f outgrows the pull to θ₀, there is no maximum.
    """
    slopes = Parameters(*map(np.empty_like, net.theta))
    before = Parameters(*(part.copy() for part in net.theta))
    best, step = objective(net, samples, fit, potential, bias), 0.0
    for _ in range(fit.steps):
        norms, own = gradient(net, samples, fit, bias, slopes)
        length = sum(float(np.vdot(part, part)) for part in slopes)
        step = 2 * step if step > 0 else 1 / (fit.ridge + norms)
        step = min(step, 1 / own) if own > 0 else step
        for _ in range(HALVINGS):
            for part, start, slope in zip(net.theta, before, slopes, strict=True):
                np.add(start, step * slope, out=part, casting="same_kind")
            found = objective(net, samples, fit, potential, bias)
            if found >= best + PROMISED * step * length:
                break
            step /= 2
        else:
            _copy(before, net.theta)
            return best
        best = found
        _copy(net.theta, before)
    return best


def objective(net: Net, samples: Samples, fit: Fit, potential: int, bias: Bias) -> float:
    """Return ℓ_λ(F_t; θ) + α f(x_a; θ)."""
    f = np.empty(len(bias.contexts.blocks))
    predict(net, bias.contexts, f)
    likelihood = log_likelihood(net, samples, fit.ridge, potential)
    return float(likelihood + bias.alpha * f[bias.arm])


def _copy(source: Parameters, target: Parameters) -> None:
    """Write one set of parameters over another."""
    for part, values in zip(target, source, strict=True):
        part[:] = values
