"""Which decisions are rows, and with which reward."""

from dataclasses import replace
from pathlib import Path

import pytest

from rbmle.service.exports.checks import check_log
from rbmle.service.exports.export import Exported, export
from rbmle.service.log.base import Log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import Activated, Reset, Ticked, pack_features
from rbmle.service.settings import Aggregation, ServiceConfiguration, Settle
from tests.service.exports.samples import (
    OVER,
    USUAL,
    WAIT,
    configured,
    decided,
    kept,
    lines,
    play,
    rewarded,
    table,
    tell,
)

SUMS = replace(USUAL, reward_aggregation=Aggregation.SUM)


def rewards(log: Log, folder: Path) -> dict[str, tuple[float | None, float | None]]:
    return {r["event_id"]: (r["reward"], r["final_reward"]) for r in table(log, folder)}


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
    assert check_log(log).pending == 2


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
        play(slot="top", features=pack_features([{"width": 3}])),
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
