"""Start warm from the log of the old system
=========================================

A new bandit explores at the cost of your first users. But you probably have a log: what the old system
showed, and what came of it. How much of that cost does the log save?
"""

import json

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit
from rbmle.evaluation import TableLog, warm_start
from rbmle.plots import plot_regret

OFFERS = ("5 % off", "free delivery", "a gift", "nothing")
CUSTOMERS, RUNS = 1_000, 5


# %%
# The customers
# -------------
# They have an age and a basket. What an offer does depends on both.
def draw_customer(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return features of a customer, and the probability that they buy with each offer."""
    age, basket = rng.normal(size=2)
    score = np.array([0.9 * basket, 0.8 - 0.8 * basket, -0.9 * age, -0.2])
    return np.array([age, basket, 1.0]), 1 / (1 + np.exp(1.0 - score))


# %%
# The log of the old system
# -------------------------
# The old system offered free delivery to most, and anything else at random to one customer in five. A log
# has one row for each decision. From a file it is the same: ``warm_start(bandit, "log.parquet")``.
def old_log(size: int, seed: int) -> TableLog:
    """Return decisions that the old system made."""
    rng = np.random.default_rng(1_000 + seed)
    columns: dict[str, list[object]] = {"context": [], "actions": [], "arm": [], "reward": []}
    for _ in range(size):
        x, buys = draw_customer(rng)
        offer = int(rng.integers(4)) if rng.random() < 0.2 else 1
        columns["context"].append(json.dumps(x.tolist()))
        columns["actions"].append(json.dumps(OFFERS))
        columns["arm"].append(OFFERS[offer])
        columns["reward"].append(float(rng.random() < buys[offer]))
    return TableLog(columns)


# %%
# Cold and warm
# -------------
# The policies are the same; one has learned the log before its first customer.
def play(logged: int, seed: int) -> np.ndarray:
    """Return how many sales each customer cost, against the best offer for them."""
    rng = np.random.default_rng(seed)
    bandit = Bandit("neural-rbmle-ga", arms=OFFERS, features=3, seed=seed)
    if logged:
        warm_start(bandit, old_log(logged, seed))
    lost = np.zeros(CUSTOMERS)
    for number in range(CUSTOMERS):
        x, buys = draw_customer(rng)
        decision = bandit.decide(x)
        offer = OFFERS.index(str(decision.arm))
        lost[number] = buys.max() - buys[offer]
        bandit.learn(decision, reward=float(rng.random() < buys[offer]))
    return lost


lost = {
    title: np.array([play(logged, seed) for seed in range(RUNS)])
    for title, logged in {"cold": 0, "a log of 200": 200, "a log of 2,000": 2_000}.items()
}

# %%
# Sales lost while learning
# -------------------------
# Means of five runs, with bands of two standard errors.
ax = plot_regret(lost)
ax.set(xlabel="customers", ylabel="sales lost")
plt.show()

# %%
# A cold start is steepest at the beginning, when the bandit knows nothing. The longer the log, the less of
# that is left: with 2,000 decisions the line is nearly flat from the first customer on. No propensities
# are needed for this, because a model of rewards may learn from decisions that anybody made. They are
# needed to *judge* a policy on a log, see :doc:`/gallery/logs/off_policy_evaluation`.
for title, values in lost.items():
    first, rest = values[:, :100].sum(axis=1).mean(), values[:, 100:].sum(axis=1).mean()
    print(
        f"{title:14} {first:4.1f} sales lost on the first 100 customers, {rest:5.1f} on the others"
    )
