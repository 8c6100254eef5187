"""The service without its network: what decides and what folds the log, by a clock that is made up."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from benchmarks.worlds.worlds import Event
from rbmle.service.front.decider import choose_plays
from rbmle.service.front.requests import Action, RankRequest
from rbmle.service.learner.fold import Fold
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    OPERATOR,
    Configured,
    Decided,
    Modelled,
    Record,
    Rewarded,
    pack_features,
    row_of,
)
from rbmle.service.model.published import Published
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration

PER_SECOND = 200  # events
TOGETHER = 20  # events between two published models: a tenth of a second


def play(
    events: Iterable[Event], late: int, model: ModelSettings, configuration: ServiceConfiguration
) -> np.ndarray:
    """Return what the service earns in each event, if its reward, 0 too, is known `late` events later.

    The wait of the configuration has to be about as long, but not shorter.
    """
    log, time = MemoryLog(), 1_000_000
    fold = Fold(log=log, make=ModelSettings.from_json)
    begin: list[Record] = [
        Modelled(settings=model.to_json()),
        Configured(configuration=configuration.to_json()),
    ]
    append(fold, log, [(OPERATOR, record) for record in begin], time)
    waiting: deque[tuple[str, float]] = deque()
    rewards: list[float] = []
    for some in _parts(iter(events)):
        # A publication earlier than that, since a reward at the very end of its wait would be too late.
        due = [waiting.popleft() for _ in range(len(waiting) + 2 * TOGETHER - late)]
        append(fold, log, [(id, Rewarded(values={"": reward})) for id, reward in due], time)
        assert fold.bandit is not None
        assert isinstance(fold.model, ModelSettings)
        published = Published(
            model=fold.model,
            bandit=fold.bandit,
            configuration=configuration,
            seq=fold.seq,
            time=time,
        )
        names = [f"e{len(rewards) + i}" for i in range(len(some))]
        requests = [request_of(name, event) for name, event in zip(names, some, strict=True)]
        decided: list[tuple[str, Record]] = []
        for name, event, request, plays in zip(
            names, some, requests, choose_plays(names, requests, published), strict=True
        ):
            record = Decided(
                context=request.context,
                actions=request.actions,
                plays=plays,
                digest="",
                learned=fold.bandit.round,
            )
            decided.append((name, record))
            rewards.append(event.reward(plays[0].chosen))
            waiting.append((name, rewards[-1]))
        append(fold, log, decided, time)
        time += 1_000 * len(some) // PER_SECOND
    return np.array(rewards)


def append(fold: Fold, log: MemoryLog, records: list[tuple[str, Record]], time: int) -> None:
    """Write records, and fold them."""
    if not records:
        return
    rows = [row_of(r, event, time) for event, r in records]
    before = log.last()
    log.append(rows)
    for stored in log.read(before):
        fold.take(stored)
    fold.learn()


def request_of(name: str, event: Event) -> RankRequest:
    own = zip(event.ids, event.actions, strict=True)
    return RankRequest(
        event=name,
        context=pack_features([event.context]),
        actions=[Action(id=id, features=pack_features([features])) for id, features in own],
    )


def _parts(events: Iterator[Event]) -> Iterator[list[Event]]:
    while some := list(islice(events, TOGETHER)):
        yield some
