"""How a learner waits for the lease without learning: kernels are loaded, and nothing is folded.

That costs memory and no time, where one that folds along takes the time of the one that leads once more.
"""

import os
import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from rbmle.service.learning.checkpoints import Checkpoints
from rbmle.service.learning.heartbeat import SILENT_SECONDS, HeartbeatWatch
from rbmle.service.learning.report import Report
from rbmle.service.learning.start import settings_of
from rbmle.service.log.base import Lease, Log
from rbmle.service.log.clock import clock
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.publications import Publications

REPORT = "report"  # the name of the publication
FREE_SECONDS = 0.1  # between two looks whether the lease is free
YIELD_SECONDS = 3 * FREE_SECONDS  # in which one that has folded along takes a lease that is free
FAR_SECONDS = 2.0  # the same, if the newest checkpoint here is
FAR = 20_000  # records or more behind
LOOK_EVERY = 10  # looks at the lease there is one where the one that leads is


def name_of(data: Path) -> str:
    """Return the name of this process as a learner: where its checkpoints are, and its number."""
    return f"{platform.node()}:{data.absolute()}/{os.getpid()}"


class Standby:
    """Waits for a lease."""

    def __init__(
        self,
        log: Log,
        publications: Publications,
        lease: Lease,
        heartbeat: HeartbeatWatch,
        stop: threading.Event,
        checkpoints: Checkpoints,
        notify: Callable[[str], None],
    ) -> None:
        """Make it; `notify` hears when it could lead at once."""
        self._log = log
        self._checkpoints = checkpoints
        self._notify = notify
        self._publications = publications
        self._lease = lease
        self._heartbeat = heartbeat
        self._stop = stop
        self._is_warm = False

    def wait(self, lead: Callable[[int | None], bool], *, is_spare: bool) -> None:
        """Return when `lead` did, or at the stop; or when one leads whose checkpoints are not here.

        The last is for one that is no spare: it had better fold along. `lead` is given the fencing token of a
        learner that hangs, or None.
        """
        looks = 0
        is_led = lead(None)
        while not (is_led or self._stop.wait(FREE_SECONDS)):
            self._warm_up()
            clock.now()  # which sees jumps if it is asked often
            is_due, looks = looks % LOOK_EVERY == 0, looks + 1
            if is_due and not is_spare and self._is_led_elsewhere():
                return
            is_led = (self._is_left_free() and lead(None)) or self._leads_over_silent(lead)

    def _leads_over_silent(self, lead: Callable[[int | None], bool]) -> bool:
        """Take over from a learner that does not beat any more, unless one that folded along does it first."""
        with suppress(LogUnavailable, msgspec.MsgspecError):
            self._heartbeat.look()
        token = self._heartbeat.silent_token()
        if token is None:
            return False
        patience = FAR_SECONDS if self._is_far_behind() else YIELD_SECONDS
        is_over = self._heartbeat.silent_token(SILENT_SECONDS + patience) is not None
        return is_over and lead(token)

    def _warm_up(self) -> None:
        """Load the kernels of the log's model, once it has one."""
        if self._is_warm:
            return
        try:
            model = settings_of(self._log).model
        except LogUnavailable:
            return
        if model is not None:
            model.warm_up()
            self._is_warm = True
            self._notify("a learner stands by")

    def _is_left_free(self) -> bool:
        """Return whether the lease is free, and stays so while another one could take it."""
        if not self._lease.is_free():
            return False
        return not self._stop.wait(FAR_SECONDS if self._is_far_behind() else YIELD_SECONDS)

    def _is_far_behind(self) -> bool:
        """Return whether there is much to learn after the newest checkpoint."""
        try:
            return self._log.last() > self._checkpoints.newest + FAR
        except LogUnavailable:
            return True

    def _is_led_elsewhere(self) -> bool:
        """Return whether the last report is of one whose checkpoints are elsewhere."""
        try:
            found = self._publications.newer(REPORT, None)
        except LogUnavailable:
            return False
        learner = "" if found is None else msgspec.msgpack.decode(found[1], type=Report).learner
        here, _, _ = name_of(self._checkpoints.folder).rpartition("/")
        return learner.rpartition("/")[0] not in {"", here}
