"""kill -9 under load loses and doubles nothing, and the test of it sees when something is lost."""

import asyncio
from pathlib import Path

import pytest

from tests.reliability.databases import NONE_HERE, database, survive_both
from tests.reliability.evidence import folded_by, judge
from tests.reliability.killing import Plan, survive
from tests.reliability.running import SHORTEST_WAIT, Setup
from tests.reliability.visitors import Ledger

LAZY = ("-m", "tests.reliability.hasty", "0.2")  # that is sure to lose something by few kills
ONE = Plan(kills=1, events=150)
FEW = Plan(kills=2, events=200)  # `make reliability` has a hundred kills


def test_a_killed_service_loses_nothing_and_learns_nothing_twice(tmp_path: Path) -> None:
    outcome = asyncio.run(survive(Setup(data=tmp_path / "data"), FEW))
    assert outcome.verdict.is_clean, outcome
    assert outcome.verdict.rewards > 50


@pytest.mark.parametrize("settle", ["deadline", "delayed"])
def test_a_killed_service_learns_by_its_rule_to_the_byte(tmp_path: Path, settle: str) -> None:
    setup = Setup(data=tmp_path / "data", wait=SHORTEST_WAIT, settle=settle)
    outcome = asyncio.run(survive(setup, ONE))
    assert outcome.verdict.is_clean, outcome
    control = {"by another rule": folded_by("on-reward", setup.place)}
    judged = judge(setup.place, Ledger(), setup.data, control)
    assert any("by another rule" in problem for problem in judged.problems)


def test_a_service_that_acknowledges_before_the_commit_is_caught(tmp_path: Path) -> None:
    outcome = asyncio.run(survive(Setup(data=tmp_path / "data", program=LAZY), FEW))
    assert outcome.verdict.lost > 0


def test_neither_a_killed_service_nor_a_killed_postgresql_loses_anything(tmp_path: Path) -> None:
    with database() as own:
        if own is None:
            pytest.skip(NONE_HERE)
        outcome = asyncio.run(survive_both(own, tmp_path / "data", FEW))
        assert own.kills == 1
    assert outcome.verdict.is_clean, outcome
