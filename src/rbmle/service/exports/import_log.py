"""Imports decisions of another system as the log of a new service, which then starts warm."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from rbmle.core.errors import SettingError
from rbmle.evaluation.logs import DecisionLog, LogReading
from rbmle.evaluation.logs.lines import do_fit
from rbmle.evaluation.rounds import json_array
from rbmle.service.front.requests import Action, RankRequest, RequestError
from rbmle.service.learner.start import Start, begin
from rbmle.service.log import LOG_FILE, open_log
from rbmle.service.log.base import Log, Row
from rbmle.service.log.records import (
    CLOCK,
    NO_FEATURES,
    SHARED_ALIKE,
    Decided,
    Play,
    Record,
    Rewarded,
    Ticked,
    row_of,
)
from rbmle.service.model.limits import Features
from rbmle.service.model.settings import default_policy, reward_range, settings_of

TOGETHER = 1_000  # decisions in one transaction
DIGEST = "imported-exactly"  # of a request, which nobody has, with all probabilities
_FEATURES = msgspec.json.Decoder(Features | list[Features])
_ACTIONS = msgspec.json.Decoder(list[str | dict[str, msgspec.Raw]])


def import_decisions(
    decisions: DecisionLog,
    data: Path,
    start: Start,
    reading: LogReading,
    step: Callable[[int], object],
) -> int:
    """Write the folder of a service with these decisions; return how many there are.

    Records have the times of the decisions, so that the service waits for none of their rewards. The folder
    appears whole or not at all.
    """
    if data.exists() and any(data.iterdir()):
        raise SettingError(
            f"{data} is not empty; an import starts a new log: give a folder that is empty or does not exist"
        )
    making = data.with_name(f".{data.name}.importing")
    rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    try:
        log = open_log(str((making / LOG_FILE).absolute()))
        try:
            done = _write(decisions, log, start, reading, step)
        finally:
            log.close()
        if data.exists():
            data.rmdir()
        making.rename(data)
    finally:
        rmtree(making, ignore_errors=True)
    return done


def _write(
    decisions: DecisionLog,
    log: Log,
    start: Start,
    reading: LogReading,
    step: Callable[[int], object],
) -> int:
    now, clock, done = time.time_ns() // 1_000_000, 0, 0
    rewards = reward_range(start.policy or default_policy())
    events: set[str] = set()
    rows: list[Row] = []
    for place, columns in _read_decisions(decisions, reading):
        event = columns["event_id"]
        try:
            records = _records(columns, now, rewards)
            if event in events:
                raise ValueError(f"the event {event!r} is there twice")
        except (ValueError, TypeError, KeyError, msgspec.MsgspecError, RequestError) as error:
            reading.fault(place, str(error))
            continue
        if not done:
            clock = _milliseconds(columns["time"])
            begin(log, start, lambda _message: None, at=clock)
        clock = max(clock, _milliseconds(columns["time"]))
        events.add(event)
        rows += [row_of(record, event, clock) for record in records]
        done += 1
        if not done % TOGETHER:
            log.append(rows)
            rows = []
            step(done)
    if not done:
        raise SettingError(f"{decisions.name} has no decision that a service could have made")
    configuration = settings_of(log).configuration
    assert configuration is not None  # `begin` has written one
    wait = round(configuration.reward_wait_time.total_seconds() * 1_000)
    rows.append(row_of(Ticked(), CLOCK, min(clock + wait + 1_000, now)))
    log.append(rows)
    return done


def _read_decisions(
    decisions: DecisionLog, reading: LogReading
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each decision in the file, and its columns."""
    for table, numbers, unit in decisions.batches(reading):
        for number, columns in zip(numbers, table.to_pylist(), strict=True):
            yield f"{unit} {number}", columns


def _records(columns: dict[str, Any], now: int, rewards: tuple[float, float]) -> list[Record]:
    """Return the records of a decision; raise ValueError, TypeError or KeyError for an invalid one."""
    at, propensity = columns["time"], columns["propensity"]
    if not isinstance(at, datetime):
        raise ValueError("it has no time, which tells the service that its reward is final")
    if _milliseconds(at) > now:
        raise ValueError(f"its time, {at}, is in the future")
    if propensity is None or not 0 < propensity <= 1:
        raise ValueError(f"the propensity is {propensity}, but it is above 0 and at most 1")
    request = RankRequest(
        event=columns["event_id"],
        context=_as_array(columns["context"].encode()),
        actions=[_action(action) for action in _ACTIONS.decode(columns["actions"])],
    )
    ids = [action.id for action in request.actions]
    for id in (columns["arm"], *(columns["eligible"] or ())):
        if id not in ids:
            raise ValueError(f"{id!r} is not among the actions, which are {', '.join(ids)}")
    eligible = [ids.index(id) for id in columns["eligible"] or ids]
    chosen = ids.index(columns["arm"])
    chances, digest = columns["probabilities"], DIGEST
    if chances is None:  # the other actions share the rest equally
        others, digest = (1 - propensity) / max(len(eligible) - 1, 1), SHARED_ALIKE
        chances = [propensity if place == chosen else others for place in eligible]
    elif len(chances) != len(eligible) or not do_fit(
        chances, chances[eligible.index(chosen)], propensity
    ):
        raise ValueError(f"the probabilities, {chances}, do not fit the actions and the propensity")
    play = Play(eligible=eligible, probabilities=chances, chosen=chosen, baseline=eligible[0])
    decided = Decided(
        context=request.context, actions=request.actions, plays=[play], digest=digest, learned=0
    )
    reward = columns["reward"]
    if reward is None:
        return [decided]
    low, high = rewards
    if not low <= reward <= high:
        raise ValueError(f"the reward is {reward}; it must be from {low:g} to {high:g}")
    return [decided, Rewarded(values={play.slot: reward})]


def _action(action: str | dict[str, msgspec.Raw]) -> Action:
    """Return an action of the log, which may be its id alone."""
    if isinstance(action, str):
        return Action(id=action, features=NO_FEATURES)
    id = msgspec.json.decode(action["id"], type=str)
    return Action(id=id, features=_as_array(bytes(action.get("features", NO_FEATURES))))


def _as_array(features: bytes) -> msgspec.Raw:
    """Return an object, or an array of objects, as an array; raise MsgspecError for other features."""
    _FEATURES.decode(features)
    return msgspec.Raw(json_array(features))


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1_000)
