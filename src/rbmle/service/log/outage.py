"""That something does not work, said once when it begins and once when it is over."""

import time
from dataclasses import dataclass

import structlog

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failure:
    """Since when something does not work, and why."""

    since: float  # seconds since the epoch
    why: str


class Outage:
    """Whether one thing works; a line of the service's own log tells when that changes."""

    def __init__(self, action: str) -> None:
        """Watch a action, such as "write the log"."""
        self.failure: Failure | None = None  # while it does not work
        self._action = action

    def failed(self, why: str) -> None:
        """Hear that it did not work; why is for the operator, and may name files and hosts."""
        if self.failure is None:
            self.failure = Failure(time.time(), why)
            _log.error(f"cannot {self._action}", why=why)

    def worked(self) -> None:
        """Hear that it worked."""
        if self.failure is not None:
            seconds = round(time.time() - self.failure.since, 3)
            self.failure = None
            _log.info(f"can {self._action} again", after_seconds=seconds)
