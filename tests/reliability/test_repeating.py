"""A request that is sent ten times is one request."""

import asyncio
from pathlib import Path

from tests.reliability.repeating import differences, telling


def test_log_and_model_are_as_if_each_request_was_sent_once(tmp_path: Path) -> None:
    assert asyncio.run(differences(tmp_path, telling(rounds=2, events=10))) == []
