"""Published models: the learner encodes the model that decides, and front ends decode it.

Most weights of a network over hashed features keep their initial values, so only the rows of an array that
differ from the initial model are sent; both sides can make that model. A front end writes these rows into the
arrays of a model that it no longer uses, so its memory does not grow with the number of models.
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
from rbmle.service.log.base import is_same_log
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.guarding import Grant

DENSE = 0.5  # share of changed rows from which on an array is sent as a whole
REUSED_BYTES = 2**16  # size of an array from which on its memory is reused


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A model that decides, which nobody changes, and the configuration of the service."""

    model: ModelSettings
    bandit: Bandit
    configuration: ServiceConfiguration = field(default_factory=ServiceConfiguration)
    seq: int = 0  # the last record that it knows
    time: int = 0  # of that record, in milliseconds
    grant: Grant | None = None  # None: conservative mode was never on
    origin: str = field(default="", compare=False)  # of the log; an erasure changes it


class Array(msgspec.Struct, frozen=True):
    """An array, or the rows of it that differ from the initial model."""

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
    grant: Grant | None = None


_decoder = msgspec.msgpack.Decoder(Message)


def encode(published: Published, origin: str) -> bytes:
    """Return a publication of the log with this origin as bytes."""
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
            grant=published.grant,
        )
    )


class PublicationReader:
    """Decodes publications one after the other, in one thread.

    Large arrays are written into the memory of an earlier model, once nothing refers to its arrays any more. So
    there are two copies of each large array, and for a moment one more for each old model that is in use.
    """

    def __init__(self) -> None:
        self._model: ModelSettings | None = None
        self._buffers: dict[str, list[ArrayBuffer]] = {}  # by the name of the array

    def decode(self, content: bytes, origin: str) -> Published | None:
        """Return the publication that `encode` wrote, maybe before an erasure; None if it is of another log."""
        message = _decoder.decode(content)
        if not is_same_log(message.origin, origin):
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
            grant=message.grant,
            origin=message.origin,
        )

    def _whole(self, name: str, array: Array, before: np.ndarray | None) -> np.ndarray:
        """Return a whole array, which is writable, as kernels expect."""
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
    """Memory for one array, initially `before`; it can be filled again once the last array is not in use."""

    def __init__(self, before: np.ndarray) -> None:
        self._before = before
        self._memory = mmap.mmap(-1, before.nbytes)  # returned to the system when it is freed
        self._moved: np.ndarray | None = None  # the rows that differ from `before`; None: all
        self._user: weakref.ref[np.ndarray] | None = None

    @property
    def is_used(self) -> bool:
        return self._user is not None and self._user() is not None

    def fill(self, array: Array) -> np.ndarray:
        """Return an array in this memory."""
        # All views of this array refer to it, so it lives as long as any of them.
        flat = np.frombuffer(self._memory, self._before.dtype)
        self._user = weakref.ref(flat)
        whole = flat.reshape(self._before.shape)
        moved, self._moved = self._moved, None  # if this fails, any row may differ
        if array.rows is not None:
            stale = slice(None) if moved is None else moved
            whole[stale] = self._before[stale]
        self._moved = _write(whole, array)
        return whole


def seq_of(content: bytes, origin: str) -> int:
    """Return the last record that a publication knows, maybe from before an erasure; -1 if of another log."""
    message = _decoder.decode(content)
    return message.seq if is_same_log(message.origin, origin) else -1


def initial_model(
    model: ModelSettings, configuration: ServiceConfiguration | None = None
) -> Published:
    """Return a model before any data."""
    return Published(
        model=model,
        bandit=_start(model),
        configuration=configuration or ServiceConfiguration(),
    )


@lru_cache(maxsize=2)
def _start(model: ModelSettings) -> Bandit:
    return model.start().snapshot()


def _difference(array: np.ndarray, before: np.ndarray | None) -> Array | None:
    """Return the changes of an array of the initial model; None if there are none."""
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
    """Write changes over an array of the initial model; return the changed rows, or None for all."""
    content = np.frombuffer(array.content, array.dtype)
    if array.rows is None:
        whole[...] = content.reshape(array.shape)
        return None
    rows = np.frombuffer(array.rows, np.int64)
    whole[rows] = content.reshape(-1, *array.shape[1:])
    return rows
