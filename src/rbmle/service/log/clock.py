"""The time of new records: the system clock without its jumps.

The log's clock never goes back by itself, so one record with a time in the future would delay every event
that waits for its deadline. Three measures prevent that:

1. When the system clock jumps, a process uses its steady clock for HOLD_SECONDS. A jump that is
   corrected in that time leaves no trace in the log.
2. A front end whose clock differs from that of the learner, on another machine, uses the learner's time.
3. A log whose clock is ahead all the same (after a start with a wrong clock, or from an older version) is
   corrected by the learner, with a record: see `LogClockCheck`.
"""

import threading
import time
from collections.abc import Callable

import structlog

from rbmle.service.notices import Notice

JUMP_SECONDS = 10.0  # a smaller one is followed at once
HOLD_SECONDS = 60.0  # for which a jump is not followed
SKEW_SECONDS = 30.0  # by which a front end's clock may differ from the learner's
SKEWED_LOOKS = 5  # reports of the learner in a row that have to differ so much
AHEAD_SECONDS = 60.0  # by which the log's clock may be ahead of the learner's
CONFIRM_SECONDS = 60.0  # for which it has to be, before it is set back
MILLISECONDS = 1_000

_log = structlog.get_logger()


def system_milliseconds() -> int:
    return time.time_ns() // 1_000_000


def steady_milliseconds() -> int:
    """Return the time of a clock that never jumps, and that continues while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    return time.monotonic_ns() // 1_000_000


class WallClock:
    """Milliseconds since the epoch for one process; any thread asks.

    It has to be asked about once a second, so that it sees a jump when it happens.
    """

    def __init__(
        self,
        system: Callable[[], int] = system_milliseconds,
        steady: Callable[[], int] = steady_milliseconds,
    ) -> None:
        self._system, self._steady = system, steady
        self._lock = threading.Lock()
        self._shift: int | None = None  # of the system clock to the steady one, without jumps
        self._jump: tuple[int, int] | None = None  # the shift after a jump, and when it was seen
        self._skew = 0  # of the learner's clock to this one, if it is followed
        self._skewed = 0  # reports of the learner in a row that differed
        self._notice: Notice | None = None

    def now(self) -> int:
        with self._lock:
            return self._now() + self._skew

    @property
    def offset_seconds(self) -> float:
        """Return by how much the time for records is ahead of the system's clock."""
        return (self.now() - self._system()) / MILLISECONDS

    @property
    def notices(self) -> list[Notice]:
        """Return what the operator should know now."""
        self.now()
        notice = self._notice
        return [] if notice is None else [notice]

    def compare(self, theirs: int) -> None:
        """Compare this clock with the learner's time of just now, and follow that if they stay far apart."""
        with self._lock:
            skew = theirs - self._now()
            if abs(skew) <= SKEW_SECONDS * MILLISECONDS:
                if self._skew:
                    _log.info("the clock of this front end agrees with the learner's again")
                    self._notice = None
                self._skew, self._skewed = 0, 0
                return
            self._skewed += 1
            if self._skewed < SKEWED_LOOKS:
                return
            if not self._skew:
                seconds = round(skew / MILLISECONDS)
                _log.warning(
                    "the clock of this front end differs from the learner's; it uses the learner's time",
                    learner_ahead_seconds=seconds,
                )
                self._notice = Notice(
                    code="clock-differs",
                    title="The clock of this front end differs from the learner's.",
                    text=f"The learner's is {_by(seconds)}. Records get the learner's time. "
                    "Set the clocks of both machines, for example by NTP.",
                    since=theirs,
                )
            self._skew = skew

    def _now(self) -> int:
        system, steady = self._system(), self._steady()
        shift = system - steady
        if self._shift is None or abs(shift - self._shift) <= JUMP_SECONDS * MILLISECONDS:
            if self._jump is not None:
                _log.info("the system clock was corrected; its jump is in no record")
                self._jump = self._notice = None
            self._shift = shift
        elif self._jump is None or abs(shift - self._jump[0]) > JUMP_SECONDS * MILLISECONDS:
            seconds = round((shift - self._shift) / MILLISECONDS)
            if self._jump is None:
                _log.warning(
                    "the system clock jumped; records keep the time before the jump for a while",
                    jump_seconds=seconds,
                    while_seconds=HOLD_SECONDS,
                )
            self._notice = Notice(
                code="clock-jumped",
                title=f"The system clock jumped: it is {_by(seconds)}.",
                text=f"Records keep the time before the jump for {HOLD_SECONDS:.0f} seconds, and then "
                "follow it. Check the clock of this machine.",
                since=steady + self._shift,
            )
            self._jump = shift, steady
        elif steady - self._jump[1] >= HOLD_SECONDS * MILLISECONDS:
            _log.warning("records follow the system clock after its jump")
            self._shift, self._jump, self._notice = shift, None, None
        return steady + self._shift


class LogClockCheck:
    """Detects that the log's clock is ahead of the wall clock, and says when to set it back.

    It waits for CONFIRM_SECONDS: a machine that starts with a clock in the past mostly has the right time soon
    after, and a log that is set back by mistake closes events too early.
    """

    def __init__(self, steady: Callable[[], int] = steady_milliseconds) -> None:
        self.ahead_seconds = 0.0  # now; 0: by no more than it may be
        self.corrections = 0  # by this learner
        self._steady = steady
        self._since: int | None = None  # by the steady clock
        self._began = 0  # by the wall clock

    def is_due(self, log_time: int, now: int) -> bool:
        """Return whether the log's clock has to be set back to now; ask when the whole log is read."""
        ahead = (log_time - now) / MILLISECONDS
        if ahead <= AHEAD_SECONDS:
            self._since, self.ahead_seconds = None, 0.0
            return False
        self.ahead_seconds = ahead
        if self._since is None:
            self._since, self._began = self._steady(), now
            _log.warning(
                "the clock of the log is ahead of the clock of this machine; events wait too long",
                ahead_seconds=round(ahead),
                corrected_after_seconds=CONFIRM_SECONDS,
            )
        if self._steady() - self._since < CONFIRM_SECONDS * MILLISECONDS:
            return False
        self._since = None
        return True

    def note_correction(self) -> None:
        self.corrections += 1
        _log.warning("the clock of the log was set back", by_seconds=round(self.ahead_seconds))

    @property
    def notices(self) -> list[Notice]:
        """Return what the operator should know now."""
        if not self.ahead_seconds:
            return []
        return [
            Notice(
                code="log-clock-ahead",
                level="alarm",
                title=f"The log's clock is {_by(round(self.ahead_seconds))}.",
                text="A record came from a clock that ran ahead, and events are not settled meanwhile. The "
                f"learner sets the log's clock back after {CONFIRM_SECONDS:.0f} seconds. Check the clocks.",
                since=self._began,
            )
        ]


def _by(seconds: int) -> str:
    return f"{abs(seconds):,} seconds {'ahead' if seconds > 0 else 'behind'}"


clock = WallClock()  # of this process
