"""The everyday families: how the problems of each kind are drawn.

Defaults are chosen on the families of DEVELOPMENT and judged on those of REPORTED; each kind of difficulty is
in both groups. A family draws hidden parameters once for each seed, then many rounds at a time: contexts, a
reward for each arm, and the exact expected rewards.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Encoding

LATE = 50  # rounds after which a reward is known
COIN, ANY = (0.0, 1.0), (-math.inf, math.inf)  # the ranges of rewards

Rng = np.random.Generator
Rows = Float[np.ndarray, "n …"]  # a row for each round
Rounds = tuple[Rows, Rows, Rows]  # contexts, rewards and means
Play = Callable[[Int[np.ndarray, " n"], Rng], Rounds]  # of some rounds t, in order


class EverydayFamily(NamedTuple):
    """A kind of problem: its size, and how to draw one of it."""

    arms: int
    features: int  # of which the last is the constant 1, so that linear models have an intercept
    draw: Callable[[int, int, Rng], Play]  # of arms, the other features and a generator
    rewards: tuple[float, float] = COIN  # no reward is below the first or above the second
    encoding: Encoding = Encoding.DISJOINT
    delay: int = LATE
    rounds: int = 4000  # of a trial of the study
    shown: int = 1  # arms that are played in a round, as a list
    logged: int = 0  # rounds that are learned before the first
    logging: float = 0.0  # share of the logged rounds in which the arm was chosen by an old rule


# --- Development ---------------------------------------------------------------------------------------


def _clicks(arms: int, features: int, rng: Rng) -> Play:
    """Clicks of 3 to 15 % in most contexts; the log-odds are linear in the features."""
    W = _weights(rng, arms, features, 0.75)
    level = rng.normal(-2.7, 0.12, arms)
    return _linear_clicks(level, W)


def _segments(arms: int, features: int, rng: Rng) -> Play:
    """Clicks of visitors who come in eight segments, each with a rate for each arm."""
    centres = rng.normal(size=(8, features)) * 1.2
    rates = _logistic(rng.normal(-2.6, 0.8, (8, arms)))

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        segment = rng.integers(8, size=len(t))
        X = centres[segment] + rng.normal(size=(len(t), features)) * 0.7
        return _coins(X, rates[segment], rng)

    return play


def _euros(arms: int, features: int, rng: Rng) -> Play:
    """The value of a purchase, which most visitors do not make: a coin times a lognormal amount."""
    W, V = _weights(rng, arms, features, 0.6), _weights(rng, arms, features, 0.3)
    level, size, spread = rng.normal(-2.2, 0.3, arms), rng.normal(3.3, 0.3, arms), 0.8

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        chances, amounts = _logistic(level + X @ W.T), size + X @ V.T
        paid = rng.lognormal(amounts, spread) * (rng.random(chances.shape) < chances)
        return X, paid, chances * np.exp(amounts + spread**2 / 2)

    return play


def _offset_linear(arms: int, features: int, rng: Rng) -> Play:
    """Amounts around 250 that are linear in the features, with as much noise as signal."""
    W = _weights(rng, arms, features, 10.0)
    return _noisy(features, lambda X: 250.0 + X @ W.T, 15.0)


def _offset_nonlinear(arms: int, features: int, rng: Rng) -> Play:
    """Amounts around 250 by a random network of the features."""
    hidden, W = _hidden_layer(rng, 6, features), rng.normal(size=(arms, 6)) * 12.0 / 6**0.5
    return _noisy(features, lambda X: 250.0 + hidden(X) @ W.T, 15.0)


def _ratings(arms: int, features: int, rng: Rng) -> Play:
    """Stars from 1 to 5: a latent liking by taste and quality, rounded."""
    tastes = 4
    A = rng.normal(size=(tastes, features)) / features**0.5
    W, quality, spread = rng.normal(size=(arms, tastes)) * 0.6, rng.normal(3.2, 0.3, arms), 1.0
    edges = np.array([1.5, 2.5, 3.5, 4.5])

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        liking = quality + X @ (W @ A).T
        means = 1.0 + _normal_cdf((liking[..., None] - edges) / spread).sum(axis=-1)
        return X, np.clip(np.round(rng.normal(liking, spread)), 1, 5), means

    return play


def _costs(arms: int, features: int, rng: Rng) -> Play:
    """Costs as negative rewards: lognormal, so that the few large ones count most."""
    W = _weights(rng, arms, features, 0.35)
    level, spread = rng.normal(2.0, 0.15, arms), 0.6

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        logs = level + X @ W.T
        return X, -rng.lognormal(logs, spread), -np.exp(logs + spread**2 / 2)

    return play


def _many_arms(arms: int, features: int, rng: Rng) -> Play:
    """Clicks on one of fifty offers, for visitors of whom a few numbers are known."""
    W = _weights(rng, arms, features, 0.7)
    level = rng.normal(-1.8, 0.6, arms)
    return _linear_clicks(level, W)


def _sparse(arms: int, features: int, rng: Rng) -> Play:
    """Clicks by ten of two hundred words, of which some are common and most are rare."""
    W = rng.normal(size=(arms, features)) * 0.35
    level = rng.normal(-1.6, 0.3, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        # The ten largest of log p + Gumbel noise are ten draws without replacement.
        keys = rng.gumbel(size=(len(t), features)) - np.log(np.arange(1, features + 1))
        X = np.zeros((len(t), features))
        np.put_along_axis(X, np.argsort(-keys, axis=1)[:, :10], 1.0, axis=1)
        return _coins(X, _logistic(level + X @ W.T), rng)

    return play


def _weak(arms: int, features: int, rng: Rng) -> Play:
    """Three versions of a page, one a little better for all, with a small effect of the context."""
    W = _weights(rng, arms, features, 0.3)
    level = rng.permutation(np.linspace(-2.2, -1.7, arms))
    return _linear_clicks(level, W)


def _lists(arms: int, features: int, rng: Rng) -> Play:
    """Clicks on each of the three offers of a list, out of fifteen offers."""
    W = _weights(rng, arms, features, 0.8)
    level = rng.normal(-2.0, 0.4, arms)
    return _linear_clicks(level, W)


def _flips(arms: int, features: int, rng: Rng) -> Play:
    """The class of a context by a random network, with a fifth of the labels replaced."""
    hidden, W = _hidden_layer(rng, 8, features), rng.normal(size=(arms, 8))

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        return _label_rounds(X, (hidden(X) @ W.T).argmax(axis=1), arms, 0.2, rng)

    return play


def _xor(arms: int, features: int, rng: Rng) -> Play:
    """Coins by the exclusive or of two signs among the features: no feature alone says anything."""
    first, second = rng.choice(features, 2, replace=False)
    rates = rng.uniform(0.15, 0.6, (2, arms))
    return _coin_play(
        features, lambda X: rates[((X[:, first] > 0) ^ (X[:, second] > 0)).astype(np.int64)]
    )


def _wide(arms: int, features: int, rng: Rng) -> Play:
    """Gains that are linear in fifty features, with twice as much noise as signal."""
    W = _weights(rng, arms, features, 1.0)
    return _noisy(features, lambda X: X @ W.T, 2.0)


def _tiny(arms: int, features: int, rng: Rng) -> Play:
    """Five hundred coins in all, four arms."""
    W = _weights(rng, arms, features, 1.2)
    level = rng.normal(-0.8, 0.5, arms)
    return _linear_clicks(level, W)


def _raw(arms: int, features: int, rng: Rng) -> Play:
    """Clicks by features in their own units: ages, incomes, counts, shares and flags."""
    W = _weights(rng, arms, features, 1.2)
    level = rng.normal(-1.8, 0.4, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        Z = rng.normal(size=(len(t), features))
        X = _in_units(Z)
        return _coins(X, _logistic(level + Z @ W.T), rng)

    return play


def _articles(arms: int, features: int, rng: Rng) -> Play:
    """Clicks on one of twenty articles a round, by what the article and the reader have in common."""
    w = rng.normal(size=features) * 0.9 / features**0.5

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), arms, features))
        return _coins(X, _logistic(-2.2 + X @ w), rng)

    return play


# --- Reported ------------------------------------------------------------------------------------------


def _ads(arms: int, features: int, rng: Rng) -> Play:
    """Clicks of 2 to 12 % in most contexts, by numbers and by flags of which some are rare."""
    flags = features // 2
    often = rng.uniform(0.05, 0.6, flags)
    W, level = _weights(rng, arms, features, 0.9), rng.normal(-2.9, 0.15, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        numbers = rng.normal(size=(len(t), features - flags))
        X = np.concatenate([numbers, rng.random((len(t), flags)) < often], axis=1)
        return _coins(X, _logistic(level + X @ W.T), rng)

    return play


def _audiences(arms: int, features: int, rng: Rng) -> Play:
    """Clicks of 2 to 20 %; the log-odds are a random network of the features."""
    hidden, W = _hidden_layer(rng, 5, features), rng.normal(size=(arms, 5)) * 0.9 / 5**0.5
    level = rng.normal(-2.6, 0.2, arms)
    return _coin_play(features, lambda X: _logistic(level + hidden(X) @ W.T))


def _imported_log(arms: int, features: int, rng: Rng) -> Play:
    """Sign-ups: the log has 4,000 rounds of an old rule that seldom tried anything else."""
    W, level = _weights(rng, arms, features, 0.8), rng.normal(-2.2, 0.4, arms)
    return _coin_play(
        features, lambda X: _logistic(level + X @ W.T + 0.5 * np.abs(X[:, :1]) * W[:, 0])
    )


def _prices(arms: int, features: int, rng: Rng) -> Play:
    """Prices: a low one is taken often, a high one pays more; who takes which depends on the visitor."""
    prices = np.linspace(5.0, 40.0, arms)
    w, v = rng.normal(size=features) * 0.8 / features**0.5, rng.normal(size=features)
    v *= 0.4 / np.linalg.norm(v)
    steep = rng.uniform(0.06, 0.1)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        limit = steep * np.exp(X @ v)
        X, taken, chances = _coins(
            X, _logistic(0.3 + (X @ w)[:, None] - limit[:, None] * prices), rng
        )
        return X, taken * prices, chances * prices

    return play


def _baskets(arms: int, features: int, rng: Rng) -> Play:
    """Takings of a shop: 4 to 25 % buy, for an amount that has a gamma distribution."""
    W, V = _weights(rng, arms, features, 0.5), _weights(rng, arms, features, 0.4)
    level, size, shape = rng.normal(-2.0, 0.3, arms), rng.normal(4.0, 0.2, arms), 1.5

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        chances, amounts = _logistic(level + X @ W.T), np.exp(size + X @ V.T)
        paid = rng.gamma(shape, amounts / shape) * (rng.random(chances.shape) < chances)
        return X, paid, chances * amounts

    return play


def _meters(arms: int, features: int, rng: Rng) -> Play:
    """Amounts around 1,000 that are linear in the features, with twice as much noise as signal."""
    W, level = _weights(rng, arms, features, 20.0), rng.normal(1000.0, 8.0, arms)
    return _noisy(features, lambda X: level + X @ W.T, 40.0)


def _doses(arms: int, features: int, rng: Rng) -> Play:
    """Outcomes around 400: arms are doses, and what a patient is given should be near what he needs."""
    w, scale = rng.normal(size=features), rng.uniform(8.0, 14.0)
    w *= 1.2 / np.linalg.norm(w)
    doses = np.linspace(-2.0, 2.0, arms)
    return _noisy(
        features,
        lambda X: 400.0 - scale * (X @ w + 0.3 * X[:, 0] * X[:, 1] - doses[:, None]).T ** 2,
        25.0,
    )


def _reviews(arms: int, features: int, rng: Rng) -> Play:
    """Stars from 1 to 5, most of them 5 or 1; half of the readers judge by what the others ignore."""
    W, V = _weights(rng, arms, features, 1.2), _weights(rng, arms, features, 1.2)
    level, edges = rng.normal(0.8, 0.4, arms), np.array([-0.9, -0.5, 0.0, 0.4])

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        liking = level + np.where(X[:, :1] > 0, X @ W.T, X @ V.T)
        above = _logistic(liking[..., None] - edges)
        return (
            X,
            1.0 + (rng.random((*liking.shape, 1)) < above).sum(axis=-1),
            1.0 + above.sum(axis=-1),
        )

    return play


def _waiting(arms: int, features: int, rng: Rng) -> Play:
    """Waiting times as negative rewards, with a gamma distribution and products of two features."""
    W, V = _weights(rng, arms, features, 0.35), rng.normal(size=(arms, features // 2)) * 0.15
    level, shape = rng.normal(3.0, 0.15, arms), 2.0

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        pairs = X[:, 0 : 2 * (features // 2) : 2] * X[:, 1::2]
        means = np.exp(level + X @ W.T + np.clip(pairs @ V.T, -1.5, 1.5))
        return X, -rng.gamma(shape, means / shape), -means

    return play


def _heavy_tails(arms: int, features: int, rng: Rng) -> Play:
    """Gains and losses with Student noise of three degrees of freedom around a linear mean."""
    W, level = _weights(rng, arms, features, 1.0), rng.normal(0, 0.3, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        means = level + X @ W.T
        return X, means + 1.5 * rng.standard_t(3, means.shape), means

    return play


def _drift(arms: int, features: int, rng: Rng) -> Play:
    """Clicks whose tastes turn, slowly and for good, over some thousand rounds."""
    W, U = rng.normal(size=(2, arms, features)) * 0.7 / features**0.5
    level = rng.normal(-1.6, 0.3, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        angle = t[:, None] / 4000 * math.pi / 2
        logits = level + np.cos(angle) * (X @ W.T) + np.sin(angle) * (X @ U.T)
        return _coins(X, _logistic(logits), rng)

    return play


def _catalogue(arms: int, features: int, rng: Rng) -> Play:
    """Minutes of reading for forty articles a round, each with features of its own and of the visitor."""
    users, half = 5, features - 5
    items = rng.normal(size=(200, half))
    B, quality = rng.normal(size=(users, half)) * 0.6 / half**0.5, rng.normal(size=half) * 0.3

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        user = rng.normal(size=(len(t), 1, users))
        offered = items[rng.random((len(t), 200)).argsort(axis=1)[:, :arms]]
        taste = (offered * (user @ B)).sum(axis=-1)
        logs = 0.5 + offered @ quality / 2 + np.tanh(taste)
        X = np.concatenate([np.repeat(user, arms, axis=1), offered], axis=-1)
        return X, rng.lognormal(logs, 0.8), np.exp(logs + 0.32)

    return play


def _late(arms: int, features: int, rng: Rng) -> Play:
    """Renewals that are known five hundred rounds later; regions of the context have their own arm."""
    A, rates = rng.normal(size=(3, features)) / features**0.5, rng.uniform(0.1, 0.6, (8, arms))
    return _coin_play(features, lambda X: rates[(X @ A.T > 0) @ np.array([1, 2, 4])])


def _hundred_arms(arms: int, features: int, rng: Rng) -> Play:
    """Clicks on one of a hundred offers that come in ten kinds."""
    kinds = rng.normal(size=(10, features)) * 0.8 / features**0.5
    W = kinds[rng.integers(10, size=arms)] + _weights(rng, arms, features, 0.4)
    level = rng.normal(-2.0, 0.5, arms)
    return _linear_clicks(level, W)


def _one_hot(arms: int, features: int, rng: Rng) -> Play:
    """Coins by a country, an hour, a device and a channel, each one-hot; levels of a country are rare."""
    levels = (features - 18, 8, 4, 6)
    W, level = rng.normal(size=(arms, features)) * 0.5, rng.normal(-1.2, 0.3, arms)
    common = [1.0 / np.arange(1, n + 1) for n in levels]

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        draws = [rng.choice(len(p), len(t), p=p / p.sum()) for p in common]
        X = np.concatenate(
            [np.eye(len(p))[at] for p, at in zip(common, draws, strict=True)], axis=1
        )
        return _coins(X, _logistic(level + X @ W.T), rng)

    return play


def _playlist(arms: int, features: int, rng: Rng) -> Play:
    """Minutes for which each of four songs of a list is heard, out of twenty songs."""
    hidden, W = _hidden_layer(rng, 4, features), rng.normal(size=(arms, 4)) * 0.6 / 2
    V, level = _weights(rng, arms, features, 0.4), rng.normal(0.5, 0.2, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        means = np.exp(level + X @ V.T + hidden(X) @ W.T)
        return X, rng.exponential(means), means

    return play


def _mislabelled_rows(arms: int, features: int, rng: Rng) -> Play:
    """The class of a context, by the nearest of three centres for each; a quarter of labels replaced."""
    centres = rng.normal(size=(3 * arms, features))

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        at = rng.integers(3 * arms, size=len(t))
        X = centres[at] + rng.normal(size=(len(t), features)) * 0.6
        nearest = (X @ centres.T - (centres**2).sum(axis=1) / 2).argmax(axis=1)
        return _label_rounds(X, nearest % arms, arms, 0.25, rng)

    return play


def _survey(arms: int, features: int, rng: Rng) -> Play:
    """Scores from 0 to 10 by fifty answers that go together in groups of ten; a tenth of them matter."""
    mixing = np.kron(np.eye(features // 10), np.ones((1, 10)))
    W = rng.normal(size=(arms, features)) * (rng.random((arms, features)) < 0.1)
    level = rng.normal(6.0, 0.4, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        common = rng.normal(size=(len(t), features // 10)) @ mixing
        X = 0.7 * common + 0.7 * rng.normal(size=(len(t), features))
        means = 10 * _logistic((level + X @ W.T * 0.8 - 5.0) / 2.5)
        return X, rng.binomial(10, means / 10).astype(np.float64), means

    return play


def _pilot(arms: int, features: int, rng: Rng) -> Play:
    """Five hundred patients in all, three treatments; outcomes with more noise than signal."""
    W, level = _weights(rng, arms, features, 0.8), rng.normal(0, 0.3, arms)
    return _noisy(features, lambda X: level + X @ W.T, 1.5)


def _combos(arms: int, features: int, rng: Rng) -> Play:
    """Gains by which of two pairs of flags agree: four groups that no flag alone tells apart."""
    flags, gains = rng.choice(features, 4, replace=False), rng.normal(0, 1.0, (4, arms))

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.choice([-1.0, 1.0], size=(len(t), features))
        agree = X[:, flags[::2]] == X[:, flags[1::2]]
        means = gains[agree @ np.array([1, 2])]
        return X, rng.normal(means, 1.0), means

    return play


def _accounts(arms: int, features: int, rng: Rng) -> Play:
    """Fees of a bank in euros, by features in their own units: ages, incomes, counts, shares, flags."""
    W, level = _weights(rng, arms, features, 0.6), rng.normal(2.5, 0.2, arms)

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        Z = rng.normal(size=(len(t), features))
        logs = level + Z @ W.T
        return _in_units(Z), rng.lognormal(logs, 0.5), np.exp(logs + 0.125)

    return play


DEVELOPMENT: dict[str, EverydayFamily] = {
    "clicks": EverydayFamily(12, 17, _clicks, rounds=6000),
    "segments": EverydayFamily(12, 17, _segments),
    "warm-start": EverydayFamily(10, 15, _clicks, logged=4000, rounds=2000),
    "euros": EverydayFamily(5, 11, _euros, (0, math.inf), rounds=8000),
    "offset-linear": EverydayFamily(12, 17, _offset_linear, ANY),
    "offset-nonlinear": EverydayFamily(12, 17, _offset_nonlinear, ANY),
    "ratings": EverydayFamily(12, 17, _ratings, (1, 5)),
    "costs": EverydayFamily(12, 17, _costs, (-math.inf, 0)),
    "many-arms": EverydayFamily(50, 9, _many_arms),
    "sparse": EverydayFamily(8, 201, _sparse),
    "weak": EverydayFamily(3, 9, _weak),
    "lists": EverydayFamily(15, 11, _lists, shown=3, rounds=2000),
    "flips": EverydayFamily(6, 13, _flips),
    "xor": EverydayFamily(4, 9, _xor),
    "wide": EverydayFamily(5, 51, _wide, ANY),
    "tiny": EverydayFamily(4, 7, _tiny, rounds=500),
    "raw": EverydayFamily(6, 11, _raw),
    "articles": EverydayFamily(20, 13, _articles, encoding=Encoding.PER_ARM),
}
REPORTED: dict[str, EverydayFamily] = {
    "ads": EverydayFamily(10, 21, _ads, rounds=6000),
    "audiences": EverydayFamily(10, 15, _audiences),
    "imported": EverydayFamily(8, 13, _imported_log, logged=4000, logging=0.9, rounds=2000),
    "prices": EverydayFamily(8, 11, _prices, (0, 40)),
    "baskets": EverydayFamily(6, 13, _baskets, (0, math.inf), rounds=8000),
    "meters": EverydayFamily(10, 13, _meters, ANY),
    "doses": EverydayFamily(7, 9, _doses, ANY),
    "reviews": EverydayFamily(10, 13, _reviews, (1, 5)),
    "waiting": EverydayFamily(8, 13, _waiting, (-math.inf, 0)),
    "heavy-tails": EverydayFamily(8, 13, _heavy_tails, ANY),
    "drift": EverydayFamily(8, 13, _drift),
    "late": EverydayFamily(6, 13, _late, delay=500),
    "hundred": EverydayFamily(100, 7, _hundred_arms),
    "catalogue": EverydayFamily(40, 16, _catalogue, (0, math.inf), encoding=Encoding.PER_ARM),
    "one-hot": EverydayFamily(6, 61, _one_hot),
    "playlist": EverydayFamily(20, 11, _playlist, (0, math.inf), shown=4, rounds=2000),
    "mislabelled": EverydayFamily(5, 17, _mislabelled_rows),
    "survey": EverydayFamily(6, 51, _survey, (0, 10)),
    "pilot": EverydayFamily(3, 9, _pilot, ANY, rounds=500),
    "combos": EverydayFamily(6, 11, _combos, ANY),
    "accounts": EverydayFamily(6, 11, _accounts, (0, math.inf)),
}


def _weights(rng: Rng, arms: int, features: int, size: float) -> Float[np.ndarray, "arms features"]:
    """Return weights for which a linear score of standard normal features has this deviation."""
    return rng.normal(size=(arms, features)) * size / features**0.5


def _hidden_layer(rng: Rng, units: int, features: int) -> Callable[[Rows], Rows]:
    """Return the hidden layer of a random network."""
    A, shift = (
        rng.normal(size=(units, features)) * 1.5 / features**0.5,
        rng.normal(size=units) * 0.5,
    )
    return lambda X: np.tanh(2 * (X @ A.T + shift))


def _linear_clicks(level: Rows, W: Rows) -> Play:
    """Return coins whose log-odds are linear in standard normal features."""
    return _coin_play(W.shape[1], lambda X: _logistic(level + X @ W.T))


def _coin_play(features: int, chances: Callable[[Rows], Rows]) -> Play:
    """Return coins with some chances, by standard normal features."""

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        return _coins(X, chances(X), rng)

    return play


def _noisy(features: int, means_of: Callable[[Rows], Rows], deviation: float) -> Play:
    """Return means with Gaussian noise, by standard normal features."""

    def play(t: np.ndarray, rng: Rng) -> Rounds:
        X = rng.normal(size=(len(t), features))
        means = means_of(X)
        return X, rng.normal(means, deviation), means

    return play


def _coins(X: Rows, chances: Rows, rng: Rng) -> Rounds:
    return X, (rng.random(chances.shape) < chances).astype(np.float64), chances


def _label_rounds(X: Rows, labels: Rows, arms: int, wrong: float, rng: Rng) -> Rounds:
    """Return rounds whose reward is 1 for the label; a share of the labels is replaced at random."""
    means = (1 - wrong) * np.eye(arms)[labels] + wrong / arms
    drawn = np.where(rng.random(len(X)) < wrong, rng.integers(arms, size=len(X)), labels)
    return X, np.eye(arms)[drawn], means


def _in_units(Z: Rows) -> Rows:
    """Return standard normal features as ages, incomes, counts, shares and flags, in turn."""
    units = (
        lambda z: np.round(np.clip(42 + 13 * z, 18, 95)),
        lambda z: np.round(np.exp(10.3 + 0.5 * z), -2),
        lambda z: np.floor(np.exp(1.5 + 0.9 * z)),
        _logistic,
        lambda z: (z > 0.8).astype(np.float64),
    )
    return np.stack([units[i % len(units)](Z[:, i]) for i in range(Z.shape[1])], axis=1)


def _logistic(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _normal_cdf(z: np.ndarray) -> np.ndarray:
    return (1.0 + _erf(z / math.sqrt(2.0))) / 2.0
