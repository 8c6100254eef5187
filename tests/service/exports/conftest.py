"""A folder of a service, to be exported."""

from contextlib import closing
from pathlib import Path

import pytest

from rbmle.service.log.records import Modelled
from rbmle.service.log.sqlite import SQLiteLog
from tests.service.exports.samples import OVER, USUAL, configured, decided, rewarded, tell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a service with a rewarded event, one without a reward, and one pending."""
    folder = tmp_path / "data"
    with closing(SQLiteLog(folder / "log.db")) as log:
        tell(log, (0, "", Modelled(settings={"seed": 0})), configured(USUAL))
        tell(log, (1, "e", decided()), (2, "e", rewarded(1.0)), (3, "f", decided()))
        tell(log, (OVER, "g", decided()), (OVER, "g", rewarded(1.0)))
    return folder
