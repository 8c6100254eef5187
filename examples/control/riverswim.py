"""Swim up the river: choices that change what comes next
======================================================

A swimmer may drift down a river, where a small reward is certain, or swim up against the current, where a
large one waits at the far end. Unlike in a bandit, an action changes what comes next, and those who never
swim far enough never learn what is there. Do learners find it, and how soon?

This is where reward-biased maximum likelihood comes from: Kumar and Becker introduced it in 1982 for
unknown Markov chains.
"""

import matplotlib.pyplot as plt
import numpy as np

from rbmle.control import KLUCRL, PSRL, TabularCE, TabularRBMLE, river_swim, simulate, solve
from rbmle.plots import COLOURS

# %%
# The river
# ---------
# RiverSwim has six places. Swimming up succeeds in about one step of three. ``solve`` knows the river and
# computes the best average reward; learners begin without knowing any transition.
river = river_swim(6)
best = solve(river)
print(f"Drifting earns {river.rewards[0].max():.3f} a step, the best policy {best.gain:.3f}.")

# %%
# Four learners
# -------------
# The first acts as if what it has seen so far were the truth. RBMLE prefers, among likely rivers, those
# that promise more. PSRL plays a river drawn from its posterior, and KL-UCRL the best one within confidence
# bounds.
learners = {
    "as if estimates were true": TabularCE(),
    "KL-UCRL": KLUCRL(),
    "PSRL": PSRL(),
    "RBMLE": TabularRBMLE(),
}
STEPS, RUNS = 30_000, 8
times = np.unique(np.geomspace(10, STEPS, 60).astype(int)).tolist()
regrets = {
    name: np.array([simulate(river, learner, times, seed).regrets for seed in range(RUNS)])
    for name, learner in learners.items()
}

# %%
# Regret over time
# ----------------
# Regret is what the best policy would have earned, minus what was earned. Lines are medians of eight runs,
# bands go from the lowest to the highest run.
figure, ax = plt.subplots(layout="constrained")
for (name, runs), colour in zip(regrets.items(), COLOURS[3::-1], strict=True):
    middle = np.median(runs, axis=0)
    ax.plot(times, middle, color=colour, lw=2)
    ax.fill_between(times, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.15, lw=0)
    ax.annotate(
        name, (times[-1], middle[-1]), (6, 0), textcoords="offset points", color=colour, va="center"
    )
ax.set(xscale="log", yscale="log", xlabel="step", ylabel="regret")
ax.set_xlim(times[0], times[-1])
plt.show()

# %%
# The learner that trusts its estimates drifts for ever: it has seen the small reward, and nothing it does tells
# it about the large one. Its regret grows by the same amount in every step. The other three try to swim up
# because it *might* pay, and differ in how long they keep trying what does not.
for name, runs in regrets.items():
    earned = best.gain - np.median(runs[:, -1]) / STEPS
    print(f"{name:25} {earned:.3f} a step")
