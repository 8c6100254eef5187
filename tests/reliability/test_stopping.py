"""SIGTERM ends a service soon and well, whoever is asking it."""

import asyncio
from pathlib import Path

from tests.reliability.killing import Plan
from tests.reliability.running import Setup
from tests.reliability.stopping import stop_under_load


def test_a_service_that_is_stopped_under_load_loses_nothing(tmp_path: Path) -> None:
    plan = Plan(kills=1, events=150)
    stops, outcome = asyncio.run(stop_under_load(Setup(data=tmp_path / "data"), plan))
    assert stops.are_good, stops
    assert outcome.verdict.is_clean, outcome
