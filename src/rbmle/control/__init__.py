"""RBMLE where it came from: Markov decision processes whose transitions are unknown."""

from rbmle.control.examples import grid_world, random_mdp, river_swim
from rbmle.control.likelihood import frequencies, log_likelihood
from rbmle.control.mdp import MDP
from rbmle.control.planning import Solution, evaluate, policy_iteration, solve, value_iteration

__all__ = [
    "MDP",
    "Solution",
    "evaluate",
    "frequencies",
    "grid_world",
    "log_likelihood",
    "policy_iteration",
    "random_mdp",
    "river_swim",
    "solve",
    "value_iteration",
]
