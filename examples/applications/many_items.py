"""Recommend five of 2,000 items
=============================

A shop shows five of its 2,000 items to each visitor, and learns from each click. With so many items
nobody can wait until each was shown often enough. How soon does a bandit find what a visitor likes?

The answer is in the features: with ``encoding="per-arm"`` every item has a row of numbers, all items share
one model, and a click on one tells something about all items like it.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit
from rbmle.plots import plot_rewards

ITEMS, TASTES, LIST = 2_000, 4, 5
VISITORS = 400

# %%
# Items and visitors
# ------------------
# Items and visitors are described by four numbers each, such as style and price level. A click is
# likely where they agree. The row of an item has its own numbers, and their products with the visitor's.
world = np.random.default_rng(0)
items = world.normal(size=(ITEMS, TASTES))


def click_chances(visitor: np.ndarray) -> np.ndarray:
    """Return the probability of a click on each item."""
    return 1 / (1 + np.exp(5.5 - 1.2 * items @ visitor - 0.5 * items[:, 0]))


def rows(visitor: np.ndarray) -> np.ndarray:
    """Return the features of each item for a visitor."""
    return np.hstack([items * visitor, items, np.ones((ITEMS, 1))]) / 2


# %%
# Show lists, learn from clicks
# -----------------------------
# ``rank`` returns a decision for each position. Each has its own reward, and each is learned. A list is
# scored by its expected clicks, as a share of those of the best list for that visitor.
def recommend(policy: str) -> tuple[np.ndarray, float]:
    """Return the score of each list, and seconds for a list."""
    rng = np.random.default_rng(1)
    bandit = Bandit(policy, features=2 * TASTES + 1, encoding="per-arm", seed=0)
    scores, begin = np.zeros(VISITORS), time.perf_counter()
    for number in range(VISITORS):
        visitor = rng.normal(size=TASTES)
        chances = click_chances(visitor)
        for decision in bandit.rank(rows(visitor), LIST):
            item = int(decision.arm)
            bandit.learn(decision, reward=float(rng.random() < chances[item]))
            scores[number] += chances[item] / np.sort(chances)[-LIST:].sum()
    return scores, (time.perf_counter() - begin) / VISITORS


scores = {}
for title, policy in {"LinUCB": "lin-ucb", "NeuralRBMLE-GA": "neural-rbmle-ga"}.items():
    scores[title], seconds = recommend(policy)
    print(f"{title}: {1000 * seconds:.0f} ms to rank {ITEMS:,} items and to learn five rewards")

# %%
# One list for all
# ----------------
# For comparison: the five items that are clicked most on average. No page without personal lists can do
# better, even if it knew all click rates from the start.
rng = np.random.default_rng(2)
others = np.array([click_chances(rng.normal(size=TASTES)) for _ in range(1_000)])
popular = np.argsort(others.mean(axis=0))[-LIST:]
possible = np.sort(others, axis=1)[:, -LIST:].sum(axis=1)
one_list = np.mean(others[:, popular].sum(axis=1) / possible)

# %%
# Lists get better
# ----------------
ax = plot_rewards(scores, window=20)
ax.axhline(one_list, color="black", ls=":", lw=1)
ax.text(VISITORS, one_list + 0.01, "the best list for all", ha="right", va="bottom")
ax.set(xlabel="visitors", ylabel="share of the possible clicks", ylim=(0, 1.02))
plt.show()

# %%
# Both bandits are past the best list for all within the first hundred visitors, when most of the items
# have never been shown. In this world clicks depend on products of two features that the rows contain,
# so a linear model has all it needs, and it is the cheaper one. A network is for worlds where you do not
# know which products matter.
