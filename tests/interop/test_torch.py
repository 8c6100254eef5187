"""A network of PyTorch under our policies: the same formulas, gradients and numbers as the engine's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbmle import (
    ArmAscent,
    Bandit,
    Bernoulli,
    FullBatch,
    Network,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    NeuralTS,
    NeuralUCB,
    Regression,
)
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.testing import policy_checks
from rbmle.testing.policies import PROMISES

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'rbmle[torch]'")
from torch import nn  # noqa: E402

from rbmle.interop import (  # noqa: E402
    Minibatch,
    Perceptron,
    TorchDiagonal,
    TorchNetwork,
    TorchRegression,
)

torch.set_num_threads(1)  # networks are small

ARMS, FEATURES, WIDTH = 3, 4, 8
FULL = FullBatch(steps=5, rate=0.1)
POLICIES: dict[str, Any] = {
    "ga": NeuralRBMLEGA(bias=1.0),
    "ga-estimate": NeuralRBMLEGA(bias=1.0, rule="estimate"),
    "pc": NeuralRBMLEPC(bias=0.01),
    "ucb": NeuralUCB(exploration=0.1),
    "ts": NeuralTS(exploration=0.5),
}


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", POLICIES)
def test_on_the_same_network_it_agrees_with_the_engine(name: str, depth: int) -> None:
    """Both learn the same 15 observations, from the same weights, to rounding in single precision."""
    ours = with_model(
        POLICIES[name], Regression(network=Network(width=WIDTH, depth=depth), training=FULL)
    )
    theirs = of_torch(POLICIES[name], make=Perceptron(width=WIDTH, depth=depth), training=FULL)
    bandits = [Bandit(policy, arms=ARMS, features=FEATURES, seed=0) for policy in (ours, theirs)]
    copy_weights(net_of(bandits[0]), net_of(bandits[1]))
    for t in range(15):
        x = generator(1, Purpose.ENVIRONMENT, t).normal(size=FEATURES)
        indices = [bandit.decide(x, id=str(t)).indices for bandit in bandits]
        np.testing.assert_allclose(indices[1], indices[0], rtol=2e-4, atol=2e-5)
        for bandit in bandits:
            bandit.learn(x, arm=t % ARMS, reward=float(x[t % ARMS] > 0))
    predicted = [list(bandit.predict(x).values()) for bandit in bandits]
    np.testing.assert_allclose(predicted[1], predicted[0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("likelihood", [Bernoulli(), None])
def test_a_step_climbs_the_gradient_of_the_likelihood(likelihood: Any) -> None:
    """Against finite differences of ℓ_λ + α f, in double precision."""
    network = TorchNetwork(make=Perceptron(width=3), dtype="float64", m=2.0)
    model = TorchRegression(network=network, ridge=0.3, training=FULL)
    model = model if likelihood is None else replace(model, likelihood=likelihood)
    policy = NeuralUCB(model=model, precision=TorchDiagonal())
    bandit = Bandit(policy, arms=2, features=2, seed=0)
    for t in range(4):
        bandit.learn([0.3 * t, 1.0 - t], arm=t % 2, reward=float(t > 1))
    state = bandit.state.regression
    x, alpha = network.inputs(state.net, disjoint([0.5, -1.0], np.array([1]), 2).rows), 0.7

    def objective(theta: np.ndarray) -> float:
        f = float(network.f(state.net, torch.from_numpy(theta), x)[0])
        return model._log_likelihood(state, theta) + alpha * f

    theta, step = state.net.theta, 1e-3
    once = replace(model, training=FullBatch(steps=1, rate=step, objective="sum"))
    moved = once._climb(state, theta, 1, step, np.random.default_rng(0), x, alpha)
    for i in range(len(theta)):
        e = np.eye(len(theta))[i] * 1e-6
        slope = (objective(theta + e) - objective(theta - e)) / 2e-6
        assert (moved[i] - theta[i]) / step == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_gradients_of_a_module_are_those_of_finite_differences() -> None:
    """A module that the engine has no kernel for."""
    network = TorchNetwork(make=smooth, dtype="float64")
    net = network.init(2, 3, generator(0, Purpose.START, 0))
    rows = disjoint([0.5, -1.0, 2.0], np.arange(2), 3).rows
    f, g = network.gradients(net, rows)
    X = network.inputs(net, rows)
    for i in range(len(net.theta)):
        e = np.eye(len(net.theta))[i] * 1e-6
        ups, downs = (network.f(net, torch.from_numpy(net.theta + d), X) for d in (e, -e))
        np.testing.assert_allclose(g[:, i], (ups - downs).numpy() / 2e-6, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(f, network.f(net, torch.from_numpy(net.theta), X).numpy())


def test_widths_and_corrections_of_a_linear_module_by_hand() -> None:
    """f = θᵀx has g = x: after x = (2, 0), Z = (λ + 4, λ), with λ = 1."""
    network = TorchNetwork(make=linear)
    model = TorchRegression(network=network, ridge=1.0, training=Minibatch(steps=0))
    policy = NeuralUCB(model=model, precision=TorchDiagonal(), exploration=1.0)
    bandit = Bandit(policy, features=2, encoding="per-arm", seed=0)
    bandit.learn([2.0, 0.0], reward=1.0)
    w = bandit.state.regression.net.theta
    np.testing.assert_array_equal(bandit.state.precision.Z, [5.0, 1.0])
    expected = 3 * w[0] + w[1] + (9 / 5 + 1) ** 0.5
    assert bandit.decide([[3.0, 1.0]]).indices[0] == pytest.approx(expected, rel=1e-6)
    corrected = policy.corrected(bandit.state, disjoint([3.0, 1.0], np.zeros(1, np.int64), 2), 0.5)
    assert corrected[0] == pytest.approx(3 * w[0] + w[1] + 0.5 * (9 / 5 + 1), rel=1e-6)


CHECKED = {
    "ga": NeuralRBMLEGA(bias=1.0, ascent=ArmAscent(steps=4, rate=0.25)),
    "ts": NeuralTS(exploration=0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("promise", [promise.__name__ for promise in PROMISES])
@pytest.mark.parametrize("name", CHECKED)
def test_policies_over_a_module_keep_every_promise(name: str, promise: str) -> None:
    policy = of_torch(
        CHECKED[name], make=Perceptron(width=16), training=Minibatch(steps=10, size=32)
    )
    dict(policy_checks(policy))[promise]()


def test_a_module_of_your_own_learns(tmp_path: Any) -> None:
    policy = of_torch(NeuralUCB(), make=smooth, training=Minibatch())
    bandit = Bandit(policy, arms=["tea", "coffee"], features=2, seed=0)
    right = []
    for t in range(300):
        x = generator(2, Purpose.ENVIRONMENT, t).normal(size=2)
        decision = bandit.decide(x)
        right.append(decision.arm == ("tea" if x[0] > x[1] else "coffee"))
        bandit.learn(decision, reward=float(right[-1]))
    assert np.mean(right[200:]) > 0.85
    bandit.add_arm("juice")
    bandit.save(tmp_path / "torch.rbmle")
    again = Bandit.load(tmp_path / "torch.rbmle", policy=policy)
    assert again.predict(x) == bandit.predict(x)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: TorchNetwork(make=nn.Linear(2, 1)), "`make` must be a function from the number"),
        (lambda: TorchNetwork(dtype="float16"), "`dtype` must be"),
        (lambda: TorchRegression(ridge=0.0), "`ridge` must be a positive"),
        (lambda: TorchRegression(training="adam"), r"must be Minibatch\(…\) or FullBatch"),
        (lambda: Minibatch(size=0), "`size` at least 1, got 20 and 0"),
        (lambda: decided(lambda inputs: nn.Linear(inputs, 2)), r"shape \(1, 2\) for 1 contexts"),
        (lambda: decided(lambda inputs: nn.ReLU()), "expected an nn.Module with parameters"),
        (
            lambda: Bandit(with_model(NeuralUCB(), TorchRegression()), arms=2, features=2),
            r"Diagonal\(\) is for networks of rbmle.*precision=TorchDiagonal\(\)",
        ),
    ],
)
def test_a_mistake_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        wrong()


def smooth(inputs: int) -> nn.Module:
    """Return a network with a smooth activation and a normalised layer."""
    return nn.Sequential(nn.Linear(inputs, 12), nn.LayerNorm(12), nn.Tanh(), nn.Linear(12, 1))


def linear(inputs: int) -> nn.Module:
    """Return θᵀx."""
    return nn.Linear(inputs, 1, bias=False)


def decided(make: Any) -> Any:
    """Return a decision of a policy over a module."""
    return Bandit(of_torch(NeuralUCB(), make, Minibatch()), arms=2, features=2).decide([1.0, 2.0])


def with_model(policy: Any, model: Any) -> Any:
    """Return a policy over another model."""
    return replace(policy, model=model)


def of_torch(policy: Any, make: Any, training: Any) -> Any:
    """Return a policy over a module."""
    model = TorchRegression(network=TorchNetwork(make=make), training=training)
    precise = {} if isinstance(policy, NeuralRBMLEGA) else {"precision": TorchDiagonal()}
    return replace(policy, model=model, **precise)


def net_of(bandit: Bandit) -> Any:
    """Return the network of a bandit."""
    state = bandit.state
    return state.net if hasattr(state, "net") else state.regression.net


def copy_weights(ours: Any, theirs: Any) -> None:
    """Copy a network of the engine to one of PyTorch, whose layers have weights, then biases."""
    theta = ours.theta
    parts = [theta.first.T, theta.biases[0]]
    for W, b in zip(theta.hidden, theta.biases[1:], strict=True):
        parts += [W.T, b]
    flat = np.concatenate([part.ravel() for part in (*parts, theta.output, theta.shift)])
    theirs.theta[:], theirs.start[:] = flat, flat
