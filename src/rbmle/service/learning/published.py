"""The model that decides, as the learner publishes it and front ends read it.

Most weights of a network over hashed features are still where they started, so arrays are sent by the
rows that differ from those of a model before any data, which both sides can make.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.saving import moved_rows, parts_of, snapshot_of
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.model import ModelSettings

DENSE = 0.5  # of the rows: from here on an array is sent whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A model that decides, which nobody changes, and how the service is configured."""

    model: ModelSettings
    bandit: Bandit
    configuration: ServiceConfiguration = field(default_factory=ServiceConfiguration)
    seq: int = 0  # the last record that it knows
    time: int = 0  # of that record, in milliseconds


class Array(msgspec.Struct, frozen=True):
    """An array, or the rows of it that are not as before any data."""

    dtype: str
    shape: tuple[int, ...]
    rows: bytes | None  # their numbers; None: all of them
    content: bytes


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A publication as it is sent."""

    origin: str  # of the log
    settings: dict[str, Any]  # of the model
    configuration: dict[str, Any]
    seq: int
    time: int
    round: int
    numbers: dict[str, float | int]
    arrays: dict[str, Array]


_decoder = msgspec.msgpack.Decoder(Message)


def encode(published: Published, origin: str) -> bytes:
    """Return a publication as bytes; it is of the log with this origin."""
    before, _, _ = parts_of(_start(published.model))
    arrays, numbers, round = parts_of(published.bandit)
    changed = {name: _difference(array, before.get(name)) for name, array in arrays.items()}
    return msgspec.msgpack.encode(
        Message(
            origin=origin,
            settings=published.model.to_json(),
            configuration=published.configuration.to_json(),
            seq=published.seq,
            time=published.time,
            round=round,
            numbers=numbers,
            arrays={name: array for name, array in changed.items() if array is not None},
        )
    )


def decode(content: bytes, origin: str) -> Published | None:
    """Return the publication that `encode` wrote; None if it is of another log."""
    message = _decoder.decode(content)
    if message.origin != origin:
        return None
    model = ModelSettings.from_json(message.settings)
    before, _, _ = parts_of(_start(model))
    changed = {name: _whole(array, before.get(name)) for name, array in message.arrays.items()}
    return Published(
        model=model,
        bandit=snapshot_of(_start(model), (before | changed, message.numbers, message.round)),
        configuration=ServiceConfiguration.from_json(message.configuration),
        seq=message.seq,
        time=message.time,
    )


@lru_cache(maxsize=2)
def _start(model: ModelSettings) -> Bandit:
    """Return a snapshot of a model before any data."""
    return model.start().snapshot()


def _difference(array: np.ndarray, before: np.ndarray | None) -> Array | None:
    """Return what differs from an array before any data; None if nothing does."""
    kind = (array.dtype.str, array.shape)
    if before is None or before.shape != array.shape or not array.size:
        return Array(*kind, None, array.tobytes())
    rows = moved_rows(array, before)
    if not len(rows):
        return None
    if len(rows) > DENSE * len(array):
        return Array(*kind, None, array.tobytes())
    return Array(*kind, rows.astype(np.int64).tobytes(), array[rows].tobytes())


def _whole(array: Array, before: np.ndarray | None) -> np.ndarray:
    """Return an array that may be written, as kernels expect."""
    content = np.frombuffer(array.content, array.dtype)
    if array.rows is None:
        return content.reshape(array.shape).copy()
    if before is None or before.shape != array.shape:
        raise ValueError(f"rows of an array of {array.shape} were published, but there is none")
    whole = before.copy()
    whole[np.frombuffer(array.rows, np.int64)] = content.reshape(-1, *array.shape[1:])
    return whole
