"""The neural tangent kernel H, the effective dimension d̃, and the regret bound made of them."""

from rbmle.theory.effective_dimension import effective_dimension, regret_bound
from rbmle.theory.ntk import ntk

__all__ = ["effective_dimension", "ntk", "regret_bound"]
