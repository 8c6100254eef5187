"""Write a policy of your own
==========================

Boltzmann exploration plays each arm with a probability that grows exponentially with what it is expected to
pay. It is not part of this package. How much code is it, and how does it compare?
"""

from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit, Ridge
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.models.linear import RidgeState
from rbmle.plots import plot_regret
from rbmle.policies.base import ModelPolicy
from rbmle.testing import check_policy


# %%
# The policy
# ----------
# A policy is a frozen dataclass of settings. ``ModelPolicy`` learns with a model of the package, here
# ridge regression, so only two functions are left to write: the index of each arm, and, because this policy
# knows them, the probabilities.
@dataclass(frozen=True, slots=True, kw_only=True)
class Boltzmann(ModelPolicy[RidgeState]):
    """Play an arm with a probability in proportion to exp(θ̂ᵀx / temperature)."""

    model: Ridge = field(default_factory=Ridge)
    temperature: float = 0.2  # in deviations of the reward

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return what is expected of each arm."""
        estimates, _ = self.model.estimates(state, contexts)
        return estimates

    def weigh(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the same, and the probability of each arm."""
        estimates = self.index(state, contexts, rng)
        weights = np.exp((estimates - estimates.max()) / self.temperature)
        return estimates, weights / weights.sum()


# %%
# The contract
# ------------
# ``check_policy`` holds a policy to what all policies here promise: it learns, the same seed gives the same
# run, choosing changes nothing, a saved bandit continues bit for bit, and so on. It raises an error that
# names the first promise that is broken.
check_policy(Boltzmann())

# %%
# A comparison
# ------------
# Once it keeps the contract, it goes where every policy goes: into a ``Bandit``, into ``evaluate``, and on the
# command line: with the class in ``boltzmann.py``, ``rbmle run --policy boltzmann:Boltzmann`` plays it.
ROUNDS, RUNS = 1_500, 5
WEIGHTS = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9], [0.0, 0.0]])


def play(policy: Boltzmann | str, seed: int) -> np.ndarray:
    """Return the regret of each round."""
    rng = np.random.default_rng(seed)
    bandit = Bandit(policy, arms=4, features=2, seed=seed)
    regret = np.zeros(ROUNDS)
    for number in range(ROUNDS):
        x = rng.normal(size=2)
        chances = 1 / (1 + np.exp(-2 * WEIGHTS @ x))
        decision = bandit.decide(x)
        regret[number] = chances.max() - chances[int(decision.arm)]
        bandit.learn(decision, reward=float(rng.random() < chances[int(decision.arm)]))
    return regret


policies: dict[str, Boltzmann | str] = {
    "Boltzmann, temperature 1": Boltzmann(temperature=1.0),
    "Boltzmann, temperature 0.2": Boltzmann(),
    "LinUCB": "lin-ucb",
}
regrets = {
    name: np.array([play(policy, seed) for seed in range(RUNS)])
    for name, policy in policies.items()
}
plot_regret(regrets)
plt.show()

# %%
# Means of five runs, with bands of two standard errors. What matters is the temperature. At 1 the policy
# plays bad arms for ever, and its regret grows along a line. At 0.2 it is much better, but it does not
# explore less as it learns more, so LinUCB, which does, ends below it.
for name, values in regrets.items():
    print(f"{name:27} regret {values.sum(axis=1).mean():6.1f}")
