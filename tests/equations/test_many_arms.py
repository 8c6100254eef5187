"""What is done otherwise for many arms gives what the plain way gives."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from rbmle import (
    Bandit,
    Bernoulli,
    Gaussian,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    NeuralUCB,
    Regression,
)
from rbmle.core.encoding import disjoint, per_arm, stack
from rbmle.core.policy import Policy
from rbmle.core.types import Rows
from rbmle.engine.layout import Net, Parameters
from rbmle.engine.network import UNTOUCHED
from rbmle.likelihoods import Likelihood
from rbmle.models import arm_ascent
from rbmle.models.network import Network
from rbmle.models.precision import Diagonal, DiagonalState

FEATURES = 13
TOLERANCES = {"float64": 1e-10, "float32": 1e-6}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("density", [1.0, 0.4])
def test_one_block_has_the_widths_and_corrections_of_many(
    dtype: Literal["float32", "float64"], depth: int, density: float
) -> None:
    network = Network(width=20, depth=depth, dtype=dtype)
    many = network.init(3, FEATURES, np.random.default_rng(0))
    D = Parameters(*(_positive(part) for part in many.theta))
    rows = network.rows(per_arm(_contexts(50, density), FEATURES))
    plain = _answers(many, D, rows)
    summed = _answers(*_first_block(many, D), rows)
    for ours, theirs in zip(summed, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("policy", [NeuralUCB(), NeuralRBMLEPC()])
def test_an_index_does_not_depend_on_the_other_arms_or_their_order(
    policy: Policy[Any],
) -> None:
    bandit = _trained(policy)
    X = _contexts(203, 1.0)
    X[::5] *= np.random.default_rng(1).random(X[::5].shape) < 0.5
    every = bandit.decide(X, id="a").indices
    for count in (1, 2, 3, 7, 8, 9, 16, 31, 100):
        for first in (0, 1, 5, 103):
            part = bandit.decide(X[first : first + count], id="a").indices
            np.testing.assert_array_equal(part, every[first : first + count])
    order = np.random.default_rng(2).permutation(len(X))
    permuted = bandit.decide(X[order], id="a").indices
    np.testing.assert_array_equal(permuted, every[order])


@pytest.mark.parametrize("policy", [NeuralUCB(), NeuralRBMLEPC()])
def test_many_rounds_of_many_arms_are_answered_as_one_by_one(
    policy: Policy[Any],
) -> None:
    bandit = _trained(policy)
    sizes, ids = [1, 150, 3, 20], ["a", "b", "c", "d"]
    rounds = [per_arm(_contexts(size, 1.0, size), FEATURES) for size in sizes]
    at_once = bandit.choose_many(stack(rounds), sizes, ids, 0.1)
    for contexts, id, chosen in zip(rounds, ids, at_once, strict=True):
        alone = bandit.choose_many(contexts, [len(contexts)], [id], 0.1)[0]
        np.testing.assert_array_equal(chosen.indices, alone.indices)
        assert chosen.place == alone.place


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()])
@pytest.mark.parametrize("rule", ["likelihood", "estimate"])
@pytest.mark.parametrize("bias", [0.01, 1.0])
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_the_ascent_of_some_arms_finds_the_arm_that_the_ascent_of_all_finds(
    likelihood: Likelihood,
    rule: Literal["likelihood", "estimate"],
    bias: float,
    density: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Regression(likelihood=likelihood, network=Network(width=30))
    bandit = Bandit(
        NeuralRBMLEGA(bias=bias, rule=rule, model=model), features=FEATURES, encoding="per-arm"
    )
    taken = 0
    for t in range(60):
        if t in (0, 1, 10, 59):
            X = _contexts(300, density, 1000 + t)
            pruned = bandit.decide(X, id="a")
            with monkeypatch.context() as patched:
                patched.setattr(arm_ascent, "FEW", len(X))
                full = bandit.decide(X, id="a")
            assert pruned.arm == full.arm
            is_same = pruned.indices == full.indices
            taken += int(is_same.sum())
            assert (pruned.indices[~is_same] < pruned.indices.max()).all()
        X = _contexts(5, density, t)
        decision = bandit.decide(X)
        bandit.learn(decision, float(X[int(decision.arm), 0] > 0))
    assert taken < 4 * 300  # some were left out


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()])
@pytest.mark.parametrize("bias", [0.01, 0.05, 1.0])
def test_disjoint_arms_without_an_ascent_could_not_have_won(
    likelihood: Likelihood, bias: float
) -> None:
    """Every arm has an ascent of its own where the reach is infinite."""
    model = Regression(likelihood=likelihood, network=Network(width=30))
    raced = NeuralRBMLEGA(bias=bias, model=model)
    full = replace(raced, ascent=replace(raced.ascent, reach=np.inf))
    bandit = Bandit(raced, arms=8, features=FEATURES)
    left_out = 0
    for t in range(150):
        x = _contexts(1, 1.0, t)[0]
        decision = bandit.decide(x)
        contexts = disjoint(x, np.arange(8), FEATURES)
        indices = full.index(bandit.state, contexts, np.random.default_rng(0))
        assert decision.indices.argmax() == indices.argmax()
        is_bound = decision.indices != indices
        assert bias == 1.0 or (decision.indices[is_bound] >= indices[is_bound]).all()
        assert (decision.indices[is_bound] < indices.max()).all()
        left_out += int(is_bound.sum())
        bandit.learn(decision, float(decision.arm == int(4 + 2 * x[0]) % 8))
    assert left_out > 0 or bias == 1.0


def test_arms_that_the_ascent_leaves_out_may_stand_anywhere_too() -> None:
    bandit = _trained(NeuralRBMLEGA())
    X = _contexts(200, 0.8)
    X[100:] = X[:100]
    indices = bandit.decide(X, id="a").indices
    np.testing.assert_array_equal(indices[100:], indices[:100])
    order = np.random.default_rng(2).permutation(len(X))
    np.testing.assert_array_equal(bandit.decide(X[order], id="a").indices, indices[order])


@pytest.mark.parametrize("size", [1e-12, 1e6, 1e11])
def test_forecasts_that_overflow_leave_the_index_finite(size: float) -> None:
    bandit = Bandit(NeuralRBMLEGA(), features=FEATURES, encoding="per-arm")
    for t in range(3):
        X = _contexts(80, 1.0, t)
        X[::2] *= size
        decision = bandit.decide(X)
        assert np.isfinite(decision.indices).all()
        bandit.learn(decision, float(t % 2))


def test_an_average_that_follows_touched_rows_is_the_one_that_follows_all() -> None:
    lazy, eager = (Bandit(NeuralUCB(), arms=40, features=FEATURES, seed=1) for _ in range(2))
    eager.state.regression.walk.ages[:] = 0.0  # as if every row had been touched
    for t in range(120):
        x = _contexts(1, 0.6, t)[0]
        for bandit in (lazy, eager):
            bandit.learn(x, arm=t % 7, reward=float(x[0] > 0))
    untouched = lazy.state.regression.walk.ages == UNTOUCHED
    assert untouched.reshape(40, FEATURES).all(axis=1).sum() == 33
    for ours, theirs in zip(
        lazy.state.regression.net.theta, eager.state.regression.net.theta, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(
        lazy.state.regression.walk.theta, eager.state.regression.walk.theta, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_rows_of_a_matrix_are_its_entries_that_are_not_zero(density: float) -> None:
    X = _contexts(40, density)
    contexts = per_arm(X, FEATURES)
    np.testing.assert_array_equal(contexts.dense(), X)
    np.testing.assert_array_equal(contexts.rows.lengths, (X != 0).sum(axis=1))


def test_a_decision_keeps_its_own_context_and_no_other() -> None:
    bandit = Bandit(NeuralUCB(), features=FEATURES, encoding="per-arm")
    X = _contexts(1000, 1.0)
    decision = bandit.decide(X)
    before = X[int(decision.arm)].copy()
    X[:] = 0
    np.testing.assert_array_equal(decision.context.dense()[0], before)
    assert all(part.base is None for part in decision.context.rows)


def _contexts(count: int, density: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, FEATURES)) * (rng.random((count, FEATURES)) < density)


def _trained(policy: Policy[Any]) -> Bandit:
    bandit = Bandit(policy, features=FEATURES, encoding="per-arm")
    for t in range(30):
        X = _contexts(5, 1.0, t)
        decision = bandit.decide(X)
        bandit.learn(decision, float(X[int(decision.arm), 0] > 0))
    return bandit


def _positive(part: np.ndarray) -> np.ndarray:
    return np.random.default_rng(part.size).uniform(0.1, 2, part.shape).astype(part.dtype)


def _first_block(net: Net, D: Parameters) -> tuple[Net, Parameters]:
    """Return the network of one block that the first of several makes."""
    own = slice(0, FEATURES)
    theta = net.theta._replace(first=net.theta.first[own].copy())
    start = net.start._replace(first=net.start.first[own].copy())
    one = net._replace(theta=theta, start=start, ages=net.ages[own].copy())
    return one, D._replace(first=D.first[own].copy())


def _answers(net: Net, D: Parameters, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return f, the widths and what the corrections give."""
    state = DiagonalState(D=D)
    f, norms = Diagonal().estimates(state, net, rows, 1.0)
    return f, norms, Diagonal().corrected(state, net, rows, 0.01, 1.0)
