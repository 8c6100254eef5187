"""Detect that the world has changed
=================================

A competitor enters the market, a season ends, and what people liked yesterday they do not like today. A
model that has learned from thousands of old rewards would need thousands of new ones to change its mind.
How does a bandit notice that it has to start again?
"""

import logging

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit, NeuralUCB, Regression
from rbmle.plots import plot_rewards

logging.getLogger("rbmle.events").setLevel("ERROR")  # alarms are drawn below, not logged
ROUNDS, CHANGE, RUNS = 4_000, 2_000, 3

# %%
# A world that changes in the middle
# ----------------------------------
# Each of three arms is best for some contexts. In round 2,000 they trade places.
WEIGHTS = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])


def play(policy: NeuralUCB, seed: int) -> tuple[np.ndarray, list[int]]:
    """Return the expected reward of each round, and the rounds of the alarms."""
    rng = np.random.default_rng(seed)
    bandit = Bandit(policy, arms=3, features=3, seed=seed)
    earned = np.zeros(ROUNDS)
    for number in range(ROUNDS):
        x = rng.normal(size=2)
        weights = WEIGHTS if number < CHANGE else np.roll(WEIGHTS, 1, axis=0)
        chances = 1 / (1 + np.exp(-3 * weights @ x))
        decision = bandit.decide([*x, 1.0])
        earned[number] = chances[int(decision.arm)]
        bandit.learn(decision, reward=float(rng.random() < earned[number]))
    return earned, [event.round for event in bandit.events]


# %%
# With an alarm and without
# -------------------------
# Every model here has an alarm: a test of whether predictions have become clearly worse than they were.
# If it goes off, the model starts again. ``alarm=0.0`` turns it off.
policies = {
    "with the alarm (default)": NeuralUCB(),
    "without": NeuralUCB(model=Regression(alarm=0.0)),
}
played = {name: [play(policy, seed) for seed in range(RUNS)] for name, policy in policies.items()}
rewards = {name: np.array([earned for earned, _ in runs]) for name, runs in played.items()}
alarms = [alarm for _, rounds in played["with the alarm (default)"] for alarm in rounds]

# %%
# What the alarm is worth
# -----------------------
ax = plot_rewards(rewards, window=100)
ax.axvline(CHANGE, color="black", lw=1, ls=":")
ax.text(CHANGE, 0.03, "the world changes  ", ha="right")
ax.plot(alarms, np.full(len(alarms), 0.03), "v", color="#0072b2", clip_on=False)
ax.text(max(alarms) + 60, 0.03, "alarms", color="#0072b2")
ax.set(ylabel="expected reward", ylim=(0, 1))
plt.show()

# %%
# Both learn the first world equally well. When it changes, both fall. The one with the alarm forgets what
# it knew within some dozens of rounds, and learns the new world as fast as the old one. The other keeps
# averaging two worlds that contradict each other. There is no alarm in the first half: as long as
# nothing changes, both make the same choices.
print("alarms in rounds", ", ".join(f"{alarm:,}" for alarm in sorted(alarms)))
for name, values in rewards.items():
    print(f"{name:24} {values[:, CHANGE:].mean():.3f} in the new world")
