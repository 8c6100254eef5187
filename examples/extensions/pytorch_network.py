"""Explore with a PyTorch network of your own
==========================================

Twenty-five readers, forty books, and each rates what we recommend. Books that one reader likes, similar
readers like too, but nobody has described either: all we have are their numbers. The model for this is a
factorisation with an embedding for each reader and each book. Can a bandit explore with such a model?
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from rbmle import Bandit, LinUCB, NeuralUCB
from rbmle.interop import Minibatch, TorchDiagonal, TorchNetwork, TorchRegression
from rbmle.plots import plot_rewards

torch.set_num_threads(1)  # more of them cost a small network more than they save
READERS, BOOKS, TASTES, ROUNDS = 25, 40, 3, 400


# %%
# The network
# -----------
# Any ``nn.Module`` with one output will do. The input is one-hot: one feature
# for each reader, one for each book.
class Factorisation(nn.Module):
    """The product of two embeddings, plus a number for each reader and each book."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.Linear(READERS, TASTES, bias=False)
        self.book = nn.Linear(BOOKS, TASTES, bias=False)
        self.offset = nn.Linear(READERS + BOOKS, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the expected rating of each row."""
        reader, book = x[..., :READERS], x[..., READERS:]
        product = (self.reader(reader) * self.book(book)).sum(-1, keepdim=True)
        return product + self.offset(x)


def make(inputs: int) -> nn.Module:
    """Return the network at its start."""
    return Factorisation()


# %%
# Under a policy
# --------------
# ``TorchRegression`` trains it on what was played, and ``TorchDiagonal`` takes its gradients for the
# bonus of NeuralUCB.
policies: dict[str, NeuralUCB | LinUCB] = {
    "factorisation": NeuralUCB(
        model=TorchRegression(
            network=TorchNetwork(make=make), training=Minibatch(steps=20, rate=0.1)
        ),
        precision=TorchDiagonal(),
    ),
    "a linear model": LinUCB(),
}

# %%
# Readers come and rate
# ---------------------
# Nobody tells the models that tastes have three dimensions. Ratings are between 0 and 1, with noise.
world = np.random.default_rng(0)
tastes, styles = world.normal(size=(READERS, TASTES)), world.normal(size=(BOOKS, TASTES))
likes = 1 / (1 + np.exp(-1.2 * tastes @ styles.T))


def rows(reader: int) -> np.ndarray:
    """Return the features of each book for a reader."""
    x = np.zeros((BOOKS, READERS + BOOKS))
    x[:, reader] = 1
    x[np.arange(BOOKS), READERS + np.arange(BOOKS)] = 1
    return x


def play(policy: NeuralUCB | LinUCB) -> np.ndarray:
    """Return how much readers like what they are recommended."""
    rng = np.random.default_rng(1)
    bandit = Bandit(policy, features=READERS + BOOKS, encoding="per-arm", seed=0)
    liked = np.zeros(ROUNDS)
    for number in range(ROUNDS):
        reader = int(rng.integers(READERS))
        decision = bandit.decide(rows(reader))
        liked[number] = likes[reader, int(decision.arm)]
        bandit.learn(decision, reward=liked[number] + 0.1 * rng.normal())
    return liked


results = {name: play(policy) for name, policy in policies.items()}
ax = plot_rewards(results, window=50)
for height, label in (
    (likes.max(axis=1).mean(), "the favourite of each reader"),
    (likes.mean(axis=0).max(), "the most popular book for all"),
):
    ax.axhline(height, color="black", ls=":", lw=1)
    ax.text(ROUNDS, height + 0.01, label, ha="right", va="bottom")
ax.set(xlabel="recommendations", ylabel="rating", ylim=(0, 1.05))
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# A linear model gives each reader and each book a number, and can at best find the most popular book. The
# factorisation is well past that, although most pairs of a reader and a book are never tried: there are
# 1,000 of them, and 400 recommendations.
for name, liked in results.items():
    print(f"{name:15} {liked[-100:].mean():.2f} in the last 100 recommendations")
