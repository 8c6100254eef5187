"""Decisions as DSJSON, the lines of JSON in which Vowpal Wabbit reads the log of a decision service."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

import msgspec

from rbmle.evaluation.logs.dsjson import features_of, label_of
from rbmle.service.exports.rows import ExportRow, Take
from rbmle.service.log.records import RawFeatures, unpacked

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def dsjson(file: BinaryIO) -> Iterator[Take]:
    """Yield what writes entries to a file, one line for each, as `vw --dsjson --cb_explore_adf` reads them.

    Each slot of an event is a line of its own, whose actions are those that the slot could show: so
    it was decided and learned, and one command reads all lines.
    """
    encoder = msgspec.json.Encoder()

    def take(entry: ExportRow) -> None:
        file.write(encoder.encode(line(entry)) + b"\n")

    yield take


def line(entry: ExportRow) -> dict[str, Any]:
    """Return one line; actions are numbered from 1 among the eligible ones, the chosen one first.

    The cost is minus the reward, or minus the default reward if none came in time: what the service
    learned. A line whose event was never shown, or let go by a reset, has no label, and Vowpal Wabbit
    learns nothing from it. `o` lists the reward only if one came.
    """
    play, event = entry.play, entry.stored.row.event
    chances = play.probabilities
    chosen = play.eligible.index(play.chosen)
    order = sorted(range(len(chances)), key=lambda place: (place != chosen, -chances[place]))
    reward = entry.final_reward
    label = {} if reward is None else label_of(reward, entry.propensity, chosen)
    rewards = {} if entry.reward is None else {"o": [{"EventId": event, "v": entry.reward}]}
    slot = {"Slot": play.slot} if play.slot else {}
    actions = [entry.decided.actions[place] for place in play.eligible]
    return {
        **label,
        **rewards,
        "Timestamp": _timestamp(entry.stored.row.time),
        "Version": "1",
        "EventId": event,
        **slot,
        "a": [place + 1 for place in order],
        "c": features_of(
            [*_readable(entry.decided.context), *_readable(play.features)],
            [(action.id, _readable(action.features)) for action in actions],
        ),
        "p": [chances[place] for place in order],
        # Without it, rbmle evaluate does not take `p` for what the actions were played with.
        **({} if entry.probabilities is None else {"VWState": {"m": str(entry.decided.learned)}}),
    }


def _readable(features: RawFeatures) -> list[dict[str, Any]]:
    """Return features without names that begin with _, which the service ignores and VW acts upon."""
    return [_object(item) for item in unpacked(features)]


def _object(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object whose namespaces, and arrays, which VW takes for such, have names VW can read."""
    found: dict[str, Any] = {}
    for name, value in item.items():
        match value:
            case _ if name[:1] == "_":
                continue
            case dict():
                found[_namespace(name)] = _object(value)
            case list():
                found[_namespace(name)] = value
            case _:
                found[name] = value
    return found


def _namespace(name: str) -> str:
    """Return a name that begins with ASCII: of another one VW 9 writes beyond its memory."""
    return name if name and name[0].isascii() else f"n{name}"


def _timestamp(time: int) -> str:
    """Return milliseconds since the epoch as a date in UTC."""
    date = EPOCH + timedelta(milliseconds=time)
    return date.isoformat(timespec="milliseconds").replace("+00:00", "Z")
