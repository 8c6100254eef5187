"""Taking a few steps with every learner, so that every kernel they need is compiled."""

from typing import Any

from rbmle.control.base import Learner
from rbmle.control.closed_loop import TRUTH, closed_loop
from rbmle.control.examples import river_swim
from rbmle.control.finite_rbmle import FiniteRBMLE
from rbmle.control.mdp import MDP
from rbmle.control.simulation import simulate, step_by_step
from rbmle.control.tabular_rbmle import TabularRBMLE
from rbmle.control.walk import Walk
from rbmle.core.randomness import Purpose, generator

STEPS = 3


def warm_up() -> None:
    """Simulate a learner of each kind, many steps at once and one by one."""
    family = closed_loop()
    _walk(family.mdp(TRUTH), FiniteRBMLE(family=family))
    _walk(river_swim(3), TabularRBMLE())


def _walk(mdp: MDP, learner: Learner[Any]) -> None:
    """Take a few steps."""
    simulate(mdp, learner, [STEPS], seed=0)
    state = learner.init(mdp.rewards, generator(0, Purpose.START, 0))
    step_by_step(learner, state, Walk.begin(mdp, seed=0), STEPS)
