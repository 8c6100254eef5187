"""A service in a process of its own, and what its log has afterwards."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from rbmle.service.exports.export import ServiceLog
from rbmle.service.log import Log, open_log

KEY = "only-for-tests-0123456789"
RBMLE = [sys.executable, "-c", "from rbmle.cli import main; main()"]
START_SECONDS = 120.0  # kernels are compiled where none are kept
STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running service: where it answers, and where it remembers."""

    address: str
    folder: Path

    def kinds(self, event: str) -> list[str]:
        """Return which records the log has of an event, in order."""
        with closing(self._log()) as log:
            return [stored.row.kind for stored in log.of_event(event)]

    def last(self) -> int:
        """Return the seq of the last record; other tests may have older ones deleted at any time."""
        with closing(self._log()) as log:
            return log.last()

    def decisions(self, after: int) -> int:
        """Return how many decisions the log has after a record."""
        with closing(self._log()) as log:
            return sum(stored.row.kind == "decided" for stored in log.read(after))

    def settled(self, events: Collection[str]) -> int:
        """Return how many plays of some events are settled."""
        with closing(self._log()) as log:
            return sum(row.stored.row.event in events for row in ServiceLog(log, "the log").rows())

    def _log(self) -> Log:
        return open_log(str(self.folder / "log.db"), is_read_only=True)


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Yield a service on a free port; in the end it stops as asked, and had no fault of its own."""
    output = folder / "output.txt"
    command = [*RBMLE, "serve", "--data", str(folder / "data"), "--port", "0"]
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | {"RBMLE_KEY": KEY}, stderr=file)
    try:
        yield Served(address=_address(process, output), folder=folder / "data")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=STOP_SECONDS) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()
    assert "unexpected error" not in output.read_text(), output.read_text()


def _address(process: "subprocess.Popen[bytes]", output: Path) -> str:
    """Return where a service answers, as soon as it is ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"serves at (http://\S+),", output.read_text())
        if found is not None and _is_ready(found[1]):
            return found[1]
        time.sleep(0.02)
    pytest.fail(f"the service did not start: {output.read_text()}")


def _is_ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz") as answer:
            return bool(answer.status == 200)
    except HTTPError as refusal:
        refusal.close()
        return False
