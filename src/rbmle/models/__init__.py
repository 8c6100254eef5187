"""Models of the reward: f(x; θ), how it is trained, and its uncertainty."""

from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.blend import LinearPart
from rbmle.models.history import Memory
from rbmle.models.linear import GLM, Ridge
from rbmle.models.network import Network
from rbmle.models.precision import Diagonal, Exact
from rbmle.models.regression import FullBatch, Regression, Replay

__all__ = [
    "GLM",
    "ArmAscent",
    "Diagonal",
    "Exact",
    "FullBatch",
    "LinearPart",
    "Memory",
    "Network",
    "Regression",
    "Replay",
    "Ridge",
]
