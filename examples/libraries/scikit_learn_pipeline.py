"""Put a bandit into a scikit-learn pipeline
=========================================

A classifier is told the right class of every row. A bandit says a class and is told only whether that was
right. How much does it cost to know so little? ``BanditClassifier`` goes where classifiers go, so
scikit-learn itself can answer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbmle.interop import BanditClassifier
from rbmle.plots import COLOURS, plot_rewards

# %%
# Learning curves
# ---------------
# Handwritten digits, ten classes. Both models stand behind the same scaler, and ``learning_curve``
# measures both on rows that they have not seen. A bandit plays each row of its training set once.
X, y = load_digits(return_X_y=True)
models = {
    "told the right class": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "told right or wrong": make_pipeline(
        StandardScaler(), BanditClassifier("neural-rbmle-ga", random_state=0)
    ),
}
figure, ax = plt.subplots(layout="constrained")
curves = {}
for (name, model), colour in zip(models.items(), COLOURS[1::-1], strict=True):
    folds = ShuffleSplit(2, test_size=400, random_state=0)
    sizes, _, curves[name] = learning_curve(
        model, X, y, train_sizes=[100, 300, 600, 1_200], cv=folds
    )
    ax.plot(sizes, curves[name].mean(axis=1), "o-", color=colour, lw=2, label=name)
    ax.plot(sizes, curves[name], ".", color=colour, alpha=0.5)
ax.set(xlabel="rows in the training set", ylabel="right classes of new rows", ylim=(0, 1))
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# The classifier that sees every class needs a hundred rows. The bandit begins by guessing one of ten, and of
# a wrong guess it learns only that nine classes are left. With enough rows it comes close all the same.
for name, scores in curves.items():
    print(f"{name:21}", " ".join(f"{score:.2f}" for score in scores.mean(axis=1)))

# %%
# What learning cost
# ------------------
# For a bandit the training set is the real thing: each row was a decision. ``rewards_`` has what each of them
# was paid, before it was learned.
model = models["told right or wrong"].fit(X, y)
rewards = model[-1].rewards_
ax = plot_rewards({"right classes while learning": rewards}, window=100)
ax.set(xlabel="rows", ylabel="share of the last 100 rows", ylim=(0, 1))
ax.axhline(0.1, color="black", ls=":", lw=1)
ax.text(len(y), 0.11, "guessing", ha="right", va="bottom")
plt.show()
print(f"{int(np.sum(1 - rewards))} of {len(y):,} rows were played wrongly on the way")
