"""A front end follows what the learner publishes."""

import threading
import time
from collections.abc import Callable

import msgspec

from rbmle.service.learning import published as publication
from rbmle.service.learning.checkpoints import origin_of
from rbmle.service.learning.heartbeat import HeartbeatWatch
from rbmle.service.learning.learner import MODEL
from rbmle.service.learning.model import ModelSettings
from rbmle.service.learning.published import PublicationReader, Published
from rbmle.service.learning.report import DAYS, Report
from rbmle.service.learning.standing_by import REPORT
from rbmle.service.learning.start import settings_of
from rbmle.service.log.base import Log
from rbmle.service.log.clock import clock
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.outage import Outage
from rbmle.service.log.publications import Publications, PublicationVersion
from rbmle.service.statistics.days import Days

LOOK_SECONDS = 0.05  # between two looks at what is published


class Follower:
    """A thread that keeps the newest model and report at hand; `between` is called about once a second.

    A model with other settings than the last one is given to `rehearse` before it decides, and `warmed` is
    called once it does.
    """

    def __init__(
        self,
        log: Log,
        publications: Publications,
        between: Callable[[], None],
        rehearse: Callable[[Published], None],
        warmed: Callable[[], None],
    ) -> None:
        self.published: Published | None = None  # None: nothing is published yet
        self.report: Report | None = None
        self.days = Days()
        self.heartbeat = HeartbeatWatch(publications)  # of the learner
        self._log = log
        self._origin = ""  # of the log; unknown while it is empty
        self._publications = publications
        self._models = PublicationReader()
        self._between = between
        self._rehearse = rehearse
        self._warmed = warmed
        self._rehearsed: ModelSettings | None = None
        self._reading = Outage("read what is published")
        self._versions: dict[str, PublicationVersion] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rbmle-follower", daemon=True)

    def start(self) -> None:
        """Look once, and from then on."""
        self._look()
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._publications.close()

    def _run(self) -> None:
        next_time = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            self._look()
            clock.now()  # which sees jumps if it is asked often
            if time.monotonic() >= next_time:
                next_time = time.monotonic() + 1.0
                self._between()

    def _look(self) -> None:
        """Take what is new; what cannot be read is read at the next look, or never was whole."""
        try:
            self._origin = self._origin or origin_of(self._log)
            if self._origin and (content := self._newer(MODEL)) is not None:
                published = self._models.decode(content, self._origin)
                if published is not None and published.seq >= self._known:
                    self._take(published)
            if self._origin and self._rehearsed is None:  # while the learner starts
                model = settings_of(self._log).model
                if model is not None:
                    self._prepare(publication.untaught(model))
            if (content := self._newer(REPORT)) is not None:
                is_fresh = self.report is not None  # the first one may be of long ago
                self.report = msgspec.msgpack.decode(content, type=Report)
                if is_fresh:
                    clock.compare(self.report.time)
            self.heartbeat.look()
            if (content := self._newer(DAYS)) is not None:
                self.days = msgspec.msgpack.decode(content, type=Days)
        except (LogUnavailable, msgspec.MsgspecError) as error:
            self._reading.failed(str(error))
        else:
            self._reading.worked()

    def _take(self, published: Published) -> None:
        """Let a model decide from now on."""
        is_new = self.published is None or self.published.model != published.model
        self._prepare(published)
        self.published = published
        if is_new:
            self._warmed()

    def _prepare(self, published: Published) -> None:
        """Rehearse decisions with a model of settings that are new here."""
        if published.model != self._rehearsed:
            self._rehearsed = published.model
            self._rehearse(published)

    @property
    def _known(self) -> int:
        return 0 if self.published is None else self.published.seq

    def _newer(self, name: str) -> bytes | None:
        found = self._publications.newer(name, self._versions.get(name))
        if found is None:
            return None
        self._versions[name], content = found
        return content
