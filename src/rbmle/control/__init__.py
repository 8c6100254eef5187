"""RBMLE in its original setting: Markov decision processes whose transitions are unknown."""

from rbmle.control.base import Learner, LearnsWalking, Transition, Walk
from rbmle.control.finite import Family, FiniteCE, FiniteRBMLE, closed_loop
from rbmle.control.mdp import (
    MDP,
    Solution,
    evaluate,
    grid_world,
    policy_iteration,
    random_mdp,
    river_swim,
    solve,
    value_iteration,
)
from rbmle.control.simulation import Trajectory, simulate, step_by_step
from rbmle.control.tabular import (
    KLUCRL,
    PSRL,
    UCRL2,
    TabularCE,
    TabularRBMLE,
    frequencies,
    log_likelihood,
)

__all__ = [
    "KLUCRL",
    "MDP",
    "PSRL",
    "UCRL2",
    "Family",
    "FiniteCE",
    "FiniteRBMLE",
    "Learner",
    "LearnsWalking",
    "Solution",
    "TabularCE",
    "TabularRBMLE",
    "Trajectory",
    "Transition",
    "Walk",
    "closed_loop",
    "evaluate",
    "frequencies",
    "grid_world",
    "log_likelihood",
    "policy_iteration",
    "random_mdp",
    "river_swim",
    "simulate",
    "solve",
    "step_by_step",
    "value_iteration",
]
