"""The table of decisions in Parquet."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import rbmle.service.exports.checks
import rbmle.service.exports.export
from rbmle.evaluation.logs import LogReading, open_log
from rbmle.service.exports.export import ServiceLog, export
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import Assignment, Ticked
from tests.service.exports.samples import OVER, START, decided, kept, lines, rewarded, table


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
            "holdout": False,
            "unit": None,
            "reward_time": moment(START + 5),
            "final_reward": 0.5,
            "learned": 7,
            "seq": 3,
        }
    ]


def test_the_holdout_is_marked_and_left_out_of_what_policies_are_judged_on(tmp_path: Path) -> None:
    held = Assignment(share=0.1, unit="00" * 8, is_held=True)
    log = kept((0, "e", decided()), (1, "h", decided(assignment=held)), (OVER, "", Ticked()))
    rows = table(log, tmp_path)
    assert [(row["event_id"], row["holdout"], row["unit"]) for row in rows] == [
        ("e", False, None),
        ("h", True, "00" * 8),
    ]
    whole = tmp_path / "whole.parquet"
    assert export(log, whole, "parquet").rows == 2
    for judged in (ServiceLog(log, "the log"), open_log(whole)):
        batches = list(judged.batches(LogReading()))
        assert [id for batch in batches for id in batch.table["event_id"].to_pylist()] == ["e"]
    assert export(log, tmp_path / "out.dsjson", "dsjson").rows == 1


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("limits", [{"GROUP_ROWS": 3}, {"GROUP_CHARACTERS": 200}])
def test_row_groups_are_written_as_they_fill(
    limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(rbmle.service.exports.export, name, value)
    log = kept(*[(t, f"e{t}", decided()) for t in range(8)], (OVER, "", Ticked()))
    assert export(log, tmp_path / "out.parquet", "parquet").rows == 8
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert file.num_row_groups >= 3
    assert file.read()["event_id"].to_pylist() == [f"e{t}" for t in range(8)]


def test_a_log_without_decisions_is_an_empty_table(tmp_path: Path) -> None:
    assert table(MemoryLog(), tmp_path) == []
    assert pq.read_schema(tmp_path / "out.parquet").names[0] == "event_id"
    assert lines(MemoryLog(), tmp_path) == []
