"""Logs that are exported, and what is read from the files."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.service.exports.export import export
from rbmle.service.log.base import Log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    Record,
    Rewarded,
    pack_features,
    row_of,
)
from rbmle.service.settings import ServiceConfiguration

WAIT = 600_000
START = 1_700_000_000_123  # milliseconds since the epoch
OVER = WAIT + 877  # when it is over for an event of START: at a whole second
USUAL = ServiceConfiguration(reward_wait_time=timedelta(milliseconds=WAIT), default_reward=-0.5)
Told = tuple[int, str, Record]


def play(**changes: Any) -> Play:
    usual: dict[str, Any] = {"eligible": [0, 1], "probabilities": [0.2, 0.8], "chosen": 1}
    return Play(**usual | changes)


def decided(**changes: Any) -> Decided:
    usual: dict[str, Any] = {
        "context": pack_features([{"user": {"age": 31}}]),
        "actions": [
            OfferedAction(id="tea", features=pack_features([{"price": 2.5}])),
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
    log.append([row_of(r, event, START + time) for time, event, r in story])


def kept(*story: Told, configuration: ServiceConfiguration = USUAL) -> MemoryLog:
    log = MemoryLog()
    tell(log, (0, "", Modelled(settings={"seed": 0})), configured(configuration), *story)
    return log


def table(log: Log, folder: Path) -> list[dict[str, Any]]:
    export(log, folder / "out.parquet", "parquet")
    rows: list[dict[str, Any]] = pq.read_table(folder / "out.parquet").to_pylist()
    return rows


def lines(log: Log, folder: Path) -> list[dict[str, Any]]:
    export(log, folder / "out.dsjson", "dsjson")
    return [json.loads(line) for line in (folder / "out.dsjson").read_text().splitlines()]


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["log", *map(str, arguments)], env={"COLUMNS": "200"})
