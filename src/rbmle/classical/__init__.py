"""Bandits without contexts: RBMLE, UCB1, KL-UCB, Thompson sampling, and the bound of Lai and Robbins."""

from rbmle.classical.policies import KLUCB, RBMLE, UCB1, ArmPolicy, BetaTS, GaussianTS
from rbmle.classical.simulation import BernoulliArms, GaussianArms, Instance, lai_robbins, simulate

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
