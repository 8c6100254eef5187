"""What is wrong with a log is found, and said."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rbmle.service.exports.checks
import rbmle.service.exports.export
from rbmle.service.exports.checks import check_log
from rbmle.service.exports.export import export
from rbmle.service.log import LogDamaged, Row
from rbmle.service.log.base import Log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import Activated, Configured, Ticked
from tests.service.exports.samples import OVER, START, decided, kept, play, rewarded, run, tell


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
    found = check_log(log)
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
    found = check_log(kept((0, "e", decided(plays=[play(**changes)]))))
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
    found = check_log(log)
    assert found.problems == []
    assert (found.kinds["rewarded"], found.kinds["activated"]) == (5, 2)
    counts = found.counts
    assert (counts.joined, counts.duplicate, counts.late, counts.orphan) == (1, 1, 1, 1)
    assert (found.unknown, found.early) == (1, 1)


def test_a_decision_before_any_model_is_a_problem() -> None:
    log = MemoryLog()
    tell(log, (0, "e", decided()))
    assert check_log(log).problems == ["record 1 is a decision, but no model was made before it"]


def test_the_newest_checkpoint_of_the_folder_is_checked_against_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(log: Log, folder: Path | None) -> list[str]:
        return [f"{log.last()} records in {folder}"]

    monkeypatch.setattr(rbmle.service.exports.checks, "check_newest", check)
    result = run("verify", "--data", folder)
    assert result.exit_code == 1
    assert result.output.strip() == f"7 records in {folder}"
