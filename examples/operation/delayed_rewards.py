"""Learn from late rewards
=======================

A purchase comes hours after the banner, a cure weeks after the dose. Until then the bandit has to go on
deciding, and it does not know how its last choices went. How much does a delay cost?
"""

import json
from collections import deque

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit, Decision
from rbmle.plots import plot_regret

ROUNDS, RUNS = 1_500, 4
ARMS = ("red", "green", "blue")
WEIGHTS = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])


# %%
# Decisions travel as text
# ------------------------
# A decision has everything that is needed to learn from it later, in this process or in another one. Here
# decisions wait in a queue, as lines of JSON, until their rewards are known. The bandit itself keeps
# no list of what it waits for.
def play(delay: int, seed: int) -> np.ndarray:
    """Return the regret of each round, if a reward is known `delay` rounds later."""
    rng = np.random.default_rng(seed)
    bandit = Bandit("neural-rbmle-ga", arms=ARMS, features=3, seed=seed)
    waiting: deque[tuple[str, float]] = deque()
    regret = np.zeros(ROUNDS)
    for number in range(ROUNDS):
        x = rng.normal(size=2)
        chances = 1 / (1 + np.exp(-2 * WEIGHTS @ x))
        decision = bandit.decide([*x, 1.0])
        played = ARMS.index(str(decision.arm))
        regret[number] = chances.max() - chances[played]
        waiting.append((json.dumps(decision.as_dict()), float(rng.random() < chances[played])))
        if len(waiting) > delay:
            line, reward = waiting.popleft()
            bandit.learn(Decision.from_dict(json.loads(line)), reward)
    return regret


regrets = {
    f"{delay} rounds late" if delay else "at once": np.array([play(delay, s) for s in range(RUNS)])
    for delay in (0, 50, 300)
}

# %%
# What the delay costs
# --------------------
# Means of four runs, with bands of two standard errors.
ax = plot_regret(regrets)
plt.show()

# %%
# While nothing comes back, nothing is learned, and each run plays what it happened to begin with: the
# regret of that time is what a delay costs, and the wide band says that it is a matter of luck. Once
# rewards arrive the lines flatten as they do without a delay. In the end all three are almost level:
# late rewards teach the same as early ones.
for title, values in regrets.items():
    first, last = values[:, :600].sum(axis=1).mean(), values[:, -500:].sum(axis=1).mean()
    print(f"{title:16} regret {first:5.1f} in the first 600 rounds, {last:4.1f} in the last 500")

# %%
# If you know that rewards take long, begin with a log (:doc:`warm_start`), or with a ``floor`` that tries
# every arm now and then. The order in which rewards arrive does not matter, and a reward that
# arrives twice is refused, so a queue that delivers a message twice does no harm.
