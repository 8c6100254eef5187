"""The paper's theory in numbers: kernel, effective dimension, its assumption, its conditions and its bounds."""

from rbmle.theory.bounds import (
    Conditions,
    RegretBound,
    conditions,
    confidence_radius,
    curvature_bounds,
    ga_bound,
    pc_bound,
    reward_norm,
)
from rbmle.theory.ntk import Assumption1, assumption_1, effective_dimension, ntk, regret_bound

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
