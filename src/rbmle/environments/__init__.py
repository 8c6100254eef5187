"""What poses the problem."""

from rbmle.environments.base import Environment, Round
from rbmle.environments.classification import Classification

__all__ = ["Classification", "Environment", "Round"]
