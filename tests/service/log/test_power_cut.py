"""A power cut loses nothing that was acknowledged, and the test of it sees when one does."""

import random

import pytest

from rbmle.service.log import sqlite as sqlite_file
from tests.contract.log_power_cut import Content, sectors, total

SEEDS = range(40)  # `python -m tests.contract.log_power_cut` takes a thousand


def test_a_power_cut_loses_nothing_and_damages_nothing() -> None:
    outcome = total(SEEDS, "FULL")
    assert outcome.acknowledged > 500
    assert outcome.lost == 0
    assert outcome.problems == ()


def test_a_log_that_syncs_too_rarely_is_caught() -> None:
    outcome = total(SEEDS, "NORMAL")
    assert outcome.lost > 50
    assert outcome.problems == ()  # it forgets, and is never wrong


def test_a_log_that_shows_what_a_killed_process_had_not_synced_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite_file, "sync_readable", lambda connection: None)
    assert total(SEEDS, "FULL").lost > 0


def test_writes_are_torn_at_sectors() -> None:
    assert sectors(500, bytes(30)) == [(500, bytes(12)), (512, bytes(18))]
    assert sectors(512, bytes(512)) == [(512, bytes(512))]
    assert sectors(0, b"") == []


def test_a_disk_keeps_what_was_synced_and_any_of_the_rest() -> None:
    content = Content()
    content.changes += [(0, b"a" * 1024), (1024, b"b" * 1024)]
    content.sync()
    content.changes += [(0, b"c" * 1024), (1024, None)]
    left = {content.left(random.Random(seed)) for seed in range(50)}
    assert {len(image) for image in left} == {1024, 2048}
    assert {b"a" * 1024 + b"b" * 1024, b"c" * 1024} < left
    assert any(b"a" in image and b"c" in image for image in left)
