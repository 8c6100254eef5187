"""Hundreds of slow clients: their connections are closed in time, and other clients do not notice.

`python -m tests.reliability.trickling --connections 300` is the long form, with the service's own deadlines.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.reliability.running import Setup, listening
from tests.reliability.wire import HOST, Connection, Request

CLOSED_SECONDS = 30.0
P99_SECONDS = 0.05
HEAD = b"POST /v1/rank HTTP/1.1\r\nhost: a\r\n"
ATTACKS = (
    b"",  # nothing at all
    HEAD,  # half a head
    HEAD + b"content-length: 100\r\n\r\n{",  # half a body
)
RANK = Request(path="/v1/rank", body=b'{"actions": [{"id": "a"}, {"id": "b"}]}')


@dataclass(slots=True)
class Siege:
    """How long slow connections stayed open, and other clients waited."""

    stays: list[float] = field(default_factory=list)  # seconds from the opening to the end
    waits: list[float] = field(default_factory=list)
    left: int = 0  # that were not closed

    @property
    def is_withstood(self) -> bool:
        """Return whether all slow connections were closed in time, and others were served fast."""
        return not self.left and max(self.stays) < CLOSED_SECONDS and self.p99 < P99_SECONDS

    @property
    def p99(self) -> float:
        """Return the 99th percentile of the durations of normal requests."""
        return float(np.quantile(self.waits, 0.99))

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{len(self.stays)} slow connections closed, the last after {max(self.stays):.1f} s, "
            f"{self.left} left; "
            f"{len(self.waits)} good ranks, p50 {np.median(self.waits) * 1e3:.1f} ms, "
            f"p99 {self.p99 * 1e3:.1f} ms"
        )


async def besiege(setup: Setup, connections: int) -> Siege:
    """Open slow connections of all kinds, and send normal requests until all of them are closed."""
    siege = Siege()
    async with listening(setup) as service:
        await service.ready()
        slow = [
            asyncio.create_task(_trickle(service.port, ATTACKS[place % len(ATTACKS)], siege))
            for place in range(connections)
        ]
        good = asyncio.create_task(_ask_well(service.port, siege))
        await asyncio.wait(slow, timeout=2 * CLOSED_SECONDS)
        siege.left = sum(not task.done() for task in slow)
        good.cancel()
        for task in slow:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await good
    return siege


async def _trickle(port: int, sent: bytes, siege: Siege) -> None:
    """Send a part of a request and then a byte each second, until the connection is closed."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(sent)
    with suppress(OSError):
        while not reader.at_eof():
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(4096), 1.0)
                continue
            if sent:
                writer.write(b"x")
    siege.stays.append(time.monotonic() - begun)
    writer.close()


async def _ask_well(port: int, siege: Siege) -> None:
    connection = Connection()
    while True:
        begun = time.monotonic()
        answer = await connection.ask(port, RANK)
        assert answer.status == 201, answer
        siege.waits.append(time.monotonic() - begun)
        await asyncio.sleep(0.02)


def main() -> int:
    """Print the results; return 0 if the service withstood the load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rbmle-slow-") as folder:
        siege = asyncio.run(besiege(Setup(data=Path(folder) / "data"), given.connections))
    print(siege)
    return int(not siege.is_withstood)


if __name__ == "__main__":
    sys.exit(main())
