"""The paper's theory in numbers: kernel, effective dimension, its assumption, its conditions and its bounds."""

from rbmle.theory.assumption import Assumption1, assumption_1
from rbmle.theory.conditions import Conditions, conditions
from rbmle.theory.curvature import curvature_bounds
from rbmle.theory.effective_dimension import effective_dimension, regret_bound
from rbmle.theory.ntk import ntk
from rbmle.theory.regret_bounds import (
    RegretBound,
    confidence_radius,
    ga_bound,
    pc_bound,
    reward_norm,
)

__all__ = [
    "Assumption1",
    "Conditions",
    "RegretBound",
    "assumption_1",
    "conditions",
    "confidence_radius",
    "curvature_bounds",
    "effective_dimension",
    "ga_bound",
    "ntk",
    "pc_bound",
    "regret_bound",
    "reward_norm",
]
