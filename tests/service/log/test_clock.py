"""Clocks that jump, that differ from machine to machine, and a log whose clock ran ahead."""

from datetime import timedelta
from pathlib import Path

import pytest

from rbmle.service.front import front_end
from rbmle.service.http import metrics
from rbmle.service.http.metrics import Metrics
from rbmle.service.learner.checkpoints import check_newest
from rbmle.service.log import LOG_FILE, open_log
from rbmle.service.log import clock as clocks
from rbmle.service.log.clock import LogClockCheck, WallClock
from rbmle.service.log.records import CLOCK, Ticked, row_of
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.services import offer, rank, running, small_start, wait_until

START = 1_800_000_000_000  # milliseconds
DAY = 24 * 3_600 * 1_000


class Machine:
    """Two clocks: one that a person can set, and one that nobody can."""

    def __init__(self) -> None:
        self.steady = 5_000
        self.shift = START
        self.clock = WallClock(lambda: self.steady + self.shift, lambda: self.steady)
        self.clock.now()

    def passes(self, seconds: float) -> int:
        """Let time pass while the clock is asked every second; return what it says then."""
        for _ in range(int(seconds)):
            self.steady += 1_000
            self.clock.now()
        return self.clock.now()

    @property
    def truth(self) -> int:
        return self.steady + START


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY, 11_000])
def test_a_jump_that_is_corrected_within_a_minute_is_in_no_record(jump: int) -> None:
    machine = Machine()
    machine.shift += jump
    assert machine.passes(50) == machine.truth
    assert machine.clock.offset_seconds == -jump / 1_000
    assert [notice.code for notice in machine.clock.notices] == ["clock-jumped"]
    machine.shift -= jump
    assert machine.passes(100) == machine.truth
    assert machine.clock.notices == []


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
def test_a_jump_that_stays_is_followed_after_a_minute(jump: int) -> None:
    machine = Machine()
    machine.shift += jump
    assert machine.passes(59) == machine.truth
    assert machine.passes(3) == machine.truth + jump
    assert machine.clock.notices == []


def test_a_small_correction_is_followed_at_once() -> None:
    machine = Machine()
    machine.shift -= 3_000
    assert machine.passes(1) == machine.truth - 3_000


def test_a_sleeping_machine_has_not_jumped() -> None:
    machine = Machine()
    machine.steady += DAY
    assert machine.clock.now() == machine.truth
    assert machine.clock.notices == []


def test_a_front_end_with_another_clock_uses_the_learners_until_they_agree() -> None:
    machine = Machine()
    for _ in range(clocks.SKEWED_LOOKS - 1):
        machine.clock.compare(machine.truth - 2 * DAY)
        assert machine.clock.now() == machine.truth
    machine.clock.compare(machine.truth - 2 * DAY)
    assert machine.clock.now() == machine.truth - 2 * DAY
    assert [notice.code for notice in machine.clock.notices] == ["clock-differs"]
    machine.clock.compare(machine.truth + 1_000)
    assert machine.clock.now() == machine.truth
    assert machine.clock.notices == []


def test_one_stale_report_changes_no_clock() -> None:
    machine = Machine()
    for _ in range(20):
        machine.clock.compare(machine.truth - DAY)
        machine.clock.compare(machine.truth)
        assert machine.clock.now() == machine.truth


def test_a_log_that_is_ahead_is_set_back_after_a_minute_and_told_before() -> None:
    machine = Machine()
    check = LogClockCheck(lambda: machine.steady)
    ahead = machine.truth + 2 * DAY
    assert not check.is_due(ahead, machine.passes(59))
    assert not check.is_due(ahead, machine.passes(59))
    assert [notice.code for notice in check.notices] == ["log-clock-ahead"]
    assert check.is_due(ahead, machine.passes(1))
    assert not check.is_due(machine.truth, machine.truth)
    assert check.notices == []


def test_a_log_that_is_ahead_for_a_moment_or_a_little_is_left_alone() -> None:
    machine = Machine()
    check = LogClockCheck(lambda: machine.steady)
    assert not check.is_due(machine.truth + DAY, machine.passes(1))
    assert not check.is_due(machine.truth, machine.passes(30))
    assert not check.is_due(machine.truth + DAY, machine.passes(40))
    assert not any(check.is_due(machine.passes(10) + 59_000, machine.clock.now()) for _ in range(9))


def test_a_log_that_was_hit_learns_again_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `faketime +2d`, one rank and a return to real time left behind."""
    waits = ServiceConfiguration(settle=Settle.DEADLINE, reward_wait_time=timedelta(seconds=5))
    start = small_start(tmp_path, configuration=waits)
    with running(start) as service:
        rank(service, offer("a", "b", event="before"))
        wait_until(lambda: service.fold.bandit is not None and service.fold.bandit.round == 1)
    ahead = clocks.clock.now() + 2 * DAY
    log = open_log(str(tmp_path / LOG_FILE))
    log.append([row_of(Ticked(), CLOCK, ahead)])
    log.close()
    monkeypatch.setattr(clocks, "CONFIRM_SECONDS", 0.5)
    with running(start) as service:
        for number in range(20):
            rank(service, offer("a", "b", event=f"after {number}"))
        wait_until(lambda: service.report.clock_corrections == 1)
        wait_until(lambda: service.fold.bandit is not None and service.fold.bandit.round == 21)
        assert not service.fold.joiner.pending
        wait_until(lambda: service.report.log_clock_ahead_seconds == 0)
    log = open_log(str(tmp_path / LOG_FILE), is_read_only=True)
    kinds = [stored.row.kind for stored in log.read()]
    assert kinds.count("clockcorrected") == 1
    assert check_newest(log, tmp_path) == []  # built again from the log alone, it is the same
    log.close()


def test_a_jump_is_shown_to_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    for place in (front_end, metrics):
        monkeypatch.setattr(place, "clock", machine.clock)
    with running(small_start(tmp_path)) as service:
        assert service.notices == []
        machine.shift += 2 * DAY
        text = Metrics(service).text().decode()
        assert "rbmle_clock_offset_seconds -172800.0" in text
        assert 'rbmle_notices{code="clock-jumped",level="warning"} 1.0' in text
        assert "rbmle_log_clock_ahead_seconds 0.0" in text
        assert [notice.code for notice in service.notices] == ["clock-jumped"]
