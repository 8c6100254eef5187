"""Export and verification of a log, by function and by command."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rbmle.core.errors import SettingError
from rbmle.evaluation.logs import format_of
from rbmle.evaluation.results import LogFileError
from rbmle.service.exports.export import SUFFIXES, Exported, export
from rbmle.service.log import LogUnavailable, Stored, open_log
from rbmle.service.log.records import Modelled, Ticked
from rbmle.service.log.sqlite import SQLiteLog
from tests.contract.log_server import Server
from tests.service.exports.samples import (
    OVER,
    USUAL,
    configured,
    decided,
    kept,
    play,
    rewarded,
    run,
    tell,
)

RBMLE = [sys.executable, "-c", "from rbmle.cli import main; main()"]


def failure(*arguments: str | Path) -> str:
    """Return the one line of a command that ends with exit code 2."""
    command = [*RBMLE, "log", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.parquet", "parquet"), ("a.dsjson", "dsjson"), ("a.JSON", "dsjson"), ("a.b", None)],
)
def test_a_suffix_tells_the_format(name: str, format: str | None) -> None:
    if format is None:
        with pytest.raises(LogFileError, match=r"'a\.b' does not show its format"):
            format_of(Path(name), None, SUFFIXES)
        assert format_of(Path(name), "parquet", SUFFIXES) == "parquet"
    else:
        assert format_of(Path(name), None, SUFFIXES) == format


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


def test_a_log_in_postgresql_is_exported_and_verified(server: Server, tmp_path: Path) -> None:
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


def test_many_problems_are_cut_short(folder: Path) -> None:
    with closing(SQLiteLog(folder / "log.db")) as log:
        wrong = decided(plays=[play(probabilities=[0.5, 0.4])])
        tell(log, *[(t, f"g{t}", wrong) for t in range(103)])
    result = run("verify", "--data", folder)
    assert result.exit_code == 1
    assert "There are 3 more problems." in result.output
