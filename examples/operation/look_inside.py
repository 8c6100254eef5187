"""Look inside: why this arm, and are the predictions right?
=========================================================

A bandit has chosen a banner for a visitor, and somebody asks why. What did it expect of each banner, what
did exploration add, and which features mattered? And are the rewards that it expects the ones that come?
"""

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit
from rbmle.plots import plot_arm_shares, plot_calibration, plot_explanation

BANNERS = ("shoes", "books", "garden", "nothing")
NAMES = ("age", "hour", "is_new", "constant")
ROUNDS = 2_000


# %%
# The visitors
# ------------
# Young visitors buy shoes, old ones like the garden, and books sell in the evening.
def buys(x: np.ndarray) -> np.ndarray:
    """Return the probability of a sale for each banner."""
    age, hour, _, _ = x
    score = np.array([-1.2 * age - 1, 1.2 * hour - 1, 1.2 * age - 1, -2.0])
    return 1 / (1 + np.exp(-score))


rng = np.random.default_rng(0)
bandit = Bandit("neural-rbmle-ga", arms=BANNERS, features=NAMES, seed=0)
decisions, expected, sold = [], [], []
for _ in range(ROUNDS):
    x = np.array([*rng.normal(size=2), float(rng.random() < 0.3), 1.0])
    decision = bandit.decide(x)
    expected.append(bandit.predict(x)[decision.arm])
    sold.append(float(rng.random() < buys(x)[BANNERS.index(str(decision.arm))]))
    decisions.append(decision)
    bandit.learn(decision, sold[-1])

# %%
# Which arms are played?
# ----------------------
plot_arm_shares(decisions, window=100)
plt.show()

# %%
# Shoes, books and the garden share the visitors. Hardly anybody is shown no banner at all.

# %%
# Why this arm?
# -------------
# ``explain`` answers for one visitor: here a young one, in the evening.
young = {"age": -1.5, "hour": 1.0, "is_new": 0.0, "constant": 1.0}
explanation = bandit.explain(young)
ax = plot_explanation(explanation)
ax.set(title="A young visitor in the evening", xlabel="expected sales")
plt.show()

# %%
# Blue is the reward that the bandit expects, yellow the bonus for exploration, and the arm with the largest sum
# is played. The bonus is largest for *nothing*, which was rarely played, but not large enough to change the
# order. The effect of a feature is how much the estimate would change without it:
print(explanation)

# %%
# Are the predictions right?
# --------------------------
# Each prediction was made before its reward was known. Predictions are sorted into ten groups of equal
# size; bars are two standard errors.
half = ROUNDS // 2
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, part, title in zip(
    panels, (slice(0, half), slice(half, None)), ("first half", "second half"), strict=True
):
    plot_calibration(expected[part], sold[part], ax=ax)
    ax.set(title=f"{title} of the rounds", xlabel="predicted sales", ylabel="")
panels[0].set_ylabel("mean sales")
plt.show()

# %%
# The dots lie along the line within their errors: where the bandit expects 70 % sales, about 70 % are
# sold. If the dots lay far off, we would not trust the estimates above.

# %%
# ``diagnose`` looks for common problems, such as features on very different scales, or predictions that are
# worse than a constant.
print(bandit.diagnose())
