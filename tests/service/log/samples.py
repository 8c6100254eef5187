"""Several processes on one log."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from rbmle.service.log import DuplicateRequest, LeaseLost
from rbmle.service.log.publications import Publications
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


def take_over(place: OnDisk | OnServer) -> None:
    """Take a lease from a holder that keeps it, and refuse what that one writes later."""
    with closing(place.open()) as log, closing(place.open()) as other:
        hung, healthy = log.lease(), other.lease()
        assert hung.take()
        first = hung.token
        assert hung.append([row("before")]) == 1
        assert not healthy.take()
        assert not healthy.take(over=first - 1)  # that one was taken over before
        assert healthy.take(over=first)
        assert healthy.token > first
        with pytest.raises(LeaseLost):
            hung.append([row("after")])
        assert [stored.row.event for stored in log.read()] == ["before"]
        assert healthy.append([row("of another")]) == 2
        assert healthy.is_held()
        assert not hung.is_held()  # which lets go of its lock
        assert not hung.take()  # although its lock is free
        assert healthy.is_held()  # and has it now
        healthy.release()
        assert hung.take()
        hung.release()


def let_go_without_a_lock(place: OnDisk | OnServer) -> None:
    """Take a lease over, and let it go while the holder before still has its lock."""
    with closing(place.open()) as log, closing(place.open()) as other:
        hung, healthy, next_lease = log.lease(), other.lease(), other.lease()
        assert hung.take()
        assert healthy.take(over=hung.token)
        token = healthy.token
        healthy.release()
        assert not hung.is_held()
        assert next_lease.is_free()
        assert next_lease.take()
        assert next_lease.token > token
        next_lease.release()


def publish_after_a_takeover(hung: Publications, healthy: Publications) -> None:
    """Publish with an old fencing token after a newer one was used."""
    hung.put("model", b"first", 1)
    healthy.put("model", b"second", 2)
    with pytest.raises(LeaseLost):
        hung.put("model", b"late", 1)
    found = healthy.newer("model", None)
    assert found is not None
    assert found[1] == b"second"
    assert healthy.newer("model", found[0]) is None
    healthy.put("model", b"third", 2)
    found = hung.newer("model", found[0])
    assert found is not None
    assert found[1] == b"third"
