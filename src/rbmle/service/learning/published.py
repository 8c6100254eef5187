"""The model that decides, as the learner publishes it and front ends read it.

Most weights of a network over hashed features are still where they started, so arrays are sent by the
rows that differ from those of a model before any data, which both sides can make. A front end that follows
the learner writes these rows into the arrays of a model that it no longer uses, so its memory does not depend
on how many models it has seen.
"""

import mmap
import weakref
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
REUSED_BYTES = 2**16  # from here on the memory of an array is used again


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


class PublicationReader:
    """Decodes publications one after the other, for one thread.

    Large arrays are written into memory that an earlier model had, once nothing refers to the earlier array
    any more. Whoever still decides with an old model is not disturbed: there are two copies of each large
    array, and for a moment one more for each old model that is still in use.
    """

    def __init__(self) -> None:
        self._model: ModelSettings | None = None
        self._buffers: dict[str, list[ArrayBuffer]] = {}  # by the name of the array

    def decode(self, content: bytes, origin: str) -> Published | None:
        """Return the publication that `encode` wrote; None if it is of another log."""
        message = _decoder.decode(content)
        if message.origin != origin:
            return None
        model = ModelSettings.from_json(message.settings)
        if model != self._model:
            self._model, self._buffers = model, {}
        before, _, _ = parts_of(_start(model))
        changed = {
            name: self._whole(name, array, before.get(name))
            for name, array in message.arrays.items()
        }
        return Published(
            model=model,
            bandit=snapshot_of(_start(model), (before | changed, message.numbers, message.round)),
            configuration=ServiceConfiguration.from_json(message.configuration),
            seq=message.seq,
            time=message.time,
        )

    def _whole(self, name: str, array: Array, before: np.ndarray | None) -> np.ndarray:
        """Return an array that may be written, as kernels expect."""
        if before is None or before.shape != array.shape:
            if array.rows is not None:
                raise ValueError(
                    f"rows of an array of {array.shape} were published, but there is none"
                )
            return np.frombuffer(array.content, array.dtype).reshape(array.shape).copy()
        if before.nbytes < REUSED_BYTES:
            whole = before.copy()
            _write(whole, array)
            return whole
        known = self._buffers.get(name, [])
        free = [buffer for buffer in known if not buffer.is_used]
        buffer = free[0] if free else ArrayBuffer(before)
        self._buffers[name] = [buffer, *(other for other in known if other.is_used)]
        return buffer.fill(array)


class ArrayBuffer:
    """Memory for one array, which starts as `before`; it can be filled again once nobody uses what it was."""

    def __init__(self, before: np.ndarray) -> None:
        self._before = before
        self._memory = mmap.mmap(
            -1, before.nbytes
        )  # which goes back to the system when it is freed
        self._moved: np.ndarray | None = None  # the rows that are not as before; None: all
        self._user: weakref.ref[np.ndarray] | None = None

    @property
    def is_used(self) -> bool:
        """Return whether an array that was given out, or a view of one, still exists."""
        return self._user is not None and self._user() is not None

    def fill(self, array: Array) -> np.ndarray:
        """Return an array in this memory."""
        # A view of a view refers to the array that was made from the memory, so this one lives as long as any.
        flat = np.frombuffer(self._memory, self._before.dtype)
        self._user = weakref.ref(flat)
        whole = flat.reshape(self._before.shape)
        moved, self._moved = self._moved, None  # should this fail, nothing is known of the rows
        if array.rows is not None:
            stale = slice(None) if moved is None else moved
            whole[stale] = self._before[stale]
        self._moved = _write(whole, array)
        return whole


def decode(content: bytes, origin: str) -> Published | None:
    """Return the publication that `encode` wrote, in memory of its own; None if it is of another log."""
    return PublicationReader().decode(content, origin)


def seq_of(content: bytes, origin: str) -> int:
    """Return the last record that a publication of a log knows; -1 if it is of another log."""
    message = _decoder.decode(content)
    return message.seq if message.origin == origin else -1


def untaught(model: ModelSettings, configuration: ServiceConfiguration | None = None) -> Published:
    """Return a model before any data."""
    return Published(
        model=model,
        bandit=_start(model),
        configuration=configuration or ServiceConfiguration(),
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


def _write(whole: np.ndarray, array: Array) -> np.ndarray | None:
    """Write what was published over an array before any data; return the rows that differ, or None for all."""
    content = np.frombuffer(array.content, array.dtype)
    if array.rows is None:
        whole[...] = content.reshape(array.shape)
        return None
    rows = np.frombuffer(array.rows, np.int64)
    whole[rows] = content.reshape(-1, *array.shape[1:])
    return rows
