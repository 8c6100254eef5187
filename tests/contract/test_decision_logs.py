"""Every format of a log keeps the promises, and every liar is caught."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rbmle.evaluation import TableLog, open_log, write_log
from rbmle.evaluation.logs import FORMATS, DecisionLog
from rbmle.service.exports.export import ServiceLog
from tests.contract import decision_log_liars as liars
from tests.contract import decision_log_promises as promises
from tests.evaluation.samples import table
from tests.service.exports.samples import OVER, decided, kept, rewarded

BAD_LINES = {
    "csv": "too,few\n",
    "dsjson": "{\n",
    "vw": "shared | a\n0:x:1 | b\n\n",
}


@pytest.mark.parametrize("promise", promises.PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("kind", [*FORMATS, "table", "service"])
def test_a_log_keeps_its_promises(
    kind: str, promise: Callable[[DecisionLog], None], tmp_path: Path
) -> None:
    promise(_log(kind, tmp_path))


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_log_reports_bad_rows(kind: str, tmp_path: Path) -> None:
    write_log(TableLog(table()), tmp_path / f"log.{kind}")
    with (tmp_path / f"log.{kind}").open("a") as file:
        file.write(BAD_LINES[kind])
    promises.it_tells_of_bad_rows(open_log(tmp_path / f"log.{kind}"))
    promises.it_tells_of_bad_rows(TableLog(table(reward=["1", "often", "0"])))


@pytest.mark.parametrize(
    ("liar", "promise"),
    [
        (liars.OneShot, promises.it_can_be_read_again),
        (liars.Narrow, promises.it_has_the_columns_of_the_table),
        (liars.Whole, promises.it_gives_the_columns_that_are_asked_for),
        (liars.Unnumbered, promises.it_numbers_its_rows),
        (liars.Silent, promises.it_tells_of_bad_rows),
    ],
)
def test_a_liar_is_caught(liar: type[liars.Honest], promise: Callable[[DecisionLog], None]) -> None:
    assert promises.broken(promise, liar())


def test_an_honest_log_is_not_caught() -> None:
    assert not any(promises.broken(promise, liars.Honest()) for promise in promises.PROMISES)


def _log(kind: str, folder: Path) -> DecisionLog:
    """Return a log of each kind."""
    if kind == "table":
        return TableLog(table())
    if kind == "service":
        story = (
            (1, "e", decided()),
            (2, "e", rewarded(1.0)),
            (3, "f", decided()),
            (OVER, "g", decided()),
        )
        return ServiceLog(kept(*story), "log")
    write_log(TableLog(table()), folder / f"log.{kind}")
    return open_log(folder / f"log.{kind}")
