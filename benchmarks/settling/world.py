"""Ten articles for visitors of five interests, whose clicks come late; five more articles later on."""

from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np

from rbmle.service.front.requests import Action, RankRequest
from rbmle.service.log.records import pack_features

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
    delays: np.ndarray  # seconds until it is told, by article


class Delays(Enum):
    """How long clicks take, by article; the mean of a topic's first two is the same in all."""

    EQUAL = "equal"
    BEST_LATE = "best-late"  # the better one of its topic takes four times as long
    BEST_SOON = "best-soon"  # the others do


SHORT, LONG = 0.4, 1.6  # of the mean delay


def event_of(
    number: int, *, articles: int, mean_delay: float, seed: int, delays: Delays = Delays.EQUAL
) -> Event:
    """Return the visit with a number, the same whichever article is shown."""
    rng = np.random.default_rng((seed, number))
    interest, device = rng.integers(len(TOPICS)), rng.integers(len(DEVICES))
    visitor = {"user": {"interest": TOPICS[interest], "device": DEVICES[device]}}
    actions = [
        Action(id=f"article-{a}", features=pack_features([{"article": {"topic": _topic(a)}}]))
        for a in range(articles)
    ]
    request = RankRequest(event=f"e{number}", context=pack_features([visitor]), actions=actions)
    chances = np.array(
        [
            _appeal(a, seed) * (MATCHING if _topic(a) == TOPICS[interest] else UNRELATED)
            for a in range(articles)
        ]
    )
    luck, delay = rng.random(), rng.exponential(mean_delay)
    own = np.array([_slowness(a, articles, seed, delays) for a in range(articles)])
    return Event(request=request, chances=chances, luck=luck, delays=delay * own)


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


def _slowness(article: int, articles: int, seed: int, delays: Delays) -> float:
    """Return by how much clicks on an article take longer than the mean."""
    if delays is Delays.EQUAL:
        return 1.0
    rivals = range(article % len(TOPICS), articles, len(TOPICS))
    is_best = article == max(rivals, key=lambda a: _appeal(a, seed))
    return LONG if is_best is (delays is Delays.BEST_LATE) else SHORT


def _topic(article: int) -> str:
    return TOPICS[article % len(TOPICS)]


@cache
def _appeal(article: int, seed: int) -> float:
    """Return by how much an article is better than its topic, around 1."""
    return float(np.random.default_rng((seed, 10**9, article)).uniform(0.7, 1.3))
