"""Eight worlds: who comes, what can be shown to them, and how probable a click is."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

Named = dict[str, dict[str, Any]]  # features by namespace and name
Generator = np.random.Generator

EVENTS = 20_000
NEW_ACTIONS_AT = 12_000


class Event(NamedTuple):
    """One visitor: what is known, what can be shown, and what each of it would earn."""

    context: Named
    ids: list[str]
    actions: list[Named]
    chances: Float[np.ndarray, " actions"]  # of a click
    luck: float  # a click comes if it is below the chance, whoever decides

    def reward(self, place: int) -> float:
        """Return what an action earns."""
        return float(self.luck < self.chances[place])


World = Callable[[Generator], Iterator[Event]]  # without an end


def strings(rng: Generator) -> Iterator[Event]:
    """Ten articles of five topics; who likes which topic depends on segment and device."""
    taste, form = rng.normal(size=(4, 5)), rng.normal(size=(3, 3))
    topics, lengths = _spread(rng, 10, 5), _spread(rng, 10, 3)
    ids, actions = _articles(topics, lengths)
    while True:
        segment, device, country = rng.integers(4), rng.integers(3), rng.integers(6)
        user = {"segment": f"s{segment}", "device": f"d{device}", "country": f"c{country}"}
        score = 0.75 * taste[segment, topics] + 0.35 * form[device, lengths]
        yield Event({"user": user}, ids, actions, _logistic(score - 1.45), rng.random())


def xor(rng: Generator) -> Iterator[Event]:
    """Two actions, one for two numbers of the same sign and one for all others: no line parts them."""
    ids = ["a0", "a1"]
    actions: list[Named] = [{"action": {"kind": "k0"}}, {"action": {"kind": "k1"}}]
    while True:
        x, y = rng.uniform(-1, 1, 2).round(3).tolist()
        good = (np.arange(2) == 0) == (x * y > 0)
        yield Event(
            {"user": {"x": x, "y": y}}, ids, actions, np.where(good, 0.4, 0.1), rng.random()
        )


def low_rates(rng: Generator) -> Iterator[Event]:
    """Ten articles with clicks of 1 to 9 in a hundred."""
    taste, quality = rng.normal(size=(4, 5)), rng.normal(size=10)
    topics, lengths = _spread(rng, 10, 5), _spread(rng, 10, 3)
    ids, actions = _articles(topics, lengths)
    while True:
        segment, device = rng.integers(4), rng.integers(3)
        user = {"segment": f"s{segment}", "device": f"d{device}"}
        score = 0.5 * taste[segment, topics] + 0.2 * quality
        yield Event({"user": user}, ids, actions, _logistic(score - 3.1), rng.random())


def twenty_articles(rng: Generator) -> Iterator[Event]:
    """Twenty articles, some of them better for all, with tags and lengths."""
    taste, quality = rng.normal(size=(5, 8)), rng.normal(size=20)
    topics, lengths = _spread(rng, 20, 8), _spread(rng, 20, 3)
    ids, actions = _articles(topics, lengths)
    while True:
        segment, device, hour = rng.integers(5), rng.integers(3), rng.integers(4)
        user = {"segment": f"s{segment}", "device": f"d{device}", "part": f"h{hour}"}
        score = 0.7 * taste[segment, topics] + 0.3 * quality
        yield Event({"user": user}, ids, actions, _logistic(score - 1.45), rng.random())


def no_features(rng: Generator) -> Iterator[Event]:
    """Eight actions that are known by their ids alone."""
    taste, quality = rng.normal(size=(6, 8)), rng.normal(size=8)
    ids = [f"a{i}" for i in range(8)]
    actions: list[Named] = [{} for _ in range(8)]
    while True:
        segment, device = rng.integers(6), rng.integers(3)
        user = {"segment": f"s{segment}", "device": f"d{device}"}
        score = 0.7 * taste[segment] + 0.2 * quality
        yield Event({"user": user}, ids, actions, _logistic(score - 1.75), rng.random())


def raw_numbers(rng: Generator) -> Iterator[Event]:
    """Six actions for ages from 16 to 79 and hours from 0 to 23, as they are."""
    ids = [f"a{i}" for i in range(6)]
    actions: list[Named] = [{"action": {"kind": f"k{i % 3}"}} for i in range(6)]
    slopes, hours = rng.permutation(np.linspace(-1, 1, 6)), rng.permutation(np.linspace(-1, 1, 6))
    while True:
        age, hour = int(rng.integers(16, 80)), int(rng.integers(24))
        score = 1.0 * slopes * (age - 47.5) / 18.5 + 0.5 * hours * (hour - 11.5) / 6.9
        yield Event(
            {"user": {"age": age, "hour": hour}}, ids, actions, _logistic(score - 2.0), rng.random()
        )


def ids_of_users(rng: Generator) -> Iterator[Event]:
    """Ten articles; each visitor has the id of one of 2,000 users, and a session that nobody had before."""
    users = rng.integers(4, size=2_000)
    taste = rng.normal(size=(4, 5))
    topics, lengths = _spread(rng, 10, 5), _spread(rng, 10, 3)
    ids, actions = _articles(topics, lengths)
    while True:
        who, session, device = rng.integers(2_000), rng.integers(2**40), rng.integers(3)
        segment = users[who]
        user = {
            "id": f"u{who}",
            "session": f"{session:010x}",
            "segment": f"s{segment}",
            "device": f"d{device}",
        }
        score = 0.8 * taste[segment, topics]
        yield Event({"user": user}, ids, actions, _logistic(score - 1.85), rng.random())


def new_actions(rng: Generator) -> Iterator[Event]:
    """Ten articles as in `strings`, and five more from event 12,000 on."""
    taste = rng.normal(size=(4, 5))
    topics, lengths = _spread(rng, 15, 5), _spread(rng, 15, 3)
    ids, actions = _articles(topics, lengths)
    quality = 0.4 * rng.normal(size=15)
    n = 0
    while True:
        segment, device = rng.integers(4), rng.integers(3)
        user = {"segment": f"s{segment}", "device": f"d{device}"}
        score = 0.75 * taste[segment, topics] + quality
        k = 10 if n < NEW_ACTIONS_AT else 15
        yield Event({"user": user}, ids[:k], actions[:k], _logistic(score[:k] - 1.9), rng.random())
        n += 1


WORLDS: dict[str, World] = {
    "strings": strings,
    "xor of numbers": xor,
    "low rates": low_rates,
    "20 articles": twenty_articles,
    "no action features": no_features,
    "raw numbers": raw_numbers,
    "ids of users": ids_of_users,
    "new actions": new_actions,
}


def _logistic(score: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return 1 / (1 + np.exp(-score))


def _spread(rng: Generator, n: int, kinds: int) -> np.ndarray:
    """Return n kinds in any order, each about equally often."""
    return rng.permutation(np.arange(n) % kinds)


def _articles(topics: np.ndarray, lengths: np.ndarray) -> tuple[list[str], list[Named]]:
    ids = [f"article-{i}" for i in range(len(topics))]
    own: list[Named] = [
        {"article": {"topic": f"t{topic}", "length": f"l{length}"}}
        for topic, length in zip(topics, lengths, strict=True)
    ]
    return ids, own
