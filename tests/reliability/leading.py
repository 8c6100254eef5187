"""Who learns from a log, and how far, as front ends see it; and a second learner that stands by."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress

import msgspec

from rbmle.service.learning.report import Report
from rbmle.service.learning.standing_by import REPORT
from rbmle.service.log import Log, open_log
from rbmle.service.log.opening import open_publications
from rbmle.service.log.publications import Publications
from tests.reliability.running import ROOT, Setup

LOOK_SECONDS = 0.02
PATIENCE = 60.0  # seconds, on a busy machine


class Watch:
    """Looks at what the learner reports."""

    def __init__(self, log: Log, publications: Publications) -> None:
        self._log = log
        self._publications = publications

    def report(self) -> Report | None:
        """Return what was reported last; None: nothing yet."""
        found = self._publications.newer(REPORT, None)
        return None if found is None else msgspec.msgpack.decode(found[1], type=Report)

    async def signal_leader(self, number: signal.Signals) -> str:
        """Send a signal to the process that leads; return its name."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if (report := self.report()) is not None:
                    with suppress(ProcessLookupError):
                        os.kill(int(report.learner.rpartition("/")[2]), number)
                        return report.learner
                await asyncio.sleep(LOOK_SECONDS)

    async def unlearned(self, killed: str) -> float:
        """Return the seconds until another learner than this has learned all that is stored now."""
        begun = time.monotonic()
        wanted = self._log.last()
        async with asyncio.timeout(PATIENCE):
            while True:
                report = self.report()
                if report is not None and report.learner != killed and report.seq >= wanted:
                    return time.monotonic() - begun
                await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def watched(setup: Setup) -> Iterator[Watch]:
    """Yield a look at the learner of a service that was started."""
    log = open_log(setup.place, is_read_only=True)
    with closing(log), closing(open_publications(setup.place)) as publications:
        yield Watch(log, publications)


class Standby:
    """A second learner, on what might be another machine; it is run again when it ends."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._is_ready = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    async def ready(self) -> None:
        """Wait until it folds along."""
        async with asyncio.timeout(PATIENCE):
            await self._is_ready.wait()

    async def keep(self) -> None:
        """Run it again and again."""
        while True:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=ROOT, stderr=asyncio.subprocess.PIPE
            )
            assert self._process.stderr is not None
            while line := await self._process.stderr.readline():
                if b"rbmle learns from" in line:
                    self._is_ready.set()
            self._is_ready.clear()
            await self._process.wait()

    async def end(self) -> None:
        """End it."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            async with asyncio.timeout(PATIENCE):
                await self._process.wait()


@asynccontextmanager
async def standing_by(setup: Setup, is_wanted: bool) -> AsyncIterator[Standby | None]:
    """Run a second learner, if it is wanted."""
    if not is_wanted:
        yield None
        return
    standby = Standby(setup.standby(setup.data.with_name("standby")))
    keeping = asyncio.create_task(standby.keep())
    try:
        yield standby
    finally:
        keeping.cancel()
        await standby.end()
