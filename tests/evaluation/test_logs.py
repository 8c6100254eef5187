"""One table, read from and written to every format."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbmle.evaluation import (
    LogFileError,
    TableLog,
    from_bandit_feedback,
    open_log,
    to_bandit_feedback,
    write_log,
)
from rbmle.evaluation.logs import FORMATS, SCHEMA, DecisionLog, LogReading
from rbmle.evaluation.rounds import rounds_of
from tests.evaluation.samples import ACTIONS, CONTEXT, table

SUFFIX = {"parquet": "parquet", "csv": "csv", "dsjson": "dsjson", "vw": "vw"}


def rows(log: DecisionLog, reading: LogReading | None = None) -> list[dict[str, Any]]:
    found = [row for b in log.batches(reading or LogReading()) for row in b.table.to_pylist()]
    for row in found:
        row["context"], row["actions"] = json.loads(row["context"]), json.loads(row["actions"])
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_a_written_log_is_read_unchanged(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{SUFFIX[format]}"
    log = TableLog(table())
    assert write_log(log, path) == 3
    again, before = rows(open_log(path)), rows(log)
    if format == "vw":  # it has no ids of events
        again, before = ([{**row, "event_id": ""} for row in some] for some in (again, before))
    for row in [*again, *before]:  # an array of objects is one object in parts
        row["context"] = merged(row["context"])
    assert again == before


def merged(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for item in items for name, value in item.items()}


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    write_log(TableLog(table()), tmp_path / "log.dsjson")
    packed = tmp_path / "log.dsjson.gz"
    packed.write_bytes(gzip.compress((tmp_path / "log.dsjson").read_bytes()))
    assert len(rows(open_log(packed))) == 3
    write_log(TableLog(table()), tmp_path / "log.csv")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    assert len(rows(open_log(tmp_path / "log.csv.gz"))) == 3


def test_a_data_frame_is_a_log() -> None:
    frame = pd.DataFrame({name: table()[name].to_pylist() for name in table().column_names})
    frame["context"] = [[0.5, 1.0]] * 3
    found = rows(TableLog(frame))
    assert found[0]["context"] == [0.5, 1.0]
    assert [row["reward"] for row in found] == [1.0, 0.0, 0.5]


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(LogFileError, match=r"has no column actions, reward; a log has the columns"):
        TableLog(table(actions=None, reward=None))


def test_ids_and_propensities_may_be_missing() -> None:
    found = rows(TableLog(table(event_id=None, propensity=None)))
    assert [row["event_id"] for row in found] == ["1", "2", "3"]
    assert found[0]["propensity"] is None


def test_final_rewards_of_the_service_count() -> None:
    log = TableLog(table(reward=[1.0, None, None], final_reward=[1.0, -0.5, None]))
    reading = LogReading()
    assert [row["reward"] for row in rows(log, reading)] == [1.0, -0.5]
    assert reading.unlabelled == 1


def test_features_of_a_slot_are_part_of_the_context() -> None:
    slots = ["[]", '[{"slot": 1}]', "[]"]
    found = rows(TableLog(table(slot_features=slots, context=["[]", "[]", CONTEXT])))
    assert [row["context"] for row in found] == [[], [{"slot": 1}], json.loads(CONTEXT)]
    found = rows(TableLog(table(slot_features=slots)))
    assert found[1]["context"] == [*json.loads(CONTEXT), {"slot": 1}]


def test_a_bad_row_of_csv_stops_it_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(TableLog(table()), path)
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("0.2", "often")
    path.write_text("\n".join([*lines[:3], "too,few", *lines[3:]]))
    with pytest.raises(LogFileError, match="another number of columns"):
        rows(open_log(path))
    reading = LogReading(skips_bad=True)
    assert len(rows(open_log(path), reading)) == 2
    assert reading.bad == 2
    assert any("row 2: the propensity is 'often', but a number" in m for m in reading.messages)
    assert any("row 3: it has 2 columns" in message for message in reading.messages)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not a JSON object"),
        ('{"_label_cost": -1}', "no actions"),
        ('{"_label_cost": "x", "c": {"_multi": [{}]}, "_labelIndex": 0}', "_label_cost is 'x'"),
        ('{"_label_cost": -1, "c": {"_multi": [{}]}, "_labelIndex": 3}', "there are 1 actions"),
        ('{"_label_cost": -1, "pdrop": 0.5, "c": {"_multi": [{}]}}', "pdrop is 0.5"),
    ],
)
def test_a_bad_line_of_dsjson_stops_it_with_its_number(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    write_log(TableLog(table()), path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(LogFileError, match=f"line 4: .*{why}.*--skip-bad"):
        rows(open_log(path))
    reading = LogReading(skips_bad=True)
    assert len(rows(open_log(path), reading)) == 3
    assert reading.bad == 1


def test_dsjson_of_personalizer_is_read(tmp_path: Path) -> None:
    line = {
        "_label_cost": -1.0,
        "_label_probability": 0.75,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"EventId": "e", "v": 1.0}],
        "Timestamp": "2021-05-31T12:00:00.1234560Z",
        "EventId": "e",
        "a": [2, 1],
        "c": {
            "User": {"_age": 9, "country": "NL"},
            "Page": [{"topic": "news", "Inner": {"depth": 2}}],
            "_multi": [{"_tag": "one", "Item": {"size": 1.5}}, {"i": {"id": "two", "constant": 1}}],
        },
        "p": [0.75, 0.25],
    }
    unlabelled = {"c": {"_multi": [{}]}, "EventId": "f"}
    path = tmp_path / "log.json"
    path.write_text("\n".join(map(json.dumps, [line, unlabelled])))
    reading = LogReading()
    (row,) = rows(open_log(path), reading)
    assert reading.unlabelled == 1
    assert merged(row["context"]) == {
        "User": {"country": "NL"},
        "Page": {"topic": "news"},
        "Inner": {"depth": 2},
    }
    assert row["actions"] == [
        {"id": "one", "features": [{"Item": {"size": 1.5}}]},
        {"id": "two", "features": []},
    ]
    assert (row["arm"], row["reward"], row["propensity"]) == ("two", 1.0, 0.75)
    assert row["time"].isoformat() == "2021-05-31T12:00:00.123000+00:00"


def test_actions_that_are_offered_twice_get_distinct_ids(tmp_path: Path) -> None:
    """As in VW's own test/train-sets/decisionservice.json."""
    action = {
        "_tag": "a",
        "i": {"constant": 1, "id": "a"},
        "j": [{"_title": "t"}, {"Tags": {"x": 1}}],
    }
    line = {
        "_label_cost": 0,
        "_label_probability": 0.5,
        "_label_Action": 2,
        "_labelIndex": 1,
        "c": {"_synthetic": False, "Geo": {"_cf": "8", "city": "Oakland"}, "_multi": [action] * 2},
        "VWState": {"m": "m"},
    }
    (tmp_path / "log.json").write_text(json.dumps(line))
    (row,) = rows(open_log(tmp_path / "log.json"))
    assert row["context"] == [{"Geo": {"city": "Oakland"}}]
    assert [one["id"] for one in row["actions"]] == ["a", "a#2"]
    assert (row["arm"], row["reward"], row["event_id"]) == ("a#2", 0.0, "1")
    assert row["actions"][0]["features"] == [{"Tags": {"x": 1}}]


def test_text_of_vowpal_wabbit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.vw"
    path.write_text(
        "shared |User age:31 NL |Page topic=news\n'one |Item size:1.5\n0:-1:0.75 two| new\n\n"
        "shared | a\n| b\n| c\n\n"
        "| b\n0:0.5:0.5 | c\n"
    )
    reading = LogReading()
    first, second = rows(open_log(path), reading)
    assert reading.unlabelled == 1
    assert first["context"] == [{"User": {"age": 31.0, "NL": True}}, {"Page": {"topic": "news"}}]
    assert first["actions"][1] == {"id": "two", "features": [{"new": True}]}
    assert (first["arm"], first["reward"], first["propensity"]) == ("two", 1.0, 0.75)
    assert (second["arm"], second["reward"]) == ("2", -0.5)


def test_a_bad_label_of_vowpal_wabbit_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.vw"
    path.write_text("shared | a\n0:x:1 | b\n\n")
    with pytest.raises(LogFileError, match="line 1: the label is '0:x:1', but action:cost:prob"):
        rows(open_log(path))


def test_bandit_feedback_there_and_back() -> None:
    rng = np.random.default_rng(0)
    feedback = {
        "n_rounds": 5,
        "n_actions": 3,
        "context": rng.normal(size=(5, 2)),
        "action_context": np.eye(3),
        "action": np.array([0, 2, 1, 1, 0]),
        "position": None,
        "reward": np.array([1, 0, 0, 1, 1]),
        "expected_reward": None,
        "pi_b": None,
        "pscore": np.full(5, 1 / 3),
    }
    again = to_bandit_feedback(from_bandit_feedback(feedback))
    for name, value in feedback.items():
        np.testing.assert_array_equal(again[name], value)
    own = to_bandit_feedback(
        from_bandit_feedback({**feedback, "action_context": rng.normal(size=(3, 2))})
    )
    assert own["action_context"].shape == (3, 2)
    with pytest.raises(LogFileError, match="no reward"):
        from_bandit_feedback({name: value for name, value in feedback.items() if name != "reward"})


def test_a_missing_or_invalid_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match="there is no file"):
        open_log(tmp_path / "no.parquet")
    path = tmp_path / "log.parquet"
    path.write_text("nothing")
    with pytest.raises(LogFileError, match="cannot be read as Parquet"):
        open_log(path)
    (tmp_path / "log").touch()
    with pytest.raises(LogFileError, match="does not show its format"):
        open_log(tmp_path / "log")


def test_parquet_has_the_columns_of_the_table(tmp_path: Path) -> None:
    write_log(TableLog(table()), tmp_path / "log.parquet")
    assert pq.read_schema(tmp_path / "log.parquet").equals(SCHEMA)


def test_restricted_arms_survive(tmp_path: Path) -> None:
    log = TableLog(table(eligible=pa.array([None, ["air"], ["tea", "air"]])))
    for name in ("log.parquet", "log.csv"):
        write_log(log, tmp_path / name)
        assert [row["eligible"] for row in rows(open_log(tmp_path / name))] == [
            None,
            ["air"],
            ["tea", "air"],
        ]
    write_log(log, tmp_path / "log.dsjson")
    found = rows(open_log(tmp_path / "log.dsjson"))
    assert [len(row["actions"]) for row in found] == [2, 1, 2]
    assert json.loads(ACTIONS)[1] == found[1]["actions"][0]


def test_probabilities_survive_every_format_that_has_them(tmp_path: Path) -> None:
    log = TableLog(table(probabilities=[[0.8, 0.2], None, [0.8, 0.2]]))
    for name in ("log.parquet", "log.csv", "log.dsjson"):
        write_log(log, tmp_path / name)
        again = [row["probabilities"] for row in rows(open_log(tmp_path / name))]
        assert again == [[0.8, 0.2], None, [0.8, 0.2]]


def test_probabilities_are_read_in_the_order_of_the_eligible_actions() -> None:
    ids = ["a", "b", "c", "d"]
    log = TableLog(
        table(
            actions=[json.dumps(ids)] * 3,
            arm=["b", "a", "c"],
            eligible=pa.array([["c", "b", "a"], None, ["b", "c"]]),
            propensity=[0.3, 0.1, 0.4],
            probabilities=[[0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], None],
        )
    )
    (found,) = rounds_of(log, LogReading(), has_contexts=False, default_reward=0.0, has_logged=True)
    assert found.logged is not None
    expected = [0.2, 0.3, 0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.4]  # of two arms, one tells the other
    np.testing.assert_allclose(found.logged, expected)
    part = found.part(np.array([2, 0])).logged
    assert part is not None
    np.testing.assert_allclose(part, [0.6, 0.4, 0.2, 0.3, 0.5])


@pytest.mark.parametrize("given", [[0.8], [0.8, 0.8], [0.2, 0.8], [1.8, -0.8], [None, 0.2]])
def test_probabilities_that_do_not_fit_are_reported(given: list[float]) -> None:
    log = TableLog(table(probabilities=[[0.8, 0.2], [0.8, 0.2], given]))
    with pytest.raises(LogFileError, match="row 3: the probabilities are"):
        list(rounds_of(log, LogReading(), has_contexts=False, default_reward=0.0, has_logged=True))


def test_made_up_probabilities_of_dsjson_are_not_read(tmp_path: Path) -> None:
    """Where a log tells that of the played arm alone, VW still wants one for each."""
    three = json.dumps(["a", "b", "c"])
    log = TableLog(table(actions=[three] * 3, arm=["a", "b", "c"]))
    write_log(log, tmp_path / "log.dsjson")
    line = json.loads((tmp_path / "log.dsjson").read_text().splitlines()[0])
    assert line["p"] == pytest.approx([0.8, 0.1, 0.1])
    assert [row["probabilities"] for row in rows(open_log(tmp_path / "log.dsjson"))] == [None] * 3
