"""What would other policies have earned?
======================================

A news page has a log of 5,000 visits: what it showed, with which probability, and whether it was clicked.
Before anything is changed on the page, we would like to know what other rules would have earned, and
how sure that is. No new visitor is needed for the answer.
"""

import json

import matplotlib.pyplot as plt
import numpy as np

from rbmle.evaluation import Rounds, TableLog, evaluate
from rbmle.plots import plot_estimates

TOPICS = ("sport", "politics", "science")
VISITS = 5_000


# %%
# The log
# -------
# The page showed sport in half of the visits, and otherwise one of the two other topics. Readers click
# on what they like in 30 %, and on anything else in 5 % of the visits. Replace ``log`` by the path of your own
# log: ``evaluate`` reads Parquet, CSV, DSJSON, and what ``rbmle serve`` wrote.
rng = np.random.default_rng(1)
likes = rng.choice(3, size=VISITS, p=[0.4, 0.3, 0.3])
shares = np.array([0.5, 0.25, 0.25])
shown = rng.choice(3, size=VISITS, p=shares)
clicks = np.where(shown == likes, 0.3, 0.05)
log = TableLog(
    {
        "context": [json.dumps({"reads": TOPICS[place]}) for place in likes],
        "actions": [json.dumps(TOPICS)] * VISITS,
        "arm": [TOPICS[place] for place in shown],
        "propensity": shares[shown],
        "probabilities": [shares.tolist()] * VISITS,
        "reward": (rng.random(VISITS) < clicks).astype(float),
    }
)


# %%
# The candidates
# --------------
# A rule is a function that returns the probabilities of all topics of some rounds, one after the other. A
# policy that learns is judged as it would have learned: it decides before it sees the click.
def always_sport(rounds: Rounds) -> np.ndarray:
    """Show sport to everybody."""
    return np.tile([1.0, 0.0, 0.0], len(rounds))


def what_they_read(rounds: Rounds) -> np.ndarray:
    """Show what the reader reads anyway."""
    assert rounds.contexts is not None
    places = [TOPICS.index(json.loads(text)["reads"]) for text in rounds.contexts.to_pylist()]
    return np.eye(3)[places].ravel()


candidates = {
    "at random": "uniform",
    "always sport": always_sport,
    "what they read": what_they_read,
    "a bandit that learns": "lin-ucb",
}
found = evaluate(log, candidates, estimators="snips,dr")
print(f"The page earned {found.mean:.3f} clicks a visit.")

# %%
# Estimates and the truth
# -----------------------
# The log is simulated, so we know what the fixed rules really earn: the crosses. The
# dotted line is what the old page earned.
truth = {
    "at random": 0.3 / 3 + 0.05 * 2 / 3,
    "always sport": 0.4 * 0.3 + 0.6 * 0.05,
    "what they read": 0.3,
}
ax = plot_estimates(found, estimator="dr")
for place, label in enumerate(text.get_text() for text in ax.get_yticklabels()):
    if label in truth:
        ax.plot(truth[label], place, "x", color="black", ms=9, mew=2)
ax.set_xlabel("clicks a visit, by the doubly robust estimator")
plt.show()

# %%
# Each interval contains its cross. Showing readers what they read is better than the old page beyond doubt,
# and the bandit, which had to find that out on the way, as well. The intervals are confidence sequences:
# they remain valid if you look every day, see :doc:`daily_peeking`.
for one in found.estimates:
    print(f"{one.policy:20} {one.estimator:5} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]")
