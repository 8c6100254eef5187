"""Each request is sent ten times, shuffled and concurrently: log and model are as if it was sent once.

The model depends on the order of rewards, so the requests that are sent once follow the order in the log of the
others. Then both are equal, byte for byte.

`python -m tests.reliability.repeating --rounds 20 --events 50` is the long form.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rbmle.service.log import open_log
from tests.reliability.killing import learned_model
from tests.reliability.running import Running, Setup, listening
from tests.reliability.visitors import ACTIONS, PAUSE
from tests.reliability.wire import Answer, Connection, Request

COPIES = 10
CONNECTIONS = 20

Line = tuple[int, str, str, str | None, bytes]  # a row of the log, all but its time


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The requests to a service: in each round some events are ranked, and then rewarded."""

    rounds: tuple[tuple[str, ...], ...]
    copies: int

    @property
    def events(self) -> int:
        """Return the number of events."""
        return sum(map(len, self.rounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The log and the model of a service after all requests."""

    lines: list[Line]
    model: bytes

    def rewarded(self) -> list[str]:
        """Return the events in the order of their rewards."""
        return [event for _, kind, event, _, _ in self.lines if kind == "rewarded"]


def telling(rounds: int, events: int) -> Telling:
    """Return rounds of so many events each, with every request ten times."""
    names = [tuple(f"{r}/{e}" for e in range(events)) for r in range(rounds)]
    return Telling(rounds=tuple(names), copies=COPIES)


def once(often: Telling, told: Told) -> Telling:
    """Return the same requests once, in the order of a log."""
    order = {event: place for place, event in enumerate(told.rewarded())}
    rounds = tuple(tuple(sorted(events, key=order.__getitem__)) for events in often.rounds)
    return Telling(rounds=rounds, copies=1)


async def tell(setup: Setup, story: Telling) -> Told:
    """Send all rounds to a new service, and return its log and its model."""
    rng = random.Random(story.copies)
    async with listening(setup) as service:
        await service.ready()
        for number, events in enumerate(story.rounds):
            for event in sorted(events):
                same = {a.body for a in await _at_once(service, [rank(event)] * story.copies, 201)}
                assert len(same) == 1, same
            rewards = [reward(event) for event in events for _ in range(story.copies)]
            if story.copies > 1:
                rng.shuffle(rewards)
                await _at_once(service, rewards, 204)
            else:
                for request in rewards:
                    await _at_once(service, [request], 204)
            await _learned(service, sum(map(len, story.rounds[: number + 1])))
        if story.copies > 1:
            await _contradict(service, story.rounds[0][:2])
        model = await learned_model(service)
        await service.terminate()
    with closing(open_log(setup.place, is_read_only=True)) as log:
        rows = [(stored.seq, stored.row) for stored in log.read()]
    return Told(
        lines=[(seq, row.kind, row.event, row.request, row.payload) for seq, row in rows],
        model=model,
    )


async def _at_once(service: Running, requests: Sequence[Request], status: int) -> list[Answer]:
    """Send requests over many connections concurrently; the service must take all of them in the end."""
    left = list(requests)
    answers: list[Answer] = []

    async def send() -> None:
        connection = Connection()
        try:
            while left:
                request = left.pop()
                answer = await connection.ask(service.port, request)
                if answer.status == 503:  # the disk of a busy machine may take long
                    left.append(request)
                    await asyncio.sleep(PAUSE)
                else:
                    answers.append(answer)
        finally:
            await connection.close()

    await asyncio.gather(*(send() for _ in range(min(CONNECTIONS, len(left)))))
    wrong = [answer for answer in answers if answer.status != status]
    assert not wrong, wrong[:3]
    return answers


async def _learned(service: Running, events: int) -> None:
    """Wait until the model that decides has learned so many rewards."""
    connection = Connection()
    try:
        async with asyncio.timeout(60):
            while True:
                status = await connection.ask(
                    service.port, Request(method="GET", path="/v1/status")
                )
                found = status.json()
                assert found["observations"] <= events, found
                if found["observations"] == events and not found["backlog"]:
                    return
                await asyncio.sleep(0.01)
    finally:
        await connection.close()


async def _contradict(service: Running, events: Sequence[str]) -> None:
    """Send known keys and events with other bodies, in both dialects: all are conflicts."""
    for event in events:
        wrong = (
            _reward(event, event, 0.75),
            _azure_reward(event, event, 0.75),
            _reward("another event", event, value_of(event)),
            _azure_reward("another event", event, value_of(event)),
            rank(event, day=8),
        )
        for request in wrong:
            (answer,) = await _at_once(service, [request], 409)
            assert "error" in answer.json()


def rank(event: str, day: int = 0) -> Request:
    """Return the rank call of an event, every second one in Personalizer's dialect."""
    rng = random.Random(event)
    context = {"day": day, "place": rng.choice(("north", "south"))}
    if _is_azure(event):
        actions = [{"id": id, "features": [{"price": rng.randrange(5)}]} for id in ACTIONS]
        body = {"eventId": event, "contextFeatures": [context], "actions": actions}
        return Request(path="/personalizer/v1.0/rank", body=json.dumps(body).encode())
    own = [{"id": id, "features": {"price": rng.randrange(5)}} for id in ACTIONS]
    return Request(
        path="/v1/rank",
        body=json.dumps({"event": event, "context": context, "actions": own}).encode(),
    )


def reward(event: str) -> Request:
    """Return the reward call of an event, with its own key."""
    send = _azure_reward if _is_azure(event) else _reward
    return send(event, event, value_of(event))


def value_of(event: str) -> float:
    """Return the reward of an event."""
    return random.Random(event).choice((0.0, 0.5, 1.0))


def _reward(event: str, key: str, value: float) -> Request:
    return Request(
        path=f"/v1/events/{quote(event, safe='')}/reward",
        body=json.dumps({"value": value}).encode(),
        headers={"idempotency-key": key},
    )


def _azure_reward(event: str, key: str, value: float) -> Request:
    return Request(
        path=f"/personalizer/v1.0/events/{quote(event, safe='')}/reward",
        body=json.dumps({"value": value}).encode(),
        headers={"x-ms-client-request-id": key},
    )


def _is_azure(event: str) -> bool:
    return int(event.rpartition("/")[2]) % 2 == 1


async def differences(folder: Path, story: Telling) -> list[str]:
    """Send everything to one service ten times and to another one once; return where they differ."""
    often = await tell(Setup(data=folder / "often"), story)
    single = await tell(Setup(data=folder / "once"), once(story, often))
    pairs = zip(often.lines, single.lines, strict=False)
    found = [f"{a} and {b}" for a, b in pairs if a != b]
    if len(often.lines) != len(single.lines):
        found.append(f"{len(often.lines)} rows, and {len(single.lines)}")
    if often.model != single.model:
        found.append("the models")
    return found


def main() -> int:
    """Print the differences; return 0 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--events", type=int, default=50)
    given = parser.parse_args()
    story = telling(given.rounds, given.events)
    with tempfile.TemporaryDirectory(prefix="rbmle-repeat-") as folder:
        found = asyncio.run(differences(Path(folder), story))
    print(
        f"{story.events} ranks and rewards, each {COPIES} times and once: {len(found)} differences "
        f"of logs and models; {found[:3]}"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
