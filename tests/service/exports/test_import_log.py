"""A service begins with decisions that another system has made."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.evaluation.logs import LogReading, TableLog
from rbmle.evaluation.results import LogFileError
from rbmle.service.exports.import_log import import_decisions
from rbmle.service.exports.rows import SettledRows
from rbmle.service.log import LOG_FILE, open_log
from tests.services import learned, running, small_start

BEGUN = datetime(2024, 10, 1, 12, tzinfo=UTC)
ACTIONS = json.dumps(
    [
        {"id": "tea", "features": {"hot": True}},
        {"id": "juice", "features": [{"hot": False}]},
        "none",
    ]
)


def rows(n: int = 3, **changed: Any) -> dict[str, list[Any]]:
    """Return some decisions by a system that plays tea with probability 0.6; every second one paid."""
    found: dict[str, list[Any]] = {
        "event_id": [f"e{i}" for i in range(n)],
        "time": [BEGUN + timedelta(seconds=i) for i in range(n)],
        "context": [json.dumps({"time": ("morning", "evening")[i % 2]}) for i in range(n)],
        "actions": [ACTIONS] * n,
        "arm": [("tea", "juice")[i % 2] for i in range(n)],
        "propensity": [(0.6, 0.3)[i % 2] for i in range(n)],
        "reward": [float(i % 2) for i in range(n)],
    }
    return found | changed


def imported(folder: Path, given: dict[str, list[Any]], **how: Any) -> int:
    reading = how.pop("reading", LogReading())
    start = small_start(folder, **how)
    return import_decisions(TableLog(given), folder, start, reading, lambda done: None)


def test_a_service_learns_what_was_decided_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert imported(folder, rows(100)) == 100
    with running(small_start(folder)) as service:
        learned(service)
        assert service.fold.bandit is not None
        assert service.fold.bandit.round == 100


def test_each_decision_is_in_the_log_with_its_time_and_reward(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    imported(folder, rows(3, reward=[0.5, None, 1.0]), configuration=None)
    log = open_log(str(folder / LOG_FILE), is_read_only=True)
    found = list(SettledRows(log, log.last()))
    log.close()
    assert [entry.stored.row.event for entry in found] == ["e0", "e1", "e2"]
    assert [entry.final_reward for entry in found] == [0.5, 0.0, 1.0]  # 0 is the default
    first = found[0]
    assert first.stored.row.time == BEGUN.timestamp() * 1_000
    assert first.propensity == 0.6
    assert first.play.probabilities == pytest.approx([0.6, 0.2, 0.2])
    assert bytes(first.decided.context) == b'[{"time": "morning"}]'
    assert [bytes(action.features) for action in first.decided.actions] == [
        b'[{"hot": true}]',
        b'[{"hot": false}]',
        b"[]",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": [None] * 3}, "row 1: it has no time"),
        ({"time": [BEGUN, BEGUN, datetime(2999, 1, 1, tzinfo=UTC)]}, "row 3: its time, 2999"),
        ({"propensity": [0.6, None, 0.6]}, "row 2: the propensity is None"),
        ({"propensity": [0.6, 0.0, 0.6]}, "row 2: the propensity is 0.0"),
        ({"event_id": ["a", "b", "a"]}, "row 3: the event 'a' is there twice"),
        ({"reward": [0.0, 3.0, 0.0]}, "row 2: the reward is 3.0"),
        (
            {"arm": ["tea", "beer", "tea"]},
            "row 2: 'beer' is not among the actions, which are tea, juice, none",
        ),
        ({"context": ["{}", "[1, 2]", "{}"]}, "row 2: Expected `object`"),
        ({"actions": ['["tea", "tea"]', ACTIONS, ACTIONS]}, "row 1: "),
    ],
)
def test_a_decision_that_no_service_made_is_told_and_nothing_is_written(
    tmp_path: Path, changed: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(LogFileError, match=message.replace("[", r"\[")):
        imported(tmp_path / "data", rows(3, **changed))
    assert not list(tmp_path.iterdir())


def test_bad_rows_are_left_out_if_asked(tmp_path: Path) -> None:
    reading = LogReading(skips_bad=True)
    given = rows(propensity=[0.6, None, 0.6])
    assert imported(tmp_path / "data", given, reading=reading) == 2
    assert reading.bad == 1
    with pytest.raises(SettingError, match="has no decision that a service could have made"):
        imported(tmp_path / "none", rows(time=[None] * 3), reading=LogReading(skips_bad=True))
    assert not (tmp_path / "none").exists()


def test_rewards_are_those_that_the_policy_can_learn_from(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match=r"row 2: the reward is -0.5; it must be from 0 to 1"):
        imported(tmp_path / "data", rows(reward=[0.0, -0.5, 1.0]), policy="neu-fast-cb")


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SettingError, match="is not empty; an import starts a new log"):
        imported(tmp_path, rows())
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_line_begins_a_service_with_an_export(tmp_path: Path) -> None:
    pytest.importorskip("pandas").DataFrame(rows(5)).to_parquet(tmp_path / "old.parquet")
    folder, runner = tmp_path / "data", CliRunner()
    done = runner.invoke(
        app, ["log", "import", str(tmp_path / "old.parquet"), "--data", str(folder)]
    )
    assert done.exit_code == 0, done.output
    assert "5 decisions are in" in done.output
    verified = runner.invoke(app, ["log", "verify", "--data", str(folder)])
    assert verified.exit_code == 0, verified.output
    again = runner.invoke(
        app, ["log", "export", "--data", str(folder), "--out", str(tmp_path / "x.dsjson")]
    )
    assert "5 decisions are in" in again.output
