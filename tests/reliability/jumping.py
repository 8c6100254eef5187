"""A service whose system clock jumps: it is ahead by the number of seconds in a file.

`python -m tests.reliability.jumping FILE serve …` reads the file twice a second.
"""

import sys
import threading
import time
from pathlib import Path

from rbmle.cli import main
from rbmle.service import supervisor

LOOK_SECONDS = 0.5


class JumpingClock:
    """The system clock with an error, which is read from a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._time_ns = time.time_ns
        self._ahead = 0

    def jump(self, seconds: int) -> None:
        """Set the error for all processes that read the file."""
        part = self.path.with_suffix(".part")
        part.write_text(str(seconds))
        part.replace(self.path)

    def install(self) -> None:
        """Use this clock in this process."""
        self._look()
        time.time_ns = lambda: self._time_ns() + self._ahead * 10**9
        time.time = lambda: time.time_ns() / 1e9
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self._look()

    def _look(self) -> None:
        self._ahead = int(self.path.read_text())


if __name__ == "__main__":
    file = sys.argv.pop(1)
    JumpingClock(Path(file)).install()
    supervisor.PROGRAM = (sys.executable, "-m", "tests.reliability.jumping", file)
    main()
