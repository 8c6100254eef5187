"""Bandits without contexts: RBMLE for exponential families, its rivals, and the bound of Lai and Robbins."""

from rbmle.classical.base import ArmPolicy
from rbmle.classical.beta_ts import BetaTS
from rbmle.classical.gaussian_ts import GaussianTS
from rbmle.classical.instances import BernoulliArms, GaussianArms, Instance, lai_robbins
from rbmle.classical.kl_ucb import KLUCB
from rbmle.classical.rbmle import RBMLE
from rbmle.classical.simulation import simulate
from rbmle.classical.ucb1 import UCB1

__all__ = [
    "KLUCB",
    "RBMLE",
    "UCB1",
    "ArmPolicy",
    "BernoulliArms",
    "BetaTS",
    "GaussianArms",
    "GaussianTS",
    "Instance",
    "lai_robbins",
    "simulate",
]
