"""What poses the problem."""

from rbmle.environments.base import Environment, Round
from rbmle.environments.classification import Classification
from rbmle.environments.noise import BernoulliNoise, GaussianNoise, Noise
from rbmle.environments.reward_functions import FUNCTIONS, RewardFunction
from rbmle.environments.synthetic import Synthetic

# The name of a synthetic problem on the command line, and in tables.
SYNTHETIC: dict[str, Synthetic] = {
    world.name: world
    for noise in (GaussianNoise(), BernoulliNoise())
    for world in (Synthetic(function=function, noise=noise) for function in FUNCTIONS)
}

__all__ = [
    "FUNCTIONS",
    "SYNTHETIC",
    "BernoulliNoise",
    "Classification",
    "Environment",
    "GaussianNoise",
    "Noise",
    "RewardFunction",
    "Round",
    "Synthetic",
]
