"""Counters of several workers in one file."""

from rbmle.service.http.worker_counters import (
    ENTRIES,
    NAME_BYTES,
    WIDTH,
    WorkerCounters,
    counters_file,
)


def test_any_worker_reads_the_sum_of_all() -> None:
    with counters_file(3) as file:
        workers = [WorkerCounters(file.fileno(), number, 3) for number in range(3)]
        for number, counters in enumerate(workers):
            counters.values("requests", "rank", "201")[0] += number + 1
            counters.values("seconds", "rank")[WIDTH - 1] += 0.5
        workers[1].values("requests", "rank", "409")[0] += 1
        for counters in workers:
            total = counters.total()
            assert total["requests", "rank", "201"][0] == 6
            assert total["requests", "rank", "409"][0] == 1
            assert total["seconds", "rank"][-1] == 1.5


def test_a_worker_that_is_started_again_counts_on() -> None:
    with counters_file(2) as file:
        other = WorkerCounters(file.fileno(), 0, 2)
        for _ in range(3):  # lives of the same worker
            again = WorkerCounters(file.fileno(), 1, 2)
            again.values("requests", "rank", "201")[0] += 5
            again.values("commits")[0] += 1
        assert other.total() == again.total()
        assert other.total()["requests", "rank", "201"][0] == 15
        assert other.total()["commits",][0] == 3


def test_a_name_that_a_killed_worker_had_begun_is_written_over() -> None:
    with counters_file(1) as file:
        counters = WorkerCounters(file.fileno())
        counters._memory[1:30] = b"x" * 29  # all but the first byte of a name
        assert counters.total() == {}
        counters.values("pid")[0] = 7
        assert list(counters.total()) == [("pid",)]


def test_what_has_no_room_harms_nothing() -> None:
    counters = WorkerCounters()
    counters.values("x" * (NAME_BYTES + 1))[0] += 1
    for number in range(ENTRIES + 10):
        counters.values("requests", str(number))[0] += 1
    assert len(counters.total()) == ENTRIES


def test_a_worker_knows_whether_all_others_can_decide() -> None:
    with counters_file(2) as file:
        first, second = (WorkerCounters(file.fileno(), worker, 2) for worker in range(2))
        before = first.others_are_warm
        second.note_warm()
        assert (before, first.others_are_warm, second.others_are_warm) == (False, True, False)
    assert WorkerCounters().others_are_warm
