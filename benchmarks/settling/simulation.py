"""The service in one process with a clock of its own: a log in memory, its fold, and copies that decide."""

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np

from benchmarks.settling.world import ARTICLES, MORE, Delays, event_of
from rbmle.service.front.decider import choose_plays
from rbmle.service.learner.fold import Fold
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    OPERATOR,
    Configured,
    Decided,
    Modelled,
    Record,
    Rewarded,
    row_of,
)
from rbmle.service.model.published import Published
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.summary import Statistics

PUBLISHED = 100  # milliseconds between two copies that decide, as in the service


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Events of a client, and how it tells what they were worth."""

    events: int
    per_second: float
    sends_zeros: bool = False  # as late as clicks
    mean_delay: float = 30.0  # seconds
    delays: Delays = Delays.EQUAL
    more_after: int  # events, after which there are more articles


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was earned, event by event, and what the service says of it."""

    earned: np.ndarray  # the chance of a click on what was shown
    is_new: np.ndarray  # whether it was one of the articles that came later
    claimed: np.ndarray  # the average reward as the statistics have it, at each event


def simulate(
    traffic: Traffic, configuration: ServiceConfiguration, model: ModelSettings, seed: int
) -> Outcome:
    """Return what the service earns, and what it says that it earns."""
    log, statistics = MemoryLog(), Statistics()
    fold = Fold(log=log, make=ModelSettings.from_json, watcher=statistics)
    earned, claimed = np.zeros(traffic.events), np.full(traffic.events, np.nan)
    is_new = np.zeros(traffic.events, bool)
    coming: list[tuple[int, int, str, float]] = []  # rewards: when, in which order, of what
    order = count()

    def append(time: int, event: str, record: Record) -> None:
        log.append([row_of(record, event, time)])

    def learn() -> Published:
        for stored in log.read(fold.seq):
            fold.take(stored)
        fold.learn()
        assert fold.bandit is not None
        return Published(
            model=model,
            bandit=fold.bandit.snapshot(),
            configuration=configuration,
            seq=fold.seq,
            time=fold.joiner.time,
        )

    append(0, OPERATOR, Modelled(settings=model.to_json()))
    append(0, OPERATOR, Configured(configuration=configuration.to_json()))
    published, published_at = learn(), 0
    for number in range(traffic.events):
        now = int(1_000 * number / traffic.per_second)
        while coming and coming[0][0] <= now:
            time, _, event, value = heapq.heappop(coming)
            append(time, event, Rewarded(values={"": value}))
        if now >= published_at + PUBLISHED:
            published, published_at = learn(), now
        articles = ARTICLES + MORE * (number >= traffic.more_after)
        found = event_of(
            number,
            articles=articles,
            mean_delay=traffic.mean_delay,
            seed=seed,
            delays=traffic.delays,
        )
        event = str(found.request.event)
        ((play,),) = choose_plays([event], [found.request], published)
        decided = Decided(
            context=found.request.context,
            actions=found.request.actions,
            plays=[play],
            digest="",
            learned=published.bandit.round,
        )
        append(now, event, decided)
        chance = found.chances[play.chosen]
        if found.luck < chance or traffic.sends_zeros:
            told = now + int(1_000 * found.delays[play.chosen])
            heapq.heappush(coming, (told, next(order), event, float(found.luck < chance)))
        earned[number], is_new[number] = chance, play.chosen >= ARTICLES
        played = statistics.ranges.total().played
        if played.plays:
            claimed[number] = played.wr / played.plays
    return Outcome(earned=earned, is_new=is_new, claimed=claimed)
