"""Reward distributions, one per file, each as its pair b, b′."""

from rbmle.likelihoods.base import Likelihood
from rbmle.likelihoods.bernoulli import Bernoulli
from rbmle.likelihoods.gaussian import Gaussian
from rbmle.likelihoods.mixture import Mixture

LIKELIHOODS = (Gaussian, Bernoulli, Mixture)

__all__ = ["LIKELIHOODS", "Bernoulli", "Gaussian", "Likelihood", "Mixture"]
