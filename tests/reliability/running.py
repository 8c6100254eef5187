"""Runs a service in its own process: starts it, waits for it, stops it, or kills it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.reliability.wire import LostError, ask_once

ROOT = Path(__file__).parents[2]
PRODUCT = ("-c", "from rbmle.cli import main; main()")
HASTY = ("-m", "tests.reliability.hasty", "0.2")  # the control, which must lose something
SHORTEST_WAIT = "PT5S"  # for rewards
START_SECONDS = 300.0  # the first start of all compiles kernels
READY_SECONDS = 120.0
ADDRESS = re.compile(rb"serves at http://[^:]+:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a service and the place of its data, the same at each start."""

    data: Path
    log: str | None = None  # its address; None: a file in the folder
    program: tuple[str, ...] = PRODUCT
    wait: str = "P2D"  # for rewards; so long that none is too late
    settle: str = "on-reward"
    checkpoint_seconds: float = 1.0
    policy: str = "model.network=Network(width=8)"
    bits: int = 8  # of the featuriser
    workers: int = 1

    @property
    def learns_all(self) -> bool:
        """Return whether every event is learned soon after it was ranked, with a reward or without.

        A control may have lost some events, so this is False for it.
        """
        is_control = self.program != PRODUCT
        return self.wait == SHORTEST_WAIT and self.settle != "on-reward" and not is_control

    @property
    def place(self) -> str:
        """Return the address of the log."""
        return self.log or str(self.data / "log.db")

    def command(self) -> list[str]:
        """Write the settings; return the command that starts the service."""
        return [sys.executable, *self.program, "serve", "--config", str(self.write())]

    def standby(self, data: Path) -> list[str]:
        """Return the command that starts a second learner with its own folder."""
        command = [sys.executable, *self.program, "learn", "--config", str(self.write())]
        return [*command, "--log", self.place, "--data", str(data)]

    def write(self) -> Path:
        """Write the settings; return their file."""
        path = self.data.with_suffix(".toml")
        lines = {
            "data": str(self.data),
            "port": 0,
            "workers": self.workers,
            "no_keys": True,
            "policy": "neural-rbmle-pc",
            "policy_settings": self.policy,
            "seed": 7,
            "checkpoint_seconds": self.checkpoint_seconds,
        }
        if self.log is not None:
            lines["log"] = self.log
        text = [f"{name} = {json.dumps(value)}" for name, value in lines.items()]
        text += ["[features]", f"bits = {self.bits}"]
        text += [
            "[configuration]",
            f'reward_wait_time = "{self.wait}"',
            f'settle = "{self.settle}"',
        ]
        path.write_text("\n".join(text) + "\n")
        return path


class Running:
    """A running service; `output` is its standard error so far."""

    def __init__(self, process: asyncio.subprocess.Process, begun: float) -> None:
        self.begun = begun
        self.output = b""
        self.port = 0
        self._process = process
        self._listening = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    @property
    def pids(self) -> list[int]:
        """Return the numbers of all its processes, the supervisor's first."""
        return [self.pid, *self.of_command("learn"), *self.of_command("front")]

    def of_command(self, command: str) -> list[int]:
        """Return the numbers of the processes of one kind."""
        asked = ["pgrep", "-P", str(self.pid), "-f", f"{command} --supervised"]
        found = subprocess.run(asked, check=False, capture_output=True, text=True)
        return [int(line) for line in found.stdout.split()]

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self._process.returncode is None

    @property
    def spares(self) -> int:
        """Return how many learners have logged so far that they stand by."""
        return self.output.count(b"a learner stands by")

    async def stood_by(self, before: int) -> None:
        """Wait until one more learner than before has logged that it stands by."""
        async with asyncio.timeout(READY_SECONDS):
            while self.spares <= before:
                await asyncio.sleep(0.05)

    async def listening(self) -> None:
        """Wait until it has logged where it listens; raise RuntimeError if it ended before."""
        async with asyncio.timeout(START_SECONDS):
            await self._listening.wait()
        if not self.port:
            raise RuntimeError(f"the service ended: {self.output[-1000:].decode()}")

    async def ready(self) -> float:
        """Return the seconds from its start until it was ready."""
        async with asyncio.timeout(READY_SECONDS):
            while True:
                try:
                    if (await ask_once(self.port, "/readyz")).status == 200:
                        return time.monotonic() - self.begun
                except LostError as error:
                    if not self.is_alive:
                        raise RuntimeError(
                            f"the service ended: {self.output[-1000:].decode()}"
                        ) from error
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """Kill all of its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        async with asyncio.timeout(READY_SECONDS):
            await self._process.wait()
            await self._reader

    async def terminate(self) -> tuple[int, float]:
        """Send SIGTERM; return its exit code, and the seconds until it ended."""
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(START_SECONDS):
            code = await self._process.wait()
            await self._reader
        return code, time.monotonic() - begun

    async def _read(self) -> None:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            self.output += line
            if found := ADDRESS.search(line):
                self.port = int(found[1])
                self._listening.set()
        self._listening.set()


@asynccontextmanager
async def spawned(setup: Setup) -> AsyncIterator[Running]:
    """Yield a service that was just started; it is killed in the end if it still runs."""
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *setup.command(), cwd=ROOT, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    service = Running(process, begun)
    try:
        yield service
    except TimeoutError as error:
        error.add_note(f"The service wrote:\n{service.output[-4000:].decode()}")
        raise
    finally:
        await service.kill()


@asynccontextmanager
async def listening(setup: Setup) -> AsyncIterator[Running]:
    """Yield a service that listens, but may still be reading its log."""
    async with spawned(setup) as service:
        await service.listening()
        yield service
