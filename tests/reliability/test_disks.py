"""A broken disk is never answered by success; the service says so at once, and recovers by itself."""

import asyncio
from pathlib import Path

import pytest

from tests.reliability.disks import (
    REFUSE_SECONDS,
    Outcome,
    endure,
    faulty,
    filled,
    limited,
    small_disk,
)
from tests.reliability.faulty import FULL, STUCK, UNSYNCABLE
from tests.reliability.running import Setup

BUSY_SECONDS = 2.0  # that a busy machine may add; `make reliability` adds nothing


def check(outcome: Outcome) -> None:
    assert outcome.verdict.is_clean, outcome
    assert 0 < outcome.episode.slowest < REFUSE_SECONDS + BUSY_SECONDS


def test_nothing_is_acknowledged_on_a_disk_that_is_full_stuck_or_does_not_sync(
    tmp_path: Path,
) -> None:
    program = ("-m", "tests.reliability.faulty", str(tmp_path))
    breaks = [faulty(tmp_path, fault) for fault in (FULL, UNSYNCABLE, STUCK)]
    outcome = asyncio.run(endure(Setup(data=tmp_path / "data", program=program), breaks, probes=2))
    check(outcome)
    assert outcome.episode.refused == outcome.episode.asked


def test_a_service_without_visitors_notices_that_its_disk_was_mended(tmp_path: Path) -> None:
    outcome = asyncio.run(endure(Setup(data=tmp_path / "data"), [limited], visitors=0))
    check(outcome)
    assert outcome.episode.refused == outcome.episode.asked


def test_a_file_system_may_be_full_to_the_last_block(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as disk:
        if disk is None:
            pytest.skip("no small file system here: only root may mount one")
        check(asyncio.run(endure(Setup(data=disk / "data"), [filled(disk)])))
