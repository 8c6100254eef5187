"""Several processes on one log."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

from rbmle.service.log import (
    DuplicateRequest,
)
from tests.contract.log_disk import OnDisk
from tests.contract.log_promises import raised, row
from tests.contract.log_server import OnServer


def append_together(place: OnDisk | OnServer) -> None:
    """Append by three logs at a time: one order without gaps, and each request once."""

    def append(name: str) -> int:
        refused = 0
        with closing(place.open()) as log:
            for i in range(30):
                log.append([row(name), row(name)])
                error = raised(partial(log.append, [row(name, f"{i}")]))
                refused += isinstance(error, DuplicateRequest)
        return refused

    with closing(place.open()) as reader, ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(append, name) for name in "abc"]
        seen: list[int] = []
        while not all(writer.done() for writer in writers):
            seen += [stored.seq for stored in reader.read(len(seen))]
        seen += [stored.seq for stored in reader.read(len(seen))]
        assert sum(writer.result() for writer in writers) == 60
        assert seen == list(range(1, 3 * 60 + 30 + 1))
        for name in "abc":
            events = [stored.row.request for stored in reader.of_event(name)]
            assert events.count(None) == 60
        assert reader.verify() == []


def lend_and_take(place: OnDisk | OnServer) -> None:
    """Take a lease, refuse it to another log, and let it go."""
    with closing(place.open()) as log, closing(place.open()) as other:
        lease, next_lease = log.lease(), other.lease()
        assert not lease.is_held()
        assert lease.take()
        assert lease.take()
        assert lease.is_held()
        assert not next_lease.take()
        lease.release()
        assert next_lease.take()
        next_lease.release()
