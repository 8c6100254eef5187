"""A front end and a learner in one process: for tests, and for who embeds the service."""

import threading
from collections.abc import Callable

from rbmle.service.front_end import FrontEnd
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.learner import Learner
from rbmle.service.learning.start import Start
from rbmle.service.log.opening import LOG_FILE, open_log, open_publications
from rbmle.service.log.publications import MemoryPublications
from rbmle.service.statistics import Statistics


class Service(FrontEnd):
    """A front end whose learner is a thread beside it."""

    def __init__(self, start: Start, told: Callable[[str], None]) -> None:
        """Open the log and begin to learn; `told` hears what is worth a line."""
        start.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        address = start.log or str(start.data / LOG_FILE)
        log = open_log(address)
        own = open_publications(address)
        # A publication in memory is for who has the same object; others take one each.
        publications = own if isinstance(own, MemoryPublications) else open_publications(address)
        try:
            self.learner = Learner(log, own, start, told)
            self.learner.prepare()
        except BaseException:
            log.close()
            raise
        self._thread = threading.Thread(target=self.learner.run, name="rbmle-learner", daemon=True)
        super().__init__(log, publications, start.data)
        self._thread.start()

    def close(self) -> None:
        """Write what is queued and a checkpoint, and let go."""
        if not self._is_closed:
            self.writer.close()
            self.learner.stop()
            self._thread.join()
        super().close()

    @property
    def fold(self) -> Fold:
        """Return what is known; the learner's thread changes it."""
        return self.learner.fold

    @property
    def statistics(self) -> Statistics:
        """Return what is counted; the learner's thread changes it."""
        return self.learner.statistics
