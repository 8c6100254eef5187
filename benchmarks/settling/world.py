"""Ten articles for visitors of five interests, whose clicks come late; five more articles later on."""

from dataclasses import dataclass

import numpy as np

from rbmle.service.deciding.requests import Action, RankRequest
from rbmle.service.log.records import packed

TOPICS = ("sport", "science", "music", "food", "travel")
DEVICES = ("phone", "tablet", "desk")
ARTICLES = 10  # two of each topic
MORE = 5  # one of each topic
UNRELATED, MATCHING = (
    0.07,
    0.35,
)  # the chance of a click, if the topic is the visitor's interest or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A visit: what is asked, the chance of a click on each article, and the luck of the visitor."""

    request: RankRequest
    chances: np.ndarray
    luck: float  # a click on an article whose chance is above it
    delay: float  # seconds until it is told


def event_of(number: int, *, articles: int, mean_delay: float, seed: int) -> Event:
    """Return the visit with a number, the same whichever article is shown."""
    rng = np.random.default_rng((seed, number))
    interest, device = rng.integers(len(TOPICS)), rng.integers(len(DEVICES))
    visitor = {"user": {"interest": TOPICS[interest], "device": DEVICES[device]}}
    actions = [
        Action(id=f"article-{a}", features=packed([{"article": {"topic": _topic(a)}}]))
        for a in range(articles)
    ]
    request = RankRequest(event=f"e{number}", context=packed([visitor]), actions=actions)
    chances = np.array(
        [
            _appeal(a, seed) * (MATCHING if _topic(a) == TOPICS[interest] else UNRELATED)
            for a in range(articles)
        ]
    )
    return Event(
        request=request, chances=chances, luck=rng.random(), delay=rng.exponential(mean_delay)
    )


def right_share(seed: int, exploration: float) -> float:
    """Return how often the articles that came later are shown by who knows every chance."""
    everything = ARTICLES + MORE
    best = [
        max(
            range(everything),
            key=lambda a: _appeal(a, seed) * (MATCHING if _topic(a) == topic else UNRELATED),
        )
        for topic in TOPICS
    ]
    greedy = np.mean([a >= ARTICLES for a in best])
    return float((1 - exploration) * greedy + exploration * MORE / everything)


def _topic(article: int) -> str:
    return TOPICS[article % len(TOPICS)]


def _appeal(article: int, seed: int) -> float:
    """Return by how much an article is better than its topic, around 1."""
    return float(np.random.default_rng((seed, 10**9, article)).uniform(0.7, 1.3))
