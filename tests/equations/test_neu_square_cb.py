"""NeuSquareCB: probabilities by the inverse of the gaps of expected rewards."""

import numpy as np
import pytest

from rbmle import Bernoulli, NeuSquareCB, Power, Regression
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts
from rbmle.models.regression import RegressionState
from tests.samples import double, rng, rows


def test_the_probabilities_on_numbers_a_hand_can_check() -> None:
    """ŷ = (0.7, 0.2, 0.6), K = 3, γ = 10 · √(3 · 3) = 30 at t = 3.

    p_1 = 1/(3 + 30 · 0.5) = 1/18, p_2 = 1/(3 + 30 · 0.1) = 1/6, p_0 = 1 − 1/18 − 1/6 = 7/9.
    """
    policy = NeuSquareCB(sharpness=10.0, model=Regression(network=double(width=2)))
    state, contexts = known(policy, [0.7, 0.2, 0.6])
    state.history.seen = 2
    expected, chances = policy.weigh(state, contexts, 0, rng())
    np.testing.assert_allclose(expected, [0.7, 0.2, 0.6], rtol=1e-12)
    assert chances is not None
    np.testing.assert_allclose(chances, [7 / 9, 1 / 18, 1 / 6], rtol=1e-12)


def test_gaps_are_those_of_expected_rewards_whatever_the_likelihood() -> None:
    """f = (0, log 3) has ŷ = (½, ¾) for the Bernoulli likelihood: p_0 = 1/(2 + 8 · ¼) with γ = 8."""
    model = Regression(network=double(width=2), likelihood=Bernoulli())
    policy = NeuSquareCB(sharpness=8.0, growth=Power(exponent=0.0), model=model)
    expected, chances = policy.weigh(*known(policy, [0.0, np.log(3)]), 0, rng())
    np.testing.assert_allclose(expected, [0.5, 0.75], rtol=1e-12)
    assert chances is not None
    np.testing.assert_allclose(chances, [0.25, 0.75], rtol=1e-12)


def test_without_sharpness_play_is_uniform() -> None:
    policy = NeuSquareCB(sharpness=0.0, model=Regression(network=double(width=2)))
    _, chances = policy.weigh(*known(policy, [0.9, 0.1]), 0, rng())
    assert chances is not None
    np.testing.assert_allclose(chances, [0.5, 0.5])
    with pytest.raises(SettingError, match="`sharpness` must be a finite number"):
        NeuSquareCB(sharpness=-1.0)


def known(policy: NeuSquareCB, f: list[float]) -> tuple[RegressionState, Contexts]:
    """Return a state whose network has f(e_i) = f_i, and the contexts e_i: W_1 = (f, 0), W_2 = (1, 0)."""
    state = policy.init(1, len(f), rng())
    for part in state.net.theta:
        part[:] = 0.0
    state.net.theta.first[:, 0] = f
    state.net.theta.output[0] = 1.0
    return state, rows(np.eye(len(f)))
