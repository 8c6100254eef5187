"""Full disks, disks that do not sync, and stuck disks: writes are refused at once, and reads continue.

`python -m tests.reliability.disks --times 20` breaks the disk in each way 20 times.
"""

import argparse
import asyncio
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.reliability.evidence import Verdict, judge
from tests.reliability.faulty import FULL, STUCK, UNSYNCABLE
from tests.reliability.running import Running, Setup, listening
from tests.reliability.visitors import Ledger, Site, Visitor, rank_request, reward_request, visited
from tests.reliability.wire import Answer, Request, ask_once

SEEN = "seen before"  # an event that is in the log
READS = (
    "/healthz",
    "/metrics",
    "/dashboard",
    "/dashboard/login",
    "/v1/status",
    "/v1/configuration",
    f"/v1/events/{quote(SEEN)}",
)
LOAD = 20  # events between two faults
SMALL = "small file system"
SMALL_TIMES = 3  # after some more its 4 MiB are full of the log itself
REFUSE_SECONDS = 1.0
NOTICE_SECONDS = 20.0  # within which a write meets the broken disk
RECOVER_SECONDS = 20.0

Break = Callable[[Running], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """The outcome of one fault."""

    asked: int  # writes, from the first one that was refused on
    refused: int  # of these, with 503 and Retry-After
    slowest: float  # seconds to such a refusal
    recovered: float  # seconds from the repair until it was ready

    def __add__(self, other: "Episode") -> "Episode":
        """Return both as one."""
        return Episode(
            asked=self.asked + other.asked,
            refused=self.refused + other.refused,
            slowest=max(self.slowest, other.slowest),
            recovered=max(self.recovered, other.recovered),
        )

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{self.refused} of {self.asked} writes refused, the slowest in {self.slowest:.3f} s; "
            f"ready {self.recovered:.2f} s after the repair at the latest"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The episodes, and the final check of the log."""

    episode: Episode
    verdict: Verdict

    def __str__(self) -> str:
        """Return the figures."""
        return f"{self.episode}; {self.verdict}"


def limited(service: Running) -> AbstractContextManager[None]:
    """Return a fault: the system refuses every write of the service to a file."""

    @contextmanager
    def broken() -> Iterator[None]:
        before = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
        for pid in service.pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
        try:
            yield
        finally:
            for pid in service.pids:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    return broken()


def faulty(folder: Path, fault: str) -> Break:
    """Return a fault of the disk of tests.reliability.faulty."""

    @contextmanager
    def broken() -> Iterator[None]:
        (folder / fault).touch()
        try:
            yield
        finally:
            (folder / fault).unlink()

    return lambda service: broken()


def filled(folder: Path) -> Break:
    """Return a fault: the file system of a folder is filled to the last block."""

    @contextmanager
    def broken() -> Iterator[None]:
        ballast = folder / "ballast"
        with open(ballast, "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        try:
            yield
        finally:
            ballast.unlink()

    return lambda service: broken()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Yield a small file system, or None without the permission to mount one."""
    folder.mkdir()
    # Room for what visitors still write after a repair: each commit takes 16 KiB of the write-ahead log.
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    may_mount = os.geteuid() == 0 and shutil.which("mount") is not None
    if not may_mount or subprocess.run(command, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


async def endure(
    setup: Setup, breaks: Sequence[Break], *, probes: int = 5, visitors: int = 4
) -> Outcome:
    """Break and repair the disk of a service under load, again and again, and then check its log.

    Before the check the service is killed, so that it cannot write anything that it has acknowledged before.
    """
    ledger, site = Ledger(), Site()
    episode = Episode(asked=0, refused=0, slowest=0.0, recovered=0.0)
    async with visited(site, ledger, visitors) as guests, listening(setup) as service:
        await service.ready()
        site.open(service.port)
        probe = Visitor(name="probe", site=site, ledger=ledger)
        await probe.rank(_rank(SEEN))
        for number, break_disk in enumerate(breaks):
            if visitors:
                await ledger.reaches(ledger.size + LOAD)
            events = [f"probe {number}/{i}" for i in range(probes)]
            outcome, tried = await _break(service, break_disk, probe, events)
            episode += outcome
            for event in (*tried, *events):
                await probe.rank(_rank(event))
                await probe.reward(event, 1.0)
        site.is_over = True
        await guests.gone()
        await service.kill()
        await probe.connection.close()
    return Outcome(episode=episode, verdict=judge(setup.place, ledger, setup.data))


def _rank(event: str) -> Request:
    return rank_request(event, random.Random(event), is_named=True)


def _writes(events: list[str]) -> list[Request]:
    """Return the ranks of some events, and their rewards."""
    rewards = [reward_request(event, f"of {event}", 1.0) for event in events]
    return [*(_rank(event) for event in events), *rewards]


async def _break(
    service: Running, break_disk: Break, probe: Visitor, events: list[str]
) -> tuple[Episode, list[str]]:
    """Break the disk and repair it; assert that reads work.

    Return the outcome of writes, and the events that were tried until the first refusal. Each try is a new
    event: SQLite's write-ahead log may have room for some more, and no event is written twice.
    """
    tried: list[str] = []
    answers: list[tuple[Answer, float]] = []
    with break_disk(service):
        async with asyncio.timeout(NOTICE_SECONDS):
            while not answers or answers[-1][0].status != 503:
                tried.append(f"{events[0]}, try {len(tried)}")
                answers = [await _timed(probe, _rank(tried[-1]))]
        answers += [await _timed(probe, request) for request in _writes(events)]
        async with asyncio.timeout(NOTICE_SECONDS):
            while (await ask_once(service.port, "/readyz")).status != 503:
                await asyncio.sleep(0.05)
        for path in READS:
            assert (await ask_once(service.port, path)).status in {200, 303}, path
    repaired = time.monotonic()
    async with asyncio.timeout(RECOVER_SECONDS):
        await service.ready()
    episode = Episode(
        asked=len(answers),
        refused=sum(answer.status == 503 for answer, _ in answers),
        slowest=max(seconds for answer, seconds in answers if answer.status == 503),
        recovered=time.monotonic() - repaired,
    )
    return episode, tried


async def _timed(probe: Visitor, request: Request) -> tuple[Answer, float]:
    """Return the answer to a write, and its duration; a refusal must have Retry-After."""
    begun = time.monotonic()
    answer = await probe.connection.ask(await probe.site.port(), request)
    seconds = time.monotonic() - begun
    assert answer.status in {201, 204, 503}, answer
    if answer.status == 503:
        assert int(answer.headers["retry-after"]) >= 1, answer
    return answer, seconds


def main() -> int:
    """Break disks in every way; return 0 if nothing was lost and every refusal came within a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="rbmle-disk-") as name:
        folder = Path(name)
        faults = folder / "faults"
        faults.mkdir()
        program = ("-m", "tests.reliability.faulty", str(faults))
        broken: list[tuple[str, Setup, Break]] = [
            (fault, Setup(data=folder / fault, program=program), faulty(faults, fault))
            for fault in (FULL, UNSYNCABLE, STUCK)
        ]
        broken.append(("limit of the system", Setup(data=folder / "limited"), limited))
        with small_disk(folder / "small") as disk:
            if disk is None:
                print("small file system: left out, since only root may mount one")
            else:
                broken.append((SMALL, Setup(data=disk / "data"), filled(disk)))
            for fault, setup, break_disk in broken:
                count = min(times, SMALL_TIMES) if fault == SMALL else times
                outcomes.append(asyncio.run(endure(setup, [break_disk] * count)))
                print(f"{fault}, {count} times: {outcomes[-1]}", flush=True)
    is_good = all(o.verdict.is_clean and o.episode.slowest < REFUSE_SECONDS for o in outcomes)
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
