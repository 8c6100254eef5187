"""Find the dose for each patient
==============================

Which of four doses does a patient need? It grows with weight and falls with age, but nobody has told
us so. We see one outcome of one dose for each patient, helped or not, and never learn what another dose
would have done. How many patients does it take until most of them get the right dose?

The patients are simulated. This shows how a bandit learns, and is no medical advice.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from rbmle import Bandit
from rbmle.plots import plot_rewards

DOSES = ("none", "low", "middle", "high")
PATIENTS, RUNS = 2_000, 3


# %%
# The patients
# ------------
# Age and weight are given as deviations from the mean, so both are of the size of 1. The right dose is a
# place on the scale of doses. Each step away from it costs 40 percentage points.
def chances(age: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the probability that each dose helps, a row for each patient."""
    right = np.clip(1.5 + weight - 0.7 * age, 0, 3)
    return np.maximum(0.95 - 0.4 * np.abs(np.arange(len(DOSES)) - right[:, None]), 0)


# %%
# Treat and learn
# ---------------
# NeuFastCB draws each dose with a probability that falls with what it is expected to lose. The decision
# carries that probability, exactly, so that the trial can be analysed later.
def treat(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return patients, the dose that each got, and the probability that each dose helps."""
    rng = np.random.default_rng(seed)
    patients = rng.normal(size=(PATIENTS, 2))
    helps = chances(*patients.T)
    bandit = Bandit("neu-fast-cb", arms=DOSES, features=["age", "weight", "constant"], seed=seed)
    given = np.zeros(PATIENTS, int)
    for number, (age, weight) in enumerate(patients):
        decision = bandit.decide([age, weight, 1.0])
        given[number] = DOSES.index(str(decision.arm))
        bandit.learn(decision, reward=float(rng.random() < helps[number, given[number]]))
    return patients, given, helps


trials = [treat(seed) for seed in range(RUNS)]
is_best = np.array([given == helps.argmax(axis=1) for _, given, helps in trials], float)

# %%
# Doses take their places
# -----------------------
# Each dot is a patient, its colour the dose they got. The lines separate patients for whom different
# doses are best; the bandit does not know them.
patients, given, helps = trials[0]
grid = np.linspace(-3, 3, 200)
best = chances(np.tile(grid, 200), np.repeat(grid, 200)).argmax(axis=1).reshape(200, 200)
colours = ListedColormap(["#e3e3e3", "#9ecae1", "#4292c6", "#08306b"])
figure, panels = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (first, last) in zip(panels, [(0, 200), (200, 500), (1_700, 2_000)], strict=True):
    age, weight = patients[first:last].T
    dots = ax.scatter(age, weight, c=given[first:last], cmap=colours, vmin=-0.5, vmax=3.5, s=22)
    dots.set(edgecolor="black", linewidth=0.3)
    ax.contour(grid, grid, best, levels=[0.5, 1.5, 2.5], colors="#d55e00", linewidths=1.2)
    share = is_best[0, first:last].mean()
    ax.set_title(f"patients {first + 1:,} to {last:,}\n{share:.0%} get their best dose")
    ax.set(xlabel="age", xlim=(-3, 3), ylim=(-3, 3))
panels[0].set_ylabel("weight")
figure.colorbar(dots, ax=panels, ticks=range(4), label="dose").set_ticklabels(DOSES)
plt.show()

# %%
# At first the doses are mixed. In the end they lie in stripes, in the right order, and most of the errors
# are near the lines, where two doses help almost equally.

# %%
# How long it takes
# -----------------
ax = plot_rewards({"NeuFastCB": is_best}, window=100)
ax.axhline(0.25, color="black", ls=":", lw=1)
ax.text(PATIENTS, 0.26, "at random", ha="right", va="bottom")
ax.set(xlabel="patients", ylabel="share with their best dose", ylim=(0, 1))
ax.legend().remove()
plt.show()

# %%
# Mean of three trials, with a band of two standard errors. The first few hundred patients bring most of
# the progress. A trial that gave each dose to a quarter of the patients would have stayed on the
# dotted line until its end.
print(f"{is_best[:, -500:].mean():.0%} of the last 500 patients got their best dose")
