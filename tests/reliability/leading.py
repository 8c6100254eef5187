"""Which learner leads and how far it is, as front ends see it; and a standby learner."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress

import msgspec

from rbmle.service.log import Log, open_log, open_publications
from rbmle.service.log.publications import REPORT, Publications
from rbmle.service.model.report import Report
from tests.reliability.running import ROOT, Setup

LOOK_SECONDS = 0.02
PATIENCE = 180.0  # seconds, on a machine that starts a learner in 60


class Watch:
    """Reads the reports of the learner."""

    def __init__(self, log: Log, publications: Publications) -> None:
        self._log = log
        self._publications = publications

    def report(self) -> Report | None:
        """Return the last report, or None."""
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
        """Return the seconds until another learner than this has learned all records that are stored now."""
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
    """Yield a watch of the learner of a running service."""
    log = open_log(setup.place, is_read_only=True)
    with closing(log), closing(open_publications(setup.place)) as publications:
        yield Watch(log, publications)


class Standby:
    """A second learner with its own folder, as on another machine; it is restarted when it ends."""

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
            self._process.send_signal(signal.SIGCONT)  # a test may have stopped it
            async with asyncio.timeout(PATIENCE):
                await self._process.wait()


@asynccontextmanager
async def standing_by(setup: Setup, is_wanted: bool) -> AsyncIterator[Standby | None]:
    """Run a second learner if `is_wanted`."""
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
