"""Learners of a finite set: the example of the closed loop, on numbers that a hand can check."""

import math

import numpy as np
import pytest

from rbmle.control import MDP, Family, FiniteCE, FiniteRBMLE, Transition, closed_loop, simulate
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.policies.schedules import Logarithm, Power

RNG = generator(0, Purpose.UPDATE, 0)
FAMILY = closed_loop()


def test_the_best_average_rewards_are_1_and_1_1_and_1() -> None:
    assert FAMILY.gains.tolist() == pytest.approx([1.0, 1.1, 1.0], abs=1e-14)
    assert FAMILY.policies.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_the_blind_action_leads_everywhere_alike_and_the_telling_one_does_not() -> None:
    P = np.array([mdp.transitions for mdp in FAMILY.mdps])
    assert (P[:, :, 0] == 0.5).all()
    assert P[:, 0, 1, 1].tolist() == pytest.approx([0.49, 0.48, 0.47])
    assert P[:, 1, 1, 0].tolist() == pytest.approx([0.49, 0.48, 0.47])


def test_the_estimate_is_the_argmax_of_the_biased_likelihood() -> None:
    """After k telling steps that changed the state, log L = k log(½ − θ): 0.01 is likeliest."""
    learner = FiniteRBMLE(family=FAMILY, bias=1.0, growth=Power(exponent=0.5))
    state = learner.init(FAMILY.mdps[0].rewards, RNG)
    for k in range(1, 40):
        learner.update(state, Transition(state=k % 2, action=1, successor=(k + 1) % 2), RNG)
        likelihoods = [k * math.log(0.5 - theta) for theta in FAMILY.parameters]
        assert state.log_likelihoods.tolist() == pytest.approx(likelihoods, rel=1e-12)
        alpha = math.sqrt(k + 1)
        biased = np.array(likelihoods) + alpha * np.log([1.0, 1.1, 1.0])
        assert learner.estimate(state) == FAMILY.parameters[int(biased.argmax())]
    assert learner.estimate(state) == 0.01
    assert FiniteCE(family=FAMILY).estimate(state) == 0.01


def test_a_blind_step_changes_no_estimate() -> None:
    learner = FiniteCE(family=FAMILY)
    state = learner.init(FAMILY.mdps[0].rewards, RNG)
    learner.update(state, Transition(state=0, action=0, successor=1), RNG)
    assert len(set(state.log_likelihoods)) == 1


def test_certainty_equivalence_stays_wrong_and_the_bias_cures_it() -> None:
    mdp = FAMILY.mdp(0.02)
    plain, logarithmic, cured = (
        [
            simulate(mdp, learner, [20_000], seed, ask=learner.estimate).answers[-1]
            for seed in range(40)
        ]
        for learner in (
            FiniteCE(family=FAMILY),
            FiniteRBMLE(family=FAMILY, growth=Logarithm()),
            FiniteRBMLE(family=FAMILY, growth=Power(exponent=0.5)),
        )
    )
    assert plain == [0.01] * 40
    assert 0.2 < np.mean(np.array(logarithmic) == 0.02) < 0.9
    assert cured == [0.02] * 40


def test_an_invalid_family_is_refused() -> None:
    mdp = FAMILY.mdps[0]
    poor = MDP(transitions=mdp.transitions, rewards=mdp.rewards - 2)
    small = MDP(transitions=np.ones((1, 1, 1)), rewards=np.ones((1, 1)))
    with pytest.raises(ValueError, match="got 2 parameters and 1 MDPs"):
        Family(parameters=(1.0, 2.0), mdps=(mdp,))
    with pytest.raises(ValueError, match="as many states and actions"):
        Family(parameters=(1.0, 2.0), mdps=(mdp, small))
    with pytest.raises(ValueError, match=r"J\* must be above 0.*got -1 for the parameter 1.0; add"):
        Family(parameters=(1.0,), mdps=(poor,))
    with pytest.raises(KeyError, match=r"no parameter 0.05; there are \(0.01"):
        FAMILY.mdp(0.05)
    with pytest.raises(ValueError, match=r"of the family, \(2, 2\), got \(6, 2\)"):
        FiniteCE(family=FAMILY).init(np.zeros((6, 2)), RNG)
    with pytest.raises(SettingError, match="`bias` must be"):
        FiniteRBMLE(family=FAMILY, bias=-1.0)
