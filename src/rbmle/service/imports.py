"""Decisions of another system become the log of a new service, which then starts warm."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from rbmle.core.errors import SettingError
from rbmle.evaluation.logs import Log as DecisionLog
from rbmle.evaluation.logs import Reading
from rbmle.evaluation.logs.lines import do_fit
from rbmle.evaluation.rounds import json_array
from rbmle.service.deciding.requests import Action, RankRequest
from rbmle.service.features.limits import Features
from rbmle.service.learning.model import default_policy
from rbmle.service.learning.reward_range import reward_range
from rbmle.service.learning.start import Start, begin, settings_of
from rbmle.service.log import open_log
from rbmle.service.log.base import Log, Row
from rbmle.service.log.opening import LOG_FILE
from rbmle.service.log.records import (
    CLOCK,
    SHARED_ALIKE,
    Decided,
    Play,
    Record,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
)

TOGETHER = 1_000  # decisions that are stored in one transaction
DIGEST = "imported-exactly"  # of a request, which nobody has, with all probabilities
_FEATURES = msgspec.json.Decoder(Features | list[Features])
_ACTIONS = msgspec.json.Decoder(list[str | dict[str, msgspec.Raw]])


def import_decisions(
    decisions: DecisionLog,
    data: Path,
    start: Start,
    reading: Reading,
    step: Callable[[int], object],
) -> int:
    """Write the folder of a service that has decided and learned what is logged; return how many there are.

    Records have the times of the decisions, so that the service waits for none of their rewards. The folder
    is there when all of them are, or not at all.
    """
    if data.exists() and any(data.iterdir()):
        raise SettingError(
            f"{data} is not empty; decisions begin a new log: give a folder that is empty or not there"
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
    reading: Reading,
    step: Callable[[int], object],
) -> int:
    """Append all decisions to an empty log."""
    now, clock, done = time.time_ns() // 1_000_000, 0, 0
    rewards = reward_range(start.policy or default_policy())
    events: set[str] = set()
    rows: list[Row] = []
    for place, found in _found(decisions, reading):
        try:
            taken = _records(found, now, rewards)
            if found["event_id"] in events:
                raise ValueError(f"the event {found['event_id']!r} was there before")
        except (ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
            reading.fault(place, str(error))
            continue
        if not done:
            clock = _milliseconds(found["time"])
            begin(log, start, lambda _message: None, at=clock)
        clock = max(clock, _milliseconds(found["time"]))
        events.add(found["event_id"])
        rows += [_row(record, found["event_id"], clock) for record in taken]
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
    rows.append(_row(Ticked(), CLOCK, min(clock + wait + 1_000, now)))
    log.append(rows)
    return done


def _found(decisions: DecisionLog, reading: Reading) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each decision stands, and its columns."""
    for table, numbers, unit in decisions.batches(reading):
        for number, found in zip(numbers, table.to_pylist(), strict=True):
            yield f"{unit} {number}", found


def _records(found: dict[str, Any], now: int, rewards: tuple[float, float]) -> list[Record]:
    """Return what the log of a service has of a decision, or raise an error that says what is wrong."""
    at, propensity = found["time"], found["propensity"]
    if not isinstance(at, datetime):
        raise ValueError("it has no time, by which the service knows that its reward is final")
    if _milliseconds(at) > now:
        raise ValueError(f"its time, {at}, is in the future")
    if propensity is None or not 0 < propensity <= 1:
        raise ValueError(f"the propensity is {propensity}, but it is above 0 and at most 1")
    request = RankRequest(
        event=found["event_id"],
        context=_listed(found["context"].encode()),
        actions=[_action(given) for given in _ACTIONS.decode(found["actions"])],
    )
    ids = [action.id for action in request.actions]
    for id in (found["arm"], *(found["eligible"] or ())):
        if id not in ids:
            raise ValueError(f"{id!r} is none of the actions, which are {', '.join(ids)}")
    eligible = [ids.index(id) for id in found["eligible"] or ids]
    chosen = ids.index(found["arm"])
    chances, digest = found["probabilities"], DIGEST
    if chances is None:  # of the others only their sum is known
        others, digest = (1 - propensity) / max(len(eligible) - 1, 1), SHARED_ALIKE
        chances = [propensity if place == chosen else others for place in eligible]
    elif len(chances) != len(eligible) or not do_fit(
        chances, chances[eligible.index(chosen)], propensity
    ):
        raise ValueError(f"the probabilities, {chances}, do not fit the actions and the propensity")
    play = Play(
        eligible=eligible,
        probabilities=chances,
        chosen=chosen,
        baseline=eligible[0],
    )
    decided = Decided(
        context=request.context, actions=request.actions, plays=[play], digest=digest, learned=0
    )
    if found["reward"] is None:
        return [decided]
    low, high = rewards
    if not low <= found["reward"] <= high:
        raise ValueError(f"the reward is {found['reward']}; it must be from {low:g} to {high:g}")
    return [decided, Rewarded(values={play.slot: found["reward"]})]


def _action(given: str | dict[str, msgspec.Raw]) -> Action:
    """Return an action of the log, which may be its id alone."""
    if isinstance(given, str):
        return Action(id=given, features=msgspec.Raw(b"[]"))
    id = msgspec.json.decode(given["id"], type=str)
    return Action(id=id, features=_listed(bytes(given.get("features", b"[]"))))


def _listed(features: bytes) -> msgspec.Raw:
    """Return an object, or an array of objects, as an array; raise an error for other features."""
    _FEATURES.decode(features)
    return msgspec.Raw(json_array(features))


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1_000)


def _row(record: Record, event: str, time: int) -> Row:
    return Row(kind_of(record), event, None, time, encoded(record))
