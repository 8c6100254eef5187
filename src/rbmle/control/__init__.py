"""RBMLE where it came from: Markov decision processes whose transitions are unknown."""

from rbmle.control.base import Learner, LearnsWalking, Transition
from rbmle.control.closed_loop import closed_loop
from rbmle.control.examples import grid_world, random_mdp, river_swim
from rbmle.control.family import Family
from rbmle.control.finite_ce import FiniteCE
from rbmle.control.finite_rbmle import FiniteRBMLE
from rbmle.control.kl_ucrl import KLUCRL
from rbmle.control.likelihood import frequencies, log_likelihood
from rbmle.control.mdp import MDP
from rbmle.control.planning import Solution, evaluate, policy_iteration, solve, value_iteration
from rbmle.control.psrl import PSRL
from rbmle.control.simulation import Trajectory, simulate, step_by_step
from rbmle.control.tabular_ce import TabularCE
from rbmle.control.tabular_rbmle import TabularRBMLE
from rbmle.control.ucrl2 import UCRL2
from rbmle.control.walk import Walk

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
