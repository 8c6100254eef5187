"""What is said on standard error while kernels are compiled: one line, and none where all is loaded."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_SECONDS = 0.5  # of compilation, before anything is said


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def notice(folder: Path | None) -> str:
    """Return the line: what happens, how often, and what to do where it would happen each time."""
    if folder is not None and is_writable(folder):
        return (
            "rbmle: compiling kernels for this machine, which takes some seconds; "
            f"this happens once, they are kept in {folder}"
        )
    where = "there is no home folder" if folder is None else f"{folder} is not writable"
    return (
        f"rbmle: kernels cannot be cached, and every process compiles them anew: {where}; "
        "set RBMLE_CACHE to a writable folder, or to one that `rbmle warm` has filled"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Compiling:
    """How long this process has compiled, and whether it has said so."""

    is_quiet: bool
    say: Callable[[str], None] = _say  # the service has a log of its own
    seconds: float = 0.0
    is_told: bool = False
    _begun: float | None = None
    _timer: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, folder: Path | None) -> None:
        """Note that a kernel is compiled from here on; others may be compiled for it."""
        with self._lock:
            if self._begun is not None:
                return
            self._begun = time.monotonic()
            if self.is_quiet or self.is_told:
                return
            patience = max(PATIENCE_SECONDS - self.seconds, 0.0)
            self._timer = threading.Timer(patience, self._tell, [folder])
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Note that a kernel is compiled."""
        with self._lock:
            if self._begun is None:
                return
            self.seconds += time.monotonic() - self._begun
            self._begun = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _tell(self, folder: Path | None) -> None:
        with self._lock:
            if self.is_told or self._begun is None:
                return
            self.is_told = True
        self.say(notice(folder))


compiling = Compiling(is_quiet=os.environ.get("RBMLE_QUIET", "") not in ("", "0"))


def seconds_compiled() -> float:
    """Return for how long this process has compiled kernels; 0 where all were loaded."""
    return compiling.seconds
