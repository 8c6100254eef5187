"""A client that costs little: raw sockets, one request at a time on each connection."""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import uvloop

ACTIONS = 10
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TOPICS = ("sport", "news", "art", "food", "travel")


@dataclass(slots=True)
class Load:
    """What a load has measured."""

    seconds: float
    latencies: list[float] = field(default_factory=list)  # of ranks
    rewards: int = 0
    errors: list[bytes] = field(default_factory=list)

    @property
    def ranks_per_second(self) -> float:
        """Return how many ranks were answered in a second."""
        return len(self.latencies) / self.seconds

    def milliseconds(self, q: float) -> float:
        """Return a quantile of the latencies of ranks."""
        return float(np.quantile(self.latencies, q)) * 1e3


@dataclass(frozen=True, slots=True)
class Article:
    """What can be shown."""

    id: str
    features: list[dict[str, Any]]


def article(rng: random.Random, number: int) -> Article:
    """Return an article as a news page would describe it."""
    features: list[dict[str, Any]] = [
        {"topic": rng.choice(TOPICS), "length": rng.random()},
        {"fresh": {"hours": rng.randint(0, 72), "is_new": rng.random() < 0.3}},
    ]
    return Article(f"article-{number}", features)


def body(rng: random.Random, articles: Sequence[Article]) -> bytes:
    """Return a rank call of some 1.3 kB, with a user who was never there before."""
    return msgspec.json.encode(
        {
            "contextFeatures": [
                {"user": {"age": rng.randint(18, 80), "country": rng.choice("ABCDEFGH")}},
                {
                    "device": {
                        "kind": rng.choice(["phone", "desktop"]),
                        "width": rng.choice([390, 1280]),
                    }
                },
                {"time": {"hour": rng.randint(0, 23), "minute": rng.random() * 60}},
            ],
            "actions": [{"id": a.id, "features": a.features} for a in articles],
        }
    )


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What a load consists of."""

    connections: int = 32
    reward_share: float = 0.1  # of the events that are rewarded, on connections of their own
    catalogue: int = 500  # articles, of which each call offers some; 0: they are new in each call
    bodies: int = 500  # different ones of each connection, one after the other
    _requests: dict[int, list[bytes]] = field(default_factory=dict)

    def requests(self, connection: int) -> list[bytes]:
        """Return the rank calls of a connection, made once."""
        if connection not in self._requests:
            rng, common = random.Random(connection), random.Random(0)
            known = [article(common, number) for number in range(self.catalogue)]
            self._requests[connection] = [
                post("/personalizer/v1.0/rank", body(rng, self._offered(rng, known)))
                for _ in range(self.bodies)
            ]
        return self._requests[connection]

    def _offered(self, rng: random.Random, known: list[Article]) -> list[Article]:
        if known:
            return rng.sample(known, ACTIONS)
        return [article(rng, number) for number in range(ACTIONS)]


async def load(port: int, seconds: float, traffic: Traffic) -> Load:
    """Rank for some seconds on all connections, and reward a share of the events."""
    found = Load(seconds)
    events: deque[str] = deque(maxlen=10_000)
    for connection in range(traffic.connections):
        traffic.requests(connection)
    end = time.perf_counter() + seconds
    workers = [
        _rank(port, end, seed, traffic, found, events) for seed in range(traffic.connections)
    ]
    if traffic.reward_share > 0:
        count = max(1, traffic.connections // 8)
        workers += [_reward(port, end, seed, found, events) for seed in range(count)]
    await asyncio.gather(*workers)
    return found


def loaded(port: int, seconds: float, traffic: Traffic) -> Load:
    """Return what `load` returns, in a loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(load(port, seconds, traffic))


async def _rank(
    port: int, end: float, seed: int, traffic: Traffic, found: Load, events: deque[str]
) -> None:
    rng = random.Random(seed)
    requests = itertools.cycle(traffic.requests(seed))
    streams = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        begun = time.perf_counter()
        status, answer = await ask(streams, next(requests))
        if status != b"201":
            found.errors.append(status + b" " + answer[:200])
            continue
        found.latencies.append(time.perf_counter() - begun)
        if rng.random() < traffic.reward_share:
            events.append(msgspec.json.decode(answer)["eventId"])
    streams[1].close()


async def _reward(port: int, end: float, seed: int, found: Load, events: deque[str]) -> None:
    rng = random.Random(seed)
    streams = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        if not events:
            await asyncio.sleep(0.01)
            continue
        path = f"/personalizer/v1.0/events/{events.popleft()}/reward"
        value = b'{"value": %d}' % (rng.random() < 0.3)
        status, answer = await ask(streams, post(path, value))
        if status != b"204":
            found.errors.append(status + b" " + answer[:200])
        found.rewards += 1
    streams[1].close()


def post(path: str, body: bytes) -> bytes:
    """Return a request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def ask(streams: Streams, request: bytes) -> tuple[bytes, bytes]:
    """Send a request over a connection; return the status and the body of the answer."""
    reader, writer = streams
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, rest = head.partition(b"content-length: ")
    length = int(rest.partition(b"\r\n")[0] or 0)
    return head[9:12], await reader.readexactly(length) if length else b""
