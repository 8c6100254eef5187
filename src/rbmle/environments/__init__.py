"""What poses the problem."""

from rbmle.environments.altered import ALTERATIONS, Altered, Change
from rbmle.environments.base import Environment, Round
from rbmle.environments.classification import Classification
from rbmle.environments.coins import Coins
from rbmle.environments.everyday import EVERYDAY, FAMILIES, Everyday, gap_closed
from rbmle.environments.everyday_families import DEVELOPMENT, REPORTED
from rbmle.environments.naming import COINS, DRAWN, SYNTHETIC, altered, problem, split
from rbmle.environments.noise import BernoulliNoise, GaussianNoise, Noise
from rbmle.environments.reward_functions import FUNCTIONS, RewardFunction
from rbmle.environments.synthetic import Synthetic

__all__ = [
    "ALTERATIONS",
    "COINS",
    "DEVELOPMENT",
    "DRAWN",
    "EVERYDAY",
    "FAMILIES",
    "FUNCTIONS",
    "REPORTED",
    "SYNTHETIC",
    "Altered",
    "BernoulliNoise",
    "Change",
    "Classification",
    "Coins",
    "Environment",
    "Everyday",
    "GaussianNoise",
    "Noise",
    "RewardFunction",
    "Round",
    "Synthetic",
    "altered",
    "gap_closed",
    "problem",
    "split",
]
