"""NeuFastCB: probabilities by the inverse of gaps, which count the more, the less the best arm loses."""

import numpy as np
import pytest

from rbmle import Gaussian, NeuFastCB, Power, Regression
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts
from rbmle.models.regression import RegressionState
from tests.samples import double, rng, rows

GAUSSIAN = Regression(network=double(width=2), likelihood=Gaussian())


def test_the_probabilities_on_numbers_a_hand_can_check() -> None:
    """Losses (0.2, 0.7, 0.3), K = 3, γ = 2 · √(3 · 3) = 6 at t = 3.

    p_1 = 0.2/(3 · 0.2 + 6 · 0.5) = 1/18, p_2 = 0.2/(0.6 + 6 · 0.1) = 1/6, p_0 = 7/9.
    """
    policy = NeuFastCB(sharpness=2.0, model=GAUSSIAN)
    state, contexts = known(policy, [0.8, 0.3, 0.7])
    state.history.seen = 2
    expected, chances = policy.weigh(state, contexts, 0, rng())
    np.testing.assert_allclose(expected, [0.8, 0.3, 0.7], rtol=1e-12)
    assert chances is not None
    np.testing.assert_allclose(chances, [7 / 9, 1 / 18, 1 / 6], rtol=1e-12)


def test_losses_are_the_distance_to_the_best_reward() -> None:
    """Rewards from −1 to 0: ŷ = (0.5, 1), p_1 = 0.5/(2 · 0.5 + 3 · 0.5) = 1/5 with γ = 3."""
    policy = NeuFastCB(sharpness=3.0, growth=Power(exponent=0.0), best=0.0, model=GAUSSIAN)
    # A ReLU has no negative values: W_2 = −1 makes them of positive ones.
    state, contexts = known(policy, [0.5, 1.0])
    state.net.theta.output[0] = -1.0
    expected, chances = policy.weigh(state, contexts, 0, rng())
    np.testing.assert_allclose(expected, [-0.5, -1.0], rtol=1e-12)
    assert chances is not None
    np.testing.assert_allclose(chances, [4 / 5, 1 / 5], rtol=1e-12)


def test_an_arm_that_loses_nothing_is_played_and_equals_share() -> None:
    policy = NeuFastCB(model=GAUSSIAN)
    _, chances = policy.weigh(*known(policy, [1.2, 0.3, 1.2]), 0, rng())
    assert chances is not None
    np.testing.assert_allclose(chances, [0.5, 0.0, 0.5], atol=1e-9)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="`sharpness` must be a finite number"):
        NeuFastCB(sharpness=-1.0)
    with pytest.raises(SettingError, match="`best` must be a finite number"):
        NeuFastCB(best=float("inf"))


def known(policy: NeuFastCB, f: list[float]) -> tuple[RegressionState, Contexts]:
    """Return a state whose network has f(e_i) = f_i, and the contexts e_i: W_1 = (f, 0), W_2 = (1, 0)."""
    state = policy.init(1, len(f), rng())
    for part in state.net.theta:
        part[:] = 0.0
    state.net.theta.first[:, 0] = f
    state.net.theta.output[0] = 1.0
    return state, rows(np.eye(len(f)))
