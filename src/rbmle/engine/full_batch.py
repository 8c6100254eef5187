"""Gradient ascent on the whole history, as Algorithms 1 and 2 of the paper state it."""

import numpy as np

from rbmle.engine.compiled import call_scalar, inlined, kernel
from rbmle.engine.layout import Bias, Fit, Net, Parameters, Samples
from rbmle.engine.network import Layers, climb, descend, enter, move, square


@inlined
def pull_gradient(theta: Parameters, start: Parameters, ridge: float, out: Parameters) -> None:
    """Write −mλ (θ − θ₀), the gradient of the regularisation."""
    out.first[:] = -ridge * (theta.first - start.first)
    out.hidden[:] = -ridge * (theta.hidden - start.hidden)
    out.output[:] = -ridge * (theta.output - start.output)
    out.biases[:] = -ridge * (theta.biases - start.biases)
    out.shift[:] = -ridge * (theta.shift - start.shift)


@inlined
def advance(theta: Parameters, gradient: Parameters, amount: float) -> None:
    """θ ← θ + amount · gradient."""
    theta.first[:] += amount * gradient.first
    theta.hidden[:] += amount * gradient.hidden
    theta.output[:] += amount * gradient.output
    theta.biases[:] += amount * gradient.biases
    theta.shift[:] += amount * gradient.shift


@inlined
def biased_gradient(
    net: Net, samples: Samples, fit: Fit, bias: Bias, h: Layers, delta: Layers, out: Parameters
) -> tuple[float, float]:
    """Write ∇{ℓ_λ(F_t; θ) + α f(x_a; θ)}, and return Σ_s ‖g(x_s; θ)‖² and α ‖g(x_a; θ)‖²."""
    rows, rewards, count = samples
    contexts, arm, alpha = bias
    # `move` adds to the parameters of its network: here, to the gradient.
    sink = Net(out, net.start, net.ages, net.clock, net.features, net.scale, net.biased)
    pull_gradient(net.theta, net.start, fit.ridge, out)
    norms, bias_norm = 0.0, 0.0
    for i in range(count):
        enter(net, rows, i, h)
        f = climb(net, h)
        norms += descend(net, square(rows, i), h, delta)
        move(sink, rows, i, h, delta, rewards[i] - call_scalar(fit.mean, np.float64(f)))
    if alpha != 0.0:
        enter(net, contexts, arm, h)
        climb(net, h)
        bias_norm = alpha * descend(net, square(contexts, arm), h, delta)
        move(sink, contexts, arm, h, delta, alpha)
    return norms, bias_norm


@kernel
def gradient(
    net: Net, samples: Samples, fit: Fit, bias: Bias, out: Parameters
) -> tuple[float, float]:
    """Write ∇{ℓ_λ(F_t; θ) + α f(x_a; θ)}, and return Σ_s ‖g(x_s; θ)‖² and α ‖g(x_a; θ)‖²."""
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    return biased_gradient(net, samples, fit, bias, h, delta, out)


@kernel
def full_batch(net: Net, samples: Samples, fit: Fit, bias: Bias) -> None:
    """θ ← θ + η ∇{ℓ_λ(F_t; θ) + α f(x_a; θ)}, J times."""
    theta = net.theta
    gradient = Parameters(
        np.empty_like(theta.first),
        np.empty_like(theta.hidden),
        np.empty_like(theta.output),
        np.empty_like(theta.biases),
        np.empty_like(theta.shift),
    )
    h = np.empty_like(theta.biases)
    delta = np.empty_like(h)
    for _ in range(fit.steps):
        biased_gradient(net, samples, fit, bias, h, delta, gradient)
        advance(theta, gradient, fit.rate)


@kernel
def log_likelihood(net: Net, samples: Samples, ridge: float, potential: int) -> float:
    """Return ℓ_λ(F_t; θ) = Σ_s (r_s f(x_s; θ) − b(f(x_s; θ))) − (mλ/2) ‖θ − θ₀‖²."""
    h = np.empty_like(net.theta.biases)
    total = 0.0
    rows, rewards, count = samples
    for i in range(count):
        enter(net, rows, i, h)
        f = np.float64(climb(net, h))
        total += rewards[i] * f - call_scalar(potential, f)
    theta, start = net.theta, net.start
    distance = np.float64(0.0)
    distance += ((theta.first - start.first) ** 2).sum()
    distance += ((theta.hidden - start.hidden) ** 2).sum()
    distance += ((theta.output - start.output) ** 2).sum()
    distance += ((theta.biases - start.biases) ** 2).sum()
    distance += ((theta.shift - start.shift) ** 2).sum()
    return total - ridge / 2 * distance
