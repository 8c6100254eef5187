"""DSJSON, the lines of JSON that Vowpal Wabbit and Personalizer write and `vw --dsjson` reads."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from rbmle.evaluation.logs.lines import Parsed, TextRow, distinct, do_fit, objects, rows_of
from rbmle.evaluation.logs.table import LogReading
from rbmle.evaluation.results import LogFileError

SHARED, ACTION, ID = "FromUrl", "j", "i"  # namespaces, named as Personalizer names them
BARE = (SHARED, ACTION)  # features in these have no namespace in the table


def parse_dsjson(lines: Iterable[bytes], reading: LogReading) -> Parsed:
    """Yield the decisions of a file; lines without a label are counted, and left out."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            decoded = decode(line)
            if "_label_cost" not in decoded or decoded.get("_skipLearn"):
                reading.unlabelled += 1
                continue
            row = _row(decoded, number)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            reading.fault(f"line {number}", f"it is not a JSON object: {error}")
        except _Unclear as error:
            reading.fault(f"line {number}", str(error))
        else:
            yield number, row


class _Unclear(ValueError):
    """Raised for a line that is JSON, but not a decision."""


def _row(line: dict[str, Any], number: int) -> TextRow:
    features = line.get("c")
    if not isinstance(features, dict) or not isinstance(features.get("_multi"), list):
        raise _Unclear("it has no actions: c._multi, an array, is expected")
    if line.get("pdrop"):
        raise _Unclear(
            f"pdrop is {line['pdrop']!r}: other lines were dropped at random, and are missing"
        )
    actions = distinct(
        [
            {"id": _id(action, place), "features": _flat(action)}
            for place, action in enumerate(features["_multi"], 1)
        ]
    )
    chosen = line.get("_labelIndex", line.get("_label_Action", 0) - 1)
    if type(chosen) is not int or not 0 <= chosen < len(actions):
        raise _Unclear(f"_labelIndex is {chosen!r}, but there are {len(actions)} actions")
    cost, propensity = line["_label_cost"], line.get("_label_probability")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        raise _Unclear(f"_label_cost is {cost!r}, but a number is expected")
    if not isinstance(propensity, int | float | None):
        raise _Unclear(f"_label_probability is {propensity!r}, but a number is expected")
    return TextRow(
        event_id=str(line.get("EventId", number)),
        time=_time(line.get("Timestamp")),
        context=_flat(features),
        actions=actions,
        arm=actions[chosen]["id"],
        propensity=propensity,
        reward=0.0 - cost,  # not −0.0
        probabilities=_probabilities(line, len(actions), chosen, propensity),
    )


def _probabilities(
    line: dict[str, Any], actions: int, chosen: int, propensity: float | None
) -> list[float] | None:
    """Return the probabilities of all actions; None if a line lacks them, or they do not fit.

    A line without VWState may be from a writer that knew only the probability of the chosen action.
    """
    try:
        pairs = {place - 1: float(p) for place, p in zip(line["a"], line["p"], strict=True)}
        chances = [pairs[place] for place in range(actions)]
    except (KeyError, TypeError, ValueError):
        return None
    return chances if "VWState" in line and do_fit(chances, chances[chosen], propensity) else None


def _id(action: Any, place: int) -> str:
    """Return the id of an action: its tag, or the one Personalizer writes, or its place."""
    if not isinstance(action, dict):
        raise _Unclear(f"action {place} is {action!r}, but an object is expected")
    features = action.get(ID)
    inner = features.get("id") if isinstance(features, dict) else None
    return str(action.get("_tag") or inner or action.get("id") or place)


def _flat(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the features of nested objects as a list of {namespace: {name: value}}."""
    parts: list[dict[str, Any]] = []
    _walk(item, "", parts)
    return parts


def _walk(item: dict[str, Any], namespace: str, parts: list[dict[str, Any]]) -> None:
    """Add the features of the objects in an object, and then its own in its namespace."""
    features: dict[str, Any] = {}
    for name, value in item.items():
        match value:
            case _ if name.startswith("_") or (name == ID and isinstance(value, dict)):
                continue
            case dict():
                _walk(value, name, parts)
            case [] | [dict(), *_]:
                for part in value:
                    if isinstance(part, dict):
                        _walk(part, name, parts)
            case _:
                features[name] = value
    if features:
        parts.append(features if not namespace or namespace in BARE else {namespace: features})


def _time(text: Any) -> datetime | None:
    """Return a timestamp in UTC; None if there is none that can be read."""
    try:
        time = datetime.fromisoformat(text[:26].rstrip("Z"))
    except (TypeError, ValueError):
        return None
    return time.replace(tzinfo=UTC)


def write_dsjson(batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    """Write decisions as `vw --dsjson --cb_explore_adf` reads them, and return their number."""
    return write_lines((_line(row) for batch in batches for row in rows_of(batch)), file)


def write_lines(lines: Iterable[dict[str, Any]], file: BinaryIO) -> int:
    """Write lines of DSJSON, and return their number."""
    encode, count = msgspec.json.Encoder().encode, 0
    for line in lines:
        file.write(encode(line) + b"\n")
        count += 1
    return count


def _line(row: TextRow) -> dict[str, Any]:
    """Return one line; the chosen action is the first of `a` and `p`."""
    ids = [action["id"] for action in row.actions]
    chosen = ids.index(row.arm)
    if row.propensity is None:
        raise LogFileError(
            f"event {row.event_id} has no propensity, which DSJSON needs; write Parquet or CSV"
        )
    others = [place for place in range(len(ids)) if place != chosen]
    # How the others share the rest may not be known; then there is no VWState.
    chances = row.probabilities or [(1 - row.propensity) / max(len(others), 1)] * len(ids)
    return {
        **label_of(row.reward, row.propensity, chosen),
        **({} if row.time is None else {"Timestamp": row.time.isoformat().replace("+00:00", "Z")}),
        "Version": "1",
        "EventId": row.event_id,
        "a": [place + 1 for place in (chosen, *others)],
        "c": features_of(
            objects(row.context),
            [(action["id"], objects(action["features"])) for action in row.actions],
        ),
        "p": [row.propensity, *(chances[place] for place in others)],
        **({} if row.probabilities is None else {"VWState": {"m": "N/A"}}),
    }


def label_of(reward: float | None, propensity: float, chosen: int) -> dict[str, Any]:
    """Return the label of a line; `chosen` counts from 0, and a reward of None leaves out the cost."""
    cost = {} if reward is None else {"_label_cost": 0.0 - reward}  # not −0.0
    return {
        **cost,
        "_label_probability": propensity,
        "_label_Action": chosen + 1,
        "_labelIndex": chosen,
    }


def features_of(
    context: list[dict[str, Any]], actions: Iterable[tuple[str, list[dict[str, Any]]]]
) -> dict[str, Any]:
    """Return the features of a line: those of the context, and the id and features of each action."""
    multi = [
        {"_tag": id, ID: {"constant": 1, "id": id}, ACTION: features} for id, features in actions
    ]
    return {SHARED: context, "_multi": multi}
