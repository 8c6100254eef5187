"""Side by side with coba and river
================================

You run experiments with `coba <https://github.com/VowpalWabbit/coba>`_, or have a program that uses
`river <https://riverml.xyz>`_, and would like to know how these policies do there. Adapters put them where
those libraries expect their own learners, so all of them play the same rounds.
"""

import coba
import matplotlib.pyplot as plt
import numpy as np
from coba.pipes import IterableSource
from river.bandit import LinUCBDisjoint

from rbmle.datasets import load
from rbmle.interop import CobaLearner, RiverPolicy
from rbmle.plots import plot_rewards

# %%
# The task
# --------
# Nine sensors of a space shuttle, and seven states that it can be in. Each state is an arm, and the right
# one pays 1. The data ship with the package.
ROUNDS, ORDERS = 800, 3
data = load("shuttle")
X, states = data.X[:6_000].astype(float), data.labels[:6_000]
names = [str(state) for state in range(data.classes)]

# %%
# In an experiment of coba
# ------------------------
# ``CobaLearner`` is a learner of coba; its own LinUCB gets a weight of each feature for each action.
labels = [coba.Categorical(names[state], names) for state in states]
source = IterableSource(list(zip(X.tolist(), labels, strict=True)))
worlds = coba.Environments.from_supervised(source, label_type="c").shuffle(n=ORDERS).take(ROUNDS)
learners = {
    "rbmle NeuralRBMLE-GA": CobaLearner("neural-rbmle-ga"),
    "rbmle LinUCB": CobaLearner("lin-ucb"),
    "coba LinUCB": coba.LinUCBLearner(features=[1, "a", "ax"]),
}
played = coba.Experiment(worlds, [*learners.values()]).run(quiet=True).interactions.to_pandas()
in_coba = {
    name: rows.sort_values(["environment_id", "index"])["reward"]
    .to_numpy(float)
    .reshape(ORDERS, -1)
    for name, (_, rows) in zip(learners, played.groupby("learner_id"), strict=True)
}


# %%
# In a loop of river
# ------------------
# A policy of river pulls an arm, and is updated with the reward. ``RiverPolicy`` is one of these.
def play(policy: RiverPolicy | LinUCBDisjoint, seed: int) -> np.ndarray:
    """Return the reward of each round."""
    rewards = np.zeros(ROUNDS)
    for number, row in enumerate(np.random.default_rng(seed).permutation(len(X))[:ROUNDS]):
        context = {f"sensor {place}": value for place, value in enumerate(X[row].tolist())}
        arm = policy.pull(names, context=context)
        rewards[number] = float(arm == names[states[row]])
        policy.update(arm, context, rewards[number])
    return rewards


in_river = {
    "rbmle NeuralRBMLE-GA": [
        play(RiverPolicy("neural-rbmle-ga", seed=s), s) for s in range(ORDERS)
    ],
    "rbmle LinUCB": [play(RiverPolicy("lin-ucb", seed=s), s) for s in range(ORDERS)],
    "river LinUCB": [play(LinUCBDisjoint(seed=s), s) for s in range(ORDERS)],
}

# %%
# The same task in both
# ---------------------
# Share of right states in the last 100 rounds, mean of three orders of the rows.
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, (library, results) in zip(
    panels, {"coba": in_coba, "river": in_river}.items(), strict=True
):
    plot_rewards(results, window=100, ax=ax)
    ax.set(title=f"in {library}", ylim=(0.6, 1.02))
panels[0].set_ylabel("right states")
panels[1].set_ylabel("")
plt.show()

# %%
# Policies are at their defaults, and this is one small task, so it says little about which one is best;
# the `bake-off <../../evidence/bakeoff.html>`_ is for that. What it shows is that a policy of rbmle learns
# in either library as it does in the other.
for library, results in {"coba": in_coba, "river": in_river}.items():
    for name, rewards in results.items():
        print(f"in {library:5} {name:21} {np.mean(rewards):.3f}")
