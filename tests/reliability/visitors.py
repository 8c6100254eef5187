"""Clients that rank and reward without a pause, repeat unanswered requests, and note every answer."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.reliability.wire import Answer, Connection, LostError, Request

ACTIONS = ("tea", "coffee", "water", "juice")
REWARDED = 0.5  # the part of events that get a reward
ASKED_AGAIN = 0.05  # the part of events that are ranked again later, by the same request
KEYED = 0.25  # the part of events that the service names, by the key of the call
PAUSE = 0.05  # seconds after a refusal, or without a service
LONGEST_SILENCE = 60.0  # seconds without a decision, after which a service counts as stuck


@dataclass(frozen=True, slots=True)
class Ranked:
    """The answer to a rank call."""

    chosen: str
    probabilities: dict[str, float]


@dataclass(kw_only=True)
class Ledger:
    """All that was acknowledged, and answers that contradict each other."""

    ranks: dict[str, Ranked] = field(default_factory=dict)  # by event
    rewards: dict[str, tuple[str, float]] = field(default_factory=dict)  # event and value by key
    complaints: list[str] = field(default_factory=list)
    _ranked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def size(self) -> int:
        """Return how many events were ranked."""
        return len(self.ranks)

    def rank(self, event: str, ranked: Ranked) -> None:
        """Note an answer; a different one for the same event is a complaint."""
        before = self.ranks.setdefault(event, ranked)
        if before != ranked:
            self.complaints.append(f"event {event!r} was {before}, and later {ranked}")
        self._ranked.set()

    async def reaches(self, size: int) -> None:
        """Wait until so many events were ranked; raise TimeoutError if there are no new ones for too long."""
        while self.size < size:
            self._ranked.clear()
            async with asyncio.timeout(LONGEST_SILENCE):
                await self._ranked.wait()


class Site:
    """The port of the service, while it runs."""

    def __init__(self) -> None:
        self.is_over = False  # nothing new is to be begun
        self._port = 0
        self._is_open = asyncio.Event()

    def open(self, port: int) -> None:
        """Set the port of the service."""
        self._port = port
        self._is_open.set()

    def close(self) -> None:
        """Note that the service does not run."""
        self._is_open.clear()

    async def port(self) -> int:
        """Return the port, as soon as the service runs."""
        await self._is_open.wait()
        return self._port


@dataclass(kw_only=True)
class Visitor:
    """One client, which sends one request after the other."""

    name: str
    site: Site
    ledger: Ledger
    connection: Connection = field(default_factory=Connection)
    refusals: int = 0  # 503

    async def stay(self) -> None:
        """Rank and reward until stopped, and finish what was begun."""
        rng = random.Random(self.name)
        asked: list[Request] = []
        number = 0
        while not self.site.is_over:
            number += 1
            request = rank_request(f"{self.name}/{number}", rng)
            event = await self.rank(request)
            if rng.random() < ASKED_AGAIN:
                asked.append(request)
            if rng.random() < REWARDED:
                await self.reward(event, rng.choice((0.0, 0.25, 1.0)))
            if asked and rng.random() < ASKED_AGAIN:
                await self.rank(rng.choice(asked))
        await self.connection.close()

    async def rank(self, request: Request) -> str:
        """Rank until there is an answer; return its event."""
        answer = (await self.insist(request, 201)).json()
        probabilities = {action["id"]: action["probability"] for action in answer["ranking"]}
        self.ledger.rank(answer["event"], Ranked(answer["chosen"], probabilities))
        return str(answer["event"])

    async def reward(self, event: str, value: float) -> None:
        """Send a reward until it is accepted."""
        key = f"of {event}"
        await self.insist(reward_request(event, key, value), 204)
        self.ledger.rewards[key] = (event, value)

    async def insist(self, request: Request, status: int) -> Answer:
        """Send a request until it is accepted; return the answer."""
        while True:
            try:
                answer = await self.connection.ask(await self.site.port(), request)
            except LostError:
                await asyncio.sleep(PAUSE)
                continue
            if answer.status == status:
                return answer
            if answer.status != 503 or "retry-after" not in answer.headers:
                raise AssertionError(f"{request} was answered by {answer}")
            self.refusals += 1
            await asyncio.sleep(PAUSE)


class Visitors:
    """Clients that work at the same time."""

    def __init__(self, visitors: list[Visitor], tasks: list["asyncio.Task[None]"]) -> None:
        self._visitors = visitors
        self._tasks = tasks

    @property
    def refusals(self) -> int:
        """Return how often requests were refused."""
        return sum(visitor.refusals for visitor in self._visitors)

    async def gone(self) -> None:
        """Wait until all clients have finished; raise TimeoutError if that takes too long."""
        async with asyncio.timeout(LONGEST_SILENCE):
            await asyncio.gather(*self._tasks)


@asynccontextmanager
async def visited(site: Site, ledger: Ledger, number: int) -> AsyncIterator[Visitors]:
    """Yield clients that have started; an error of one of them ends all."""
    visitors = [Visitor(name=f"visitor {i}", site=site, ledger=ledger) for i in range(number)]
    try:
        async with asyncio.TaskGroup() as group:
            yield Visitors(visitors, [group.create_task(visitor.stay()) for visitor in visitors])
    finally:
        for visitor in visitors:
            await visitor.connection.close()


def rank_request(name: str, rng: random.Random, *, is_named: bool = False) -> Request:
    """Return a rank call that is idempotent by its event id, or by its idempotency key."""
    context = {"day": rng.randrange(7), "place": rng.choice(("north", "south"))}
    actions = [{"id": id, "features": {"price": rng.randrange(5)}} for id in ACTIONS]
    body: dict[str, Any] = {"context": context, "actions": actions}
    if not is_named and rng.random() < KEYED:
        return Request(
            path="/v1/rank", body=json.dumps(body).encode(), headers={"idempotency-key": name}
        )
    return Request(path="/v1/rank", body=json.dumps(body | {"event": name}).encode())


def reward_request(event: str, key: str, value: float) -> Request:
    """Return a reward call with a key."""
    return Request(
        path=f"/v1/events/{quote(event, safe='')}/reward",
        body=json.dumps({"value": value}).encode(),
        headers={"idempotency-key": key},
    )
