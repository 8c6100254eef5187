"""Set prices when revenue has heavy tails
=======================================

A shop may ask one of five prices. Most visitors buy nothing, most buyers take one piece, and now and then
one buys for a whole company. A single order like that can make a bad price look good for weeks. Does it
help to cap what the bandit is told about an order?
"""

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit
from rbmle.plots import plot_regret

PRICES = np.array([20.0, 30.0, 40.0, 50.0, 60.0])
VISITORS, RUNS, CAP = 2_000, 5, 100.0


# %%
# The visitors
# ------------
# Those in a hurry accept a higher price. Whatever the price, one buyer in twelve takes many pieces, drawn
# from a Pareto distribution and at most 500.
def draw_visitor(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what is known of a visitor, the probability that they buy, and how many pieces."""
    hurry, noise = rng.normal(size=2)
    buys = 0.6 / (1 + np.exp((PRICES - 35 - 10 * hurry) / 6))
    pieces = 1 + (3 * rng.pareto(1.3) if rng.random() < 1 / 12 else 0)
    return np.array([hurry, noise, 1.0]), buys, min(pieces, 500)


rng = np.random.default_rng(0)
orders = np.array([draw_visitor(rng)[2] for _ in range(100_000)])
MEAN_PIECES = orders.mean()
largest = np.sort(orders)[-1_000:]
print(f"The largest 1 % of the orders make {largest.sum() / orders.sum():.0%} of all pieces.")


# %%
# Two ways to report revenue
# --------------------------
# Both bandits are scored by the same expected revenue; only what they learn from differs.
def play(policy: str, cap: float, seed: int) -> np.ndarray:
    """Return the expected revenue lost on each visitor, against the best price for them."""
    rng = np.random.default_rng(seed)
    bandit = Bandit(policy, arms=[f"{price:.0f} €" for price in PRICES], features=3, seed=seed)
    lost = np.zeros(VISITORS)
    for number in range(VISITORS):
        x, buys, pieces = draw_visitor(rng)
        decision = bandit.decide(x)
        price = bandit.arms.ids.index(decision.arm) if bandit.arms else 0
        revenue = PRICES * buys * MEAN_PIECES
        lost[number] = revenue.max() - revenue[price]
        paid = PRICES[price] * pieces * (rng.random() < buys[price])
        bandit.learn(decision, reward=min(paid, cap))
    return lost


# %%
# What a cap changes
# ------------------
# Five runs each; the band is two standard errors.
policies = {"a network": "neural-rbmle-ga", "a linear model": "lin-ucb"}
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
final = {}
for ax, (title, policy) in zip(panels, policies.items(), strict=True):
    runs = {
        name: np.array([play(policy, cap, seed) for seed in range(RUNS)])
        for name, cap in {"revenue as it is": np.inf, f"at most {CAP:.0f} €": CAP}.items()
    }
    final[title] = {name: values.sum(axis=1).mean() for name, values in runs.items()}
    plot_regret(runs, ax=ax)
    ax.set(title=title, xlabel="visitors", ylabel="")
panels[0].set_ylabel("expected revenue lost, €")
plt.show()

# %%
# The cap saves money with both models, although the bandit now sees less than was earned. Large orders
# are as likely at every price, so cutting them off removes noise and leaves the order of the prices as
# it is. That is the condition to think about before you set a cap: if one price attracted the large
# orders, the cap would hide it.
for title, lost in final.items():
    print(title, {name: f"{value:,.0f} €" for name, value in lost.items()})
