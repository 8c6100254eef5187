"""The control of the kill test: a service that acknowledges before the commit.

`python -m tests.reliability.hasty SECONDS serve …` waits before each commit.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from rbmle.cli import main
from rbmle.service import supervisor
from rbmle.service.front import front_end
from rbmle.service.log.base import Row
from rbmle.service.log.writer import Done, Submission, Writer

SECONDS = float(sys.argv.pop(1)) if __name__ == "__main__" else 0.0


class HastyWriter(Writer):
    """A writer that confirms rows before they are stored."""

    def submit(self, rows: Sequence[Row], done: Done | None = None) -> Any:
        super().submit(rows)
        told: Done = Future() if done is None else done
        told.set_result(0)
        return told

    def _write(self, calls: list[Submission]) -> None:
        time.sleep(SECONDS)
        super()._write(calls)


if __name__ == "__main__":
    front_end.Writer = HastyWriter  # type: ignore[attr-defined]  # that is the control
    supervisor.PROGRAM = (sys.executable, "-m", "tests.reliability.hasty", str(SECONDS))
    main()
