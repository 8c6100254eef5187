"""Count purchases with a likelihood of your own
=============================================

How many articles will a visitor buy? Counts are never negative, and their spread grows with their mean. A
model of squared errors knows neither. A likelihood is two short functions: here is Poisson's, which says
that what features change is the *logarithm* of the mean.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

from rbmle import GLM, GLMRBMLE, Bandit, Gaussian
from rbmle.plots import plot_calibration


# %%
# The likelihood
# --------------
# A likelihood of the exponential family is known by b; its derivative is the mean. Both are compiled, so
# that your functions run in the same kernels as those that ship.
@dataclass(frozen=True)
class Poisson:
    """Counts: b(z) = exp(z), so the mean is exp(z), too."""

    rewards: ClassVar[tuple[float, float]] = (0.0, math.inf)  # others are refused

    @staticmethod
    def b(z: float) -> float:
        """Return b(z)."""
        return math.exp(min(z, 20.0))

    @staticmethod
    def mean(z: float) -> float:
        """Return the expected count."""
        return math.exp(min(z, 20.0))


# %%
# Visitors who buy
# ----------------
# Three shop windows. What each sells is the exponential of a line in the features of the visitor.
WEIGHTS = np.array([[0.9, 0.0, 0.2], [-0.6, 0.7, 0.2], [-0.3, -0.9, 0.2]])
ROUNDS = 3_000


def play(likelihood: Poisson | Gaussian) -> tuple[Bandit, np.ndarray, np.ndarray]:
    """Return a bandit, what it predicted of each window that it chose, and what was sold."""
    rng = np.random.default_rng(0)
    bandit = Bandit(GLMRBMLE(model=GLM(likelihood=likelihood)), arms=3, features=3, seed=0)
    predicted, sold = np.zeros(ROUNDS), np.zeros(ROUNDS)
    for number in range(ROUNDS):
        x = np.array([*rng.normal(size=2), 1.0])
        decision = bandit.decide(x)
        predicted[number] = likelihood.mean(bandit.predict(x)[decision.arm])
        sold[number] = rng.poisson(np.exp(WEIGHTS[int(decision.arm)] @ x))
        bandit.learn(decision, reward=sold[number])
    return bandit, predicted, sold


# %%
# Which model predicts well?
# --------------------------
# ``predict`` returns z; the expected count is its mean, b'(z). Each dot has a tenth of the rounds after the
# first 500. The dots of a good model lie on the line.
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
errors, smallest = {}, {}
likelihoods: tuple[Gaussian | Poisson, ...] = (Gaussian(), Poisson())
for ax, likelihood in zip(panels, likelihoods, strict=True):
    bandit, predicted, sold = play(likelihood)
    name = type(likelihood).__name__
    errors[name] = np.mean((predicted[500:] - sold[500:]) ** 2)
    smallest[name] = predicted[500:].min()
    plot_calibration(predicted[500:], sold[500:], ax=ax)
    ax.set(title=f"{name}: squared error {errors[name]:.2f}", xlabel="predicted sales")
panels[0].set_ylabel("mean sales")
panels[1].set_ylabel("")
plt.show()

# %%
# The Gaussian model is a line and cannot bend: it promises too much where sales are average, and too little
# where they are very small or large. The dots of the Poisson model lie near the line all the way. And
# one of the two believes in negative sales; these are the smallest predictions:
for name, value in smallest.items():
    print(f"{name:9} {value:.2f}")
