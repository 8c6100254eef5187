"""A learner is stopped, and the clock jumps; the long form is tests.reliability.pausing."""

import asyncio
from pathlib import Path

import pytest

from tests.reliability.databases import NONE_HERE, database
from tests.reliability.pausing import survive_pauses
from tests.reliability.running import SHORTEST_WAIT, Setup


def test_learners_that_are_stopped_are_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    setup = Setup(data=tmp_path / "data", wait=SHORTEST_WAIT, settle="deadline")
    outcome = asyncio.run(survive_pauses(setup, pauses=2))
    assert outcome.verdict.is_clean, outcome
    assert (outcome.woken, outcome.jumps) == (1, 2)


def test_a_standby_takes_over_from_a_stopped_learner_beside_postgresql(tmp_path: Path) -> None:
    with database() as server:
        if server is None:
            pytest.skip(NONE_HERE)
        address = server.server.url("killed")
        setup = Setup(data=tmp_path / "data", log=address, workers=2, wait=SHORTEST_WAIT)
        outcome = asyncio.run(survive_pauses(setup, pauses=2, has_standby=True))
    assert outcome.verdict.is_clean, outcome
