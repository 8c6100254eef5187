"""What operators change at the same moment on two front ends is changed, all of it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rbmle.service.api.commits import Commits
from rbmle.service.api.operations import Operations
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.log import LOG_FILE, open_log, open_publications
from rbmle.service.settings import ServiceConfiguration
from tests.services import PATIENCE, running, small_start

CHANGES, STEP = 5, 1 / 64
Change = Callable[[ServiceConfiguration], ServiceConfiguration]


def test_concurrent_changes_of_the_configuration_are_all_kept(tmp_path: Path) -> None:
    address = str(tmp_path / LOG_FILE)
    with (
        running(small_start(tmp_path)) as service,
        FrontEnd(open_log(address), open_publications(address), tmp_path) as other,
    ):
        asyncio.run(_change_both(service, other))
        found, _ = other.written_configuration()
        first = ServiceConfiguration()
        assert found.default_reward == first.default_reward + CHANGES * STEP
        assert found.model_retrain_days == first.model_retrain_days + CHANGES


async def _change_both(service: FrontEnd, other: FrontEnd) -> None:
    """Count up one setting on one front end and another one on the other, at the same time."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_count(service, _worth_more))
        group.create_task(_count(other, _retrained))


async def _count(front_end: FrontEnd, changed: Change) -> None:
    operations = Operations(front_end, Commits(front_end.writer, PATIENCE))
    for _ in range(CHANGES):
        await operations.configure(changed)


def _worth_more(before: ServiceConfiguration) -> ServiceConfiguration:
    return replace(before, default_reward=before.default_reward + STEP)


def _retrained(before: ServiceConfiguration) -> ServiceConfiguration:
    return replace(before, model_retrain_days=before.model_retrain_days + 1)
