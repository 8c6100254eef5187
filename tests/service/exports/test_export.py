"""A log as a file: one row for each decision with the reward that counts, and logs that make no sense."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rbmle.service.exports.checks
import rbmle.service.exports.parquet
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.service.configuration import Aggregation, ServiceConfiguration, Settle
from rbmle.service.exports.checks import survey
from rbmle.service.exports.export import Exported, export, format_of
from rbmle.service.log import LogDamaged, LogUnavailable, Row, Stored, open_log
from rbmle.service.log.base import Log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    Activated,
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    Record,
    Reset,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
    packed,
)
from rbmle.service.log.sqlite import SQLiteLog
from tests.contract.log_server import Server, programs

WAIT = 600_000
START = 1_700_000_000_123  # milliseconds since the epoch
OVER = WAIT + 877  # when it is over for an event of START: at a whole second
USUAL = ServiceConfiguration(reward_wait_time=timedelta(milliseconds=WAIT), default_reward=-0.5)
SUMS = replace(USUAL, reward_aggregation=Aggregation.SUM)
RBMLE = [sys.executable, "-c", "from rbmle.cli import main; main()"]

Told = tuple[int, str, Record]


def play(**changes: Any) -> Play:
    usual: dict[str, Any] = {"eligible": [0, 1], "probabilities": [0.2, 0.8], "chosen": 1}
    return Play(**usual | changes)


def decided(**changes: Any) -> Decided:
    usual: dict[str, Any] = {
        "context": packed([{"user": {"age": 31}}]),
        "actions": [
            OfferedAction(id="tea", features=packed([{"price": 2.5}])),
            OfferedAction(id="air"),
        ],
        "plays": [play()],
        "digest": "d",
        "learned": 7,
    }
    return Decided(**usual | changes)


def rewarded(value: float, slot: str = "") -> Rewarded:
    return Rewarded(values={slot: value})


def configured(configuration: ServiceConfiguration) -> Told:
    return (0, "", Configured(configuration=configuration.to_json()))


def tell(log: Log, *story: Told) -> None:
    log.append([Row(kind_of(r), event, None, START + time, encoded(r)) for time, event, r in story])


def kept(*story: Told, configuration: ServiceConfiguration = USUAL) -> MemoryLog:
    log = MemoryLog()
    tell(log, (0, "", Modelled(settings={"seed": 0})), configured(configuration), *story)
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a service with a rewarded event, one without a reward, and one pending."""
    folder = tmp_path / "data"
    with closing(SQLiteLog(folder / "log.db")) as log:
        tell(log, (0, "", Modelled(settings={"seed": 0})), configured(USUAL))
        tell(log, (1, "e", decided()), (2, "e", rewarded(1.0)), (3, "f", decided()))
        tell(log, (OVER, "g", decided()), (OVER, "g", rewarded(1.0)))
    return folder


def table(log: Log, folder: Path) -> list[dict[str, Any]]:
    export(log, folder / "out.parquet", "parquet")
    rows: list[dict[str, Any]] = pq.read_table(folder / "out.parquet").to_pylist()
    return rows


def lines(log: Log, folder: Path) -> list[dict[str, Any]]:
    export(log, folder / "out.dsjson", "dsjson")
    return [json.loads(line) for line in (folder / "out.dsjson").read_text().splitlines()]


def rewards(log: Log, folder: Path) -> dict[str, tuple[float | None, float | None]]:
    return {r["event_id"]: (r["reward"], r["final_reward"]) for r in table(log, folder)}


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["log", *map(str, arguments)], env={"COLUMNS": "200"})


def failure(*arguments: str | Path) -> str:
    """Return the one line of a command that ends with exit code 2."""
    command = [*RBMLE, "log", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_row_says_all_there_is_to_know_of_a_decision(tmp_path: Path) -> None:
    log = kept((0, "e", decided()), (5, "e", rewarded(0.5)), (OVER, "", Ticked()))
    assert table(log, tmp_path) == [
        {
            "event_id": "e",
            "time": moment(START),
            "context": '[{"user":{"age":31}}]',
            "actions": '[{"id":"tea","features":[{"price":2.5}]},{"id":"air","features":[]}]',
            "arm": "air",
            "propensity": 0.8,
            "reward": 0.5,
            "arm_index": 1,
            "eligible": ["tea", "air"],
            "probabilities": [0.2, 0.8],
            "slot": "",
            "slot_features": "[]",
            "baseline": "tea",
            "preferred": None,
            "mode": "Online",
            "deferred": False,
            "activated": True,
            "reward_time": moment(START + 5),
            "final_reward": 0.5,
            "learned": 7,
            "seq": 3,
        }
    ]


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def test_the_earliest_reward_counts_or_the_sum_as_configured_at_that_time(tmp_path: Path) -> None:
    log = kept(
        (0, "first", decided()),
        (1, "first", rewarded(0.25)),
        (2, "first", rewarded(0.5)),
        configured(SUMS),
        (3, "sum", decided()),
        (4, "sum", rewarded(0.25)),
        (5, "sum", rewarded(0.5)),
        (1_000 + OVER, "", Ticked()),
    )
    assert rewards(log, tmp_path) == {"first": (0.25, 0.25), "sum": (0.75, 0.75)}


def test_a_reward_counts_within_the_wait_and_two_minutes_before_the_rank(tmp_path: Path) -> None:
    log = kept(
        (0, "early", rewarded(0.25)),
        (0, "too early", rewarded(0.25)),
        (119_999, "early", decided()),
        (120_000, "too early", decided()),
        (120_000, "just in time", decided()),
        (120_000, "late", decided()),
        (120_000 + OVER - 1, "just in time", rewarded(0.5)),
        (120_000 + OVER, "late", rewarded(0.5)),
    )
    assert rewards(log, tmp_path) == {
        "early": (0.25, 0.25),
        "too early": (None, -0.5),
        "just in time": (0.5, 0.5),
        "late": (None, -0.5),
    }


def test_without_a_configuration_the_usual_one_holds(tmp_path: Path) -> None:
    log = MemoryLog()
    usual = ServiceConfiguration().wait_milliseconds
    tell(log, (0, "e", decided()), (usual - 1, "e", rewarded(1.0)), (usual - 1, "f", decided()))
    tell(log, (2 * usual + OVER - WAIT, "f", rewarded(1.0)))
    assert rewards(log, tmp_path) == {"e": (1.0, 1.0), "f": (None, 0.0)}


def test_a_deferred_event_has_a_reward_only_if_it_was_shown(tmp_path: Path) -> None:
    log = kept(
        (0, "shown", decided(deferred=True)),
        (0, "hidden", decided(deferred=True)),
        (1, "shown", rewarded(1.0)),
        (1, "hidden", rewarded(1.0)),
        (2, "shown", Activated()),
        (OVER, "pending", decided(deferred=True)),
        (OVER, "pending", rewarded(1.0)),
    )
    assert rewards(log, tmp_path) == {"shown": (1.0, 1.0), "hidden": (None, None)}
    activated = {r["event_id"]: r["activated"] for r in table(log, tmp_path)}
    assert activated == {"shown": True, "hidden": False}


@pytest.mark.parametrize("format", ["parquet", "dsjson"])
@pytest.mark.parametrize("configuration", [USUAL, SUMS])
def test_what_is_pending_is_counted_and_not_written(
    configuration: ServiceConfiguration, format: str, tmp_path: Path
) -> None:
    log = kept(
        (0, "settled", decided()),
        (1, "settled", rewarded(0.25)),
        (OVER, "clicked", decided()),
        (OVER, "not yet", decided()),
        (OVER + 1, "clicked", rewarded(1.0)),
        configuration=configuration,
    )
    assert export(log, tmp_path / "out", format) == Exported(rows=1, pending=2)
    assert rewards(log, tmp_path) == {"settled": (0.25, 0.25)}
    assert [line["EventId"] for line in lines(log, tmp_path)] == ["settled"]
    assert survey(log).pending == 2


def test_on_reward_a_slot_is_written_when_it_has_one_and_its_event_is_pending(
    tmp_path: Path,
) -> None:
    plays = [play(slot="top"), play(slot="side")]
    log = kept(
        (0, "e", decided(plays=plays)),
        (1, "e", rewarded(1.0, "side")),
        configuration=replace(USUAL, settle=Settle.ON_REWARD),
    )
    assert [row["slot"] for row in table(log, tmp_path)] == ["side"]
    assert export(log, tmp_path / "out", "dsjson").pending == 1


def test_a_reset_leaves_every_decision_in_the_table_without_a_reward(tmp_path: Path) -> None:
    log = kept(
        (0, "e", decided()),
        (0, "f", decided()),
        (1, "f", rewarded(1.0)),
        (1, "", Reset()),
        (2, "e", rewarded(1.0)),
        (OVER, "", Ticked()),
    )
    assert rewards(log, tmp_path) == {"e": (None, None), "f": (None, None)}
    assert not any("_label_cost" in line for line in lines(log, tmp_path))


def test_an_event_that_is_logged_only_has_its_reward(tmp_path: Path) -> None:
    log = kept((0, "e", decided(mode="LoggingOnly")), (1, "e", rewarded(1.0)), (OVER, "", Ticked()))
    assert rewards(log, tmp_path) == {"e": (1.0, 1.0)}


def test_each_slot_is_a_row_with_a_reward_of_its_own(tmp_path: Path) -> None:
    plays = [
        play(slot="top", features=packed([{"width": 3}])),
        play(slot="side", eligible=[0], probabilities=[1.0], chosen=0),
    ]
    log = kept(
        (0, "e", decided(plays=plays)), (1, "e", rewarded(1.0, "side")), (OVER, "", Ticked())
    )
    found = {r["slot"]: (r["arm"], r["reward"], r["slot_features"]) for r in table(log, tmp_path)}
    assert found == {"top": ("air", None, '[{"width":3}]'), "side": ("tea", 1.0, "[]")}
    top, side = lines(log, tmp_path)
    assert (side["Slot"], side["a"], side["_label_cost"]) == ("side", [1], -1.0)
    assert (top["Slot"], top["a"], top["_label_cost"]) == ("top", [2, 1], 0.5)
    assert top["c"]["FromUrl"] == [{"user": {"age": 31}}, {"width": 3}]


@pytest.mark.parametrize("limits", [{"GROUP_ROWS": 3}, {"GROUP_CHARACTERS": 200}])
def test_row_groups_are_written_as_they_fill(
    limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(rbmle.service.exports.parquet, name, value)
    log = kept(*[(t, f"e{t}", decided()) for t in range(8)], (OVER, "", Ticked()))
    assert export(log, tmp_path / "out.parquet", "parquet").rows == 8
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert file.num_row_groups >= 3
    assert file.read()["event_id"].to_pylist() == [f"e{t}" for t in range(8)]


def test_a_log_without_decisions_is_an_empty_table(tmp_path: Path) -> None:
    assert table(MemoryLog(), tmp_path) == []
    assert pq.read_schema(tmp_path / "out.parquet").names[0] == "event_id"
    assert lines(MemoryLog(), tmp_path) == []


def test_a_line_of_dsjson_is_as_vowpal_wabbit_documents_it(tmp_path: Path) -> None:
    log = kept((0, "e", decided()), (5, "e", rewarded(0.5)), (OVER, "", Ticked()))
    assert lines(log, tmp_path) == [
        {
            "_label_cost": -0.5,
            "_label_probability": 0.8,
            "_label_Action": 2,
            "_labelIndex": 1,
            "o": [{"EventId": "e", "v": 0.5}],
            "Timestamp": "2023-11-14T22:13:20.123Z",
            "Version": "1",
            "EventId": "e",
            "a": [2, 1],
            "c": {
                "FromUrl": [{"user": {"age": 31}}],
                "_multi": [
                    {"_tag": "tea", "i": {"constant": 1, "id": "tea"}, "j": [{"price": 2.5}]},
                    {"_tag": "air", "i": {"constant": 1, "id": "air"}, "j": []},
                ],
            },
            "p": [0.8, 0.2],
            "VWState": {"m": "7"},
        }
    ]


def test_a_label_of_dsjson_is_what_was_learned_and_none_if_nothing_was(tmp_path: Path) -> None:
    log = kept(
        (0, "default", decided()),
        (0, "zero", decided()),
        (0, "hidden", decided(deferred=True)),
        (1, "zero", rewarded(0.0)),
        (OVER, "pending", decided()),
    )
    found = {line["EventId"]: line for line in lines(log, tmp_path)}
    assert found["default"]["_label_cost"] == 0.5
    assert str(found["zero"]["_label_cost"]) == "0.0"
    assert {event for event, line in found.items() if "_label_cost" in line} == {"default", "zero"}
    assert {event for event, line in found.items() if "o" in line} == {"zero"}


def test_excluded_actions_are_no_actions_of_dsjson(tmp_path: Path) -> None:
    three = [OfferedAction(id=id) for id in "abc"]
    chosen = play(eligible=[0, 2], probabilities=[0.25, 0.75], chosen=2)
    story = [(0, "e", decided(actions=three, plays=[chosen])), (OVER, "", Ticked())]
    (line,) = lines(kept(*story), tmp_path)
    assert [action["_tag"] for action in line["c"]["_multi"]] == ["a", "c"]
    assert (line["a"], line["p"]) == ([2, 1], [0.75, 0.25])


ODD = [
    {
        "é": {"x": 1, "_tag": "no"},
        "": {"": 2},
        "a b": "c|d:e",
        "ü": [1, 2.5],
        "_label": 1,
        "_multi": [3],
        "null": None,
        "no": False,
        "large": 1e15,
        "line": "a\nb",
    }
]


def test_names_that_vowpal_wabbit_cannot_read_are_changed_or_left_out(tmp_path: Path) -> None:
    log = kept((0, "e", decided(context=packed(ODD))), (OVER, "", Ticked()))
    (line,) = lines(log, tmp_path)
    (shared,) = line["c"]["FromUrl"]
    assert shared["né"] == {"x": 1}
    assert (shared["n"], shared["nü"]) == ({"": 2}, [1, 2.5])
    assert set(shared) == {"né", "n", "nü", "a b", "null", "no", "large", "line"}


READS = """
import sys
from vowpalwabbit import Workspace
vw = Workspace(f"--dsjson --cb_explore_adf --strict_parse -d {sys.argv[1]} --no_stdin", enable_logging=True)
vw.finish()
print("".join(vw.get_log()))
"""


def test_vowpal_wabbit_reads_dsjson(tmp_path: Path) -> None:
    python = os.environ.get("RBMLE_VW_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("no vowpalwabbit here: pip install vowpalwabbit, or set RBMLE_VW_PYTHON")
    odd = packed(ODD)
    strange = decided(context=odd, actions=[OfferedAction(id='é "|:', features=odd)] * 2)
    plays = [play(slot=slot, features=packed([{"width": 3}])) for slot in ("top", "side")]
    log = kept(
        (0, "plain", decided()),
        (0, "odd/é \u2028\"'", strange),
        (0, "slots", decided(plays=plays)),
        (0, "empty", decided(context=[])),
        (0, "hidden", decided(deferred=True)),
        (1, "plain", rewarded(1.0)),
        (2, "slots", rewarded(0.5, "top")),
        (OVER, "", Ticked()),
    )
    export(log, tmp_path / "out.dsjson", "dsjson")
    command = [python, "-c", READS, str(tmp_path / "out.dsjson")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "number of examples = 6" in done.stdout
    assert "error" not in done.stdout.lower()


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.parquet", "parquet"), ("a.dsjson", "dsjson"), ("a.JSON", "dsjson"), ("a.b", None)],
)
def test_a_suffix_tells_the_format(name: str, format: str | None) -> None:
    if format is None:
        with pytest.raises(SettingError, match=r"'a\.b' does not tell its format"):
            format_of(Path(name))
        assert format_of(Path(name), "parquet") == "parquet"
    else:
        assert format_of(Path(name)) == format


def test_the_commands_export_and_verify_a_folder(folder: Path, tmp_path: Path) -> None:
    result = run("export", "--data", folder, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    assert f"2 decisions are in {tmp_path / 'out.parquet'}." in result.output
    assert pq.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == [1.0, None]
    again = ("--out", tmp_path / "out", "--format", "dsjson")
    result = run("export", "--log", f"sqlite:///{folder}/log.db", *again)
    assert result.exit_code == 0, result.output
    assert "left out until they are settled: 1." in result.output
    assert len((tmp_path / "out").read_text().splitlines()) == 2
    result = run("verify", "--data", folder)
    assert result.exit_code == 0, result.output
    assert "The log is sound." in result.output
    for what in ("decided records", "slots with a reward", "rewards without an event"):
        assert what in result.output


def test_a_log_in_postgresql_is_exported_and_verified(tmp_path: Path) -> None:
    bin = programs()
    if bin is None:
        pytest.skip("no PostgreSQL here: initdb is neither on PATH nor in /usr/lib/postgresql")
    with closing_server(Server(bin)) as server:
        url = server.url("public")
        with closing(open_log(url)) as log:
            tell(log, (0, "", Modelled(settings={"seed": 0})), configured(USUAL))
            tell(log, (1, "e", decided()), (2, "e", rewarded(1.0)), (3, "f", decided()))
            tell(log, (OVER, "", Ticked()))
            result = run("export", "--log", url, "--out", tmp_path / "out.parquet")
            assert result.exit_code == 0, result.output
            result = run("verify", "--log", url)
            assert result.exit_code == 0, result.output
    assert pq.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == [1.0, None]


@contextmanager
def closing_server(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.remove()


def test_a_log_is_exported_beside_a_service_that_writes(folder: Path, tmp_path: Path) -> None:
    with (
        closing(SQLiteLog(folder / "log.db")) as writer,
        closing(open_log(str(folder / "log.db"), is_read_only=True)) as reader,
    ):

        def write(seq: int) -> None:
            late = 2 * OVER + seq
            tell(writer, (late, f"h{seq}", decided()), (late, "g", rewarded(1.0)))

        before = Exported(rows=2, pending=1)
        assert export(reader, tmp_path / "out.parquet", "parquet", write) == before
        assert pq.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == [1.0, None]
        after = Exported(rows=3, pending=7)
        assert export(reader, tmp_path / "out.parquet", "parquet") == after
        assert writer.verify() == []


@pytest.mark.parametrize("format", ["parquet", "dsjson"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, LogUnavailable("the disk is gone")])
def test_what_is_interrupted_leaves_nothing_half_written(
    format: str, error: BaseException, tmp_path: Path
) -> None:
    def stop(seq: int) -> None:
        if seq == 4:
            raise error

    before = tmp_path / f"old.{format}"
    before.write_text("old")
    log = kept((0, "e", decided()), (1, "e", rewarded(1.0)), (2, "f", decided()))
    for path in (before, tmp_path / f"new.{format}"):
        with pytest.raises(type(error) if isinstance(error, Exception) else KeyboardInterrupt):
            export(log, path, format, stop)
    assert [path.name for path in tmp_path.iterdir()] == [before.name]
    assert before.read_text() == "old"


def test_ctrl_c_is_told_in_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: SQLiteLog, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        raise KeyboardInterrupt

    monkeypatch.setattr(SQLiteLog, "read", interrupted)
    result = run("export", "--data", folder, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 130
    assert f"Stopped. {tmp_path / 'out.parquet'} was not written." in result.output
    assert not (tmp_path / "out.parquet").exists()
    result = run("verify", "--data", folder)
    assert result.exit_code == 130
    assert "Stopped" in result.output


def test_mistakes_get_one_line_and_exit_code_2(folder: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out.parquet")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "log.db").write_text("It was a dark and stormy night. " * 100)
    assert "there is no log in" in failure("verify", "--data", tmp_path)
    assert "is not an SQLite file" in failure("verify", "--data", tmp_path / "text")
    assert "give --data FOLDER or --log URL" in failure("export", *out)
    assert "--log cannot be used" in failure("export", "--log", "mysql://host/log", *out)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("data/log.db", "belongs to the log itself"),
        ("data/log.db-wal", "belongs to the log itself"),
        ("data", "is a folder"),
        ("data/log.db/out.parquet", "cannot be written"),
    ],
)
def test_an_export_goes_to_no_place_that_is_taken(folder: Path, name: str, message: str) -> None:
    more = ("--out", folder.parent / name, "--format", "parquet")
    result = run("export", "--data", folder, *more)
    assert isinstance(result.exception, SettingError)
    assert message in str(result.exception)
    assert run("verify", "--data", folder).exit_code == 0


def test_a_format_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    more = ("--out", tmp_path / "out.csv", "--format", "csv")
    result = run("export", "--data", folder, *more)
    assert "there is no format 'csv'; there are parquet, dsjson" in str(result.exception)


def test_a_damaged_record_is_a_problem_and_is_not_exported(folder: Path, tmp_path: Path) -> None:
    import apsw

    with closing(apsw.Connection(str(folder / "log.db"))) as connection:
        connection.execute("UPDATE log SET payload = X'7B7D' WHERE seq IN (3, 4)")
    result = run("verify", "--data", folder)
    assert result.exit_code == 1
    assert len([line for line in result.output.splitlines() if "is damaged" in line]) == 2
    result = run("export", "--data", folder, "--out", tmp_path / "out.parquet")
    assert isinstance(result.exception, LogDamaged)
    assert not (tmp_path / "out.parquet").exists()


def test_records_that_cannot_be_read_are_problems_and_the_rest_is_looked_at(
    tmp_path: Path,
) -> None:
    log = kept((0, "e", decided()))
    log.append([Row("decided", "f", None, START, b"{}"), Row("dreamt", "g", None, START, b"{}")])
    tell(log, (1, "", Configured(configuration={"default_reward": 3.0})), (1, "e", rewarded(1.0)))
    tell(log, (OVER, "", Ticked()))
    found = survey(log)
    assert [problem.split(":")[0] for problem in found.problems] == [
        "record 4 of the log, 'decided', cannot be read",
        "record 5 of the log, 'dreamt', cannot be read",
        "the default reward is 3.0; it must be from -1 to 1",
    ]
    assert found.counts.joined == 1
    for format in ("parquet", "dsjson"):
        with pytest.raises(LogDamaged, match="record 4 of the log"):
            export(log, tmp_path / "out", format)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"probabilities": [0.2, 0.7]}, "the probabilities sum to 0.9, not to 1"),
        ({"probabilities": [1.0]}, "there are 1 probabilities for 2 eligible actions"),
        ({"probabilities": [1.0, 0.0]}, "action 1 was chosen, but its probability is 0"),
        ({"probabilities": [-0.5, 1.5]}, "a probability is not between 0 and 1"),
        ({"eligible": [0, 2]}, "there is no action 2 among 2"),
        ({"eligible": [0], "probabilities": [1.0]}, "but only [0] were eligible"),
    ],
)
def test_a_choice_that_cannot_be_is_a_problem(changes: dict[str, Any], problem: str) -> None:
    found = survey(kept((0, "e", decided(plays=[play(**changes)]))))
    assert any(line.startswith("record 3, event 'e': ") for line in found.problems)
    assert problem in "\n".join(found.problems)


def test_a_survey_counts_what_refers_to_nothing() -> None:
    log = kept(
        (0, "e", decided()),
        (1, "e", rewarded(1.0)),
        (1, "e", rewarded(1.0)),
        (2, "nobody", rewarded(1.0)),
        (3, "nobody", Activated()),
        (3, "e", Activated()),
        (OVER, "e", rewarded(1.0)),
        (OVER, "soon", rewarded(1.0)),
    )
    found = survey(log)
    assert found.problems == []
    assert (found.kinds["rewarded"], found.kinds["activated"]) == (5, 2)
    counts = found.counts
    assert (counts.joined, counts.duplicate, counts.late, counts.orphan) == (1, 1, 1, 1)
    assert (found.unknown, found.early) == (1, 1)


def test_a_decision_before_any_model_is_a_problem() -> None:
    log = MemoryLog()
    tell(log, (0, "e", decided()))
    assert survey(log).problems == ["record 1 is a decision, but no model was made before it"]


def test_many_problems_are_cut_short(folder: Path) -> None:
    with closing(SQLiteLog(folder / "log.db")) as log:
        wrong = decided(plays=[play(probabilities=[0.5, 0.4])])
        tell(log, *[(t, f"g{t}", wrong) for t in range(103)])
    result = run("verify", "--data", folder)
    assert result.exit_code == 1
    assert "There are 3 more problems." in result.output


def test_further_checks_are_asked_with_the_log_and_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(log: Log, folder: Path | None) -> list[str]:
        return [f"{log.last()} records in {folder}"]

    monkeypatch.setattr(rbmle.service.exports.checks, "CHECKS", (check,))
    result = run("verify", "--data", folder)
    assert result.exit_code == 1
    assert result.output.strip() == f"7 records in {folder}"
