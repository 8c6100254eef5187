"""The kill test with a log in PostgreSQL, whose server is killed as well, while the service runs.

`python -m tests.reliability.databases --kills 50 --events 50000` is the long form.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError

from tests.contract.log_server import Server, programs
from tests.reliability.killing import Outcome, Plan, survive
from tests.reliability.running import Setup

START_SECONDS = 60.0
NONE_HERE = "no PostgreSQL here: initdb is neither on PATH nor in /usr/lib/postgresql"


@dataclass(kw_only=True)
class Database:
    """A server that can be killed."""

    server: Server
    kills: int = 0

    async def kill(self) -> None:
        """Kill the server, and restart it as soon as its last process has ended."""
        pid = (self.server.folder / "data" / "postmaster.pid").read_text().split()[0]
        os.kill(int(pid), signal.SIGKILL)
        self.kills += 1
        async with asyncio.timeout(START_SECONDS):
            while not await asyncio.to_thread(self._has_started):
                await asyncio.sleep(0.1)

    def _has_started(self) -> bool:
        try:
            self.server.start()
        except CalledProcessError:
            return False
        return True


@contextmanager
def database() -> Iterator[Database | None]:
    """Yield a new server, or None if PostgreSQL is not installed."""
    bin = programs()
    if bin is None:
        yield None
        return
    server = Server(bin)
    server.execute("CREATE SCHEMA killed")
    try:
        yield Database(server=server)
    finally:
        server.remove()


async def survive_both(database: Database, data: Path, plan: Plan) -> Outcome:
    """Kill the service again and again, and every second time the server of its log as well."""
    setup = Setup(data=data, log=database.server.url("killed"))
    return await survive(setup, plan, between=database.kill)


def main() -> int:
    """Print what was lost; return 0 if nothing was lost, or if PostgreSQL is not installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--events", type=int, default=50_000)
    given = parser.parse_args()
    plan = Plan(kills=given.kills, events=given.events, visitors=32, stillborn=0.2)
    with database() as own, tempfile.TemporaryDirectory(prefix="rbmle-pg-kill-") as folder:
        if own is None:
            print(f"left out: {NONE_HERE}")
            return 0
        outcome = asyncio.run(survive_both(own, Path(folder) / "data", plan))
        print(f"PostgreSQL, whose server was killed {own.kills} times: {outcome}")
    return int(not outcome.verdict.is_clean)


if __name__ == "__main__":
    sys.exit(main())
