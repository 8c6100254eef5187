"""Show each reader the news they click
====================================

A news page has six articles and one place at the top. The usual way to fill it is an A/B test: show
all six at random for a while, then keep the one that was clicked most. But readers differ. What does
the page gain if it learns, while it runs, which article suits which reader?
"""

import matplotlib.pyplot as plt
import numpy as np

from rbmle import Bandit, Hashing
from rbmle.plots import plot_arm_shares, plot_rewards

TOPICS = ("sport", "politics", "science")
ARTICLES = [{"topic": topic, "length": size} for topic in TOPICS for size in ("short", "long")]
IDS = [f"{article['topic']}, {article['length']}" for article in ARTICLES]
READERS, RUNS = 2_000, 3


# %%
# The readers
# -----------
# Half of the readers come for sport. Everybody prefers their own topic, and on a phone a short text.
# Replace this function by your page: all that the bandit sees are the dictionaries.
def draw_reader(rng: np.random.Generator) -> tuple[dict[str, str], np.ndarray]:
    """Return a reader, and the probability of a click on each article."""
    topic = str(rng.choice(TOPICS, p=[0.5, 0.3, 0.2]))
    device = str(rng.choice(["phone", "laptop"]))
    size = "short" if device == "phone" else "long"
    is_topic = np.array([article["topic"] == topic for article in ARTICLES])
    is_size = np.array([article["length"] == size for article in ARTICLES])
    return {"likes": topic, "device": device}, 0.03 + 0.2 * is_topic + 0.1 * is_size


# %%
# Two ways to choose
# ------------------
# The A/B test spends its first 600 readers on finding one winner. The bandit decides for each reader,
# and learns from each click or its absence. Both are scored by the probability of a click on what they
# showed.
def run_ab_test(seed: int) -> np.ndarray:
    """Return click probabilities of a page that shows the winner of a test to everybody."""
    rng = np.random.default_rng(seed)
    clicks, earned = np.zeros(len(ARTICLES)), np.zeros(READERS)
    for number in range(READERS):
        _, chances = draw_reader(rng)
        article = number % len(ARTICLES) if number < 600 else int(np.argmax(clicks))
        earned[number] = chances[article]
        if number < 600:
            clicks[article] += rng.random() < chances[article]
    return earned


def run_bandit(seed: int) -> tuple[np.ndarray, list[str]]:
    """Return click probabilities of a page that learns, and what was shown to fans of science."""
    rng = np.random.default_rng(seed)
    bandit = Bandit("neural-rbmle-ga", features=Hashing(bits=8), encoding="per-arm", seed=seed)
    earned, for_science = np.zeros(READERS), []
    for number in range(READERS):
        reader, chances = draw_reader(rng)
        decision = bandit.decide((reader, ARTICLES), eligible=IDS)
        earned[number] = chances[IDS.index(str(decision.arm))]
        bandit.learn(decision, reward=float(rng.random() < earned[number]))
        if reader["likes"] == "science":
            for_science.append(str(decision.arm))
    return earned, for_science


played = [run_bandit(seed) for seed in range(RUNS)]
rates = {
    "bandit": np.array([earned for earned, _ in played]),
    "A/B test": np.array([run_ab_test(seed) for seed in range(RUNS)]),
}

# %%
# What the page earns
# -------------------
# The line is the mean of three runs, the band two standard errors.
ax = plot_rewards(rates, window=100)
ax.axhline(0.33, color="black", ls=":", lw=1)
ax.text(READERS, 0.333, "every reader's favourite", ha="right", va="bottom")
ax.set(xlabel="readers", ylabel="click probability", ylim=(0, 0.38))
plt.show()

# %%
# The test finds the article that most readers like, and stays there: it shows sport to everybody, also
# to those who came for science. The bandit is ahead long before the test is over, because it stops
# showing what is not clicked, and it ends close to every reader's favourite, because the favourite
# depends on the reader.
for name, values in rates.items():
    print(f"{name:9} {values.mean():.3f} clicks a reader, {values[:, -500:].mean():.3f} in the end")

# %%
# One reader in five
# ------------------
# Fans of science are the smallest group. What did they get, in the first run?
ax = plot_arm_shares(played[0][1], window=40)
ax.set(xlabel="readers who like science", title="What fans of science are shown")
plt.show()

# %%
# At first they are shown a bit of everything, in the end nearly always science. Nobody told the bandit that
# the word *science* in a reader and in an article have something to do with each other.
