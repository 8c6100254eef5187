"""Parts of a service are killed while the rest goes on; the long form is tests.reliability.parts."""

import asyncio
from pathlib import Path

import pytest

from tests.reliability.databases import NONE_HERE, database
from tests.reliability.parts import survive_parts
from tests.reliability.running import Setup


def test_front_end_and_learner_are_killed_beside_a_log_in_a_file(tmp_path: Path) -> None:
    outcome = asyncio.run(survive_parts(Setup(data=tmp_path / "data"), kills=3, events=200))
    assert outcome.verdict.is_clean, outcome


def test_two_front_ends_and_a_standby_share_a_log_in_postgresql(tmp_path: Path) -> None:
    with database() as server:
        if server is None:
            pytest.skip(NONE_HERE)
        setup = Setup(data=tmp_path / "data", log=server.server.url("killed"), workers=2)
        outcome = asyncio.run(survive_parts(setup, kills=2, events=200, has_standby=True))
    assert outcome.verdict.is_clean, outcome
