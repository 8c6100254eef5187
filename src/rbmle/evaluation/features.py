"""Turn the features of a log into contexts: vectors as they are, and everything else hashed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, UInt8, UInt64

from rbmle.core.encoding import per_arm, stack
from rbmle.core.errors import FeatureError
from rbmle.core.types import Contexts, Rows
from rbmle.engine.feature_rows import feature_rows
from rbmle.engine.json_features import END, MORE_FEATURES, NEW_FEATURES, NEW_ID, read_groups
from rbmle.engine.scaling import plain_values
from rbmle.evaluation.results import LogFileError
from rbmle.evaluation.rounds import Offer, Rounds, json_array, spans
from rbmle.features import Hashing
from rbmle.features.hashing import MOST_PRODUCTS, interactions_of, seed_bits

CHUNK = 256  # rounds that a kernel reads at once
BITS = 12
_END = bytes([END])
_NO_CODES = np.empty(0, np.int64)
_vectors = msgspec.json.Decoder(list[list[float]]).decode
_objects = msgspec.json.Decoder(list[dict[str, object]]).decode


class Featuriser(Protocol):
    """Makes a context for each arm of each round from the features of a log."""

    @property
    def features(self) -> int:
        """Return the number of features of a context."""
        ...

    @property
    def blocks(self) -> int:
        """Return the number of blocks so far."""
        ...

    def rows(self, rounds: Rounds) -> Contexts:
        """Return the contexts of all arms, in their order."""
        ...


class _Groups(NamedTuple):
    """Hashed features of contexts and arms, a group for each, before they are multiplied."""

    hashes: UInt64[np.ndarray, " features"]
    values: Float[np.ndarray, " features"]
    counts: Int[np.ndarray, " groups"]
    is_read: bool = True  # the kernel could read all of the text


@dataclass(slots=True, kw_only=True)
class Hashed:
    """Features of the context, of the arm, its id and their products, hashed; one block for all arms.

    Contexts are kept with the rounds, so each number of bits is hashed once.
    """

    hashing: Hashing = field(default_factory=lambda: Hashing(bits=BITS))
    blocks: int = 1

    @property
    def features(self) -> int:
        return self.hashing.size

    def rows(self, rounds: Rounds) -> Contexts:
        """Return the contexts of all arms; raise LogFileError if features cannot be read."""
        memo = rounds.memo
        if self.hashing.bits not in memo.contexts:
            if memo.reader is None:
                memo.reader = _Reader(rounds, self.hashing.seed)
            memo.contexts[self.hashing.bits] = memo.reader.contexts(self.hashing)
        return memo.contexts[self.hashing.bits]


class _Reader:
    """Reads the JSON of each context, and of each list of actions, once; every hashing shares the groups."""

    def __init__(self, rounds: Rounds, seed: int) -> None:
        assert rounds.contexts is not None
        # Not the rounds themselves: they hold this reader, and a cycle would stay in memory for a while.
        self._numbers, self._texts, self._sizes = rounds.numbers, rounds.contexts, rounds.sizes
        self._seed = seed_bits(seed)
        used = np.unique(rounds.offered)
        self._offers = [rounds.offers[k] for k in used.tolist()]
        self._offer_of = np.searchsorted(used, rounds.offered)
        contexts, is_read = self._read_contexts(rounds.contexts)
        offers, is_offer_read = self._read_offers()
        self._is_read = is_read & is_offer_read[self._offer_of]
        self._hashes = np.concatenate([contexts.hashes, offers.hashes])
        self._values = np.concatenate([contexts.values, offers.values])
        plain_values(self._values)
        self._counts = np.concatenate([contexts.counts, offers.counts])
        # A round's features and groups are those of its context, then those of its offer.
        n, arms = len(rounds), np.array([len(offer.ids) for offer in self._offers])
        sizes = np.add.reduceat(offers.counts, np.cumsum(arms) - arms)
        self._features = _interleave(contexts.counts, sizes, self._offer_of)
        self._groups = _interleave(np.ones(n, np.int64), arms, self._offer_of)
        self._is_read &= contexts.counts * sizes[self._offer_of] <= MOST_PRODUCTS

    def _read_contexts(self, column: pa.Array) -> tuple[_Groups, np.ndarray]:
        """Return a group for each context, and which could be read; the others have an empty group."""
        parts, n = [], len(column)
        is_read = np.ones(n, bool)
        for first in range(0, n, CHUNK):
            some = column[first : first + CHUNK]
            groups = self._read(_column_text(some), [NEW_FEATURES] * len(some))
            if not groups.is_read:
                single = [self._read(_column_text(some[i : i + 1]), [0]) for i in range(len(some))]
                is_read[first : first + CHUNK] = [group.is_read for group in single]
                groups = _concatenate(group if group.is_read else _NOTHING for group in single)
            parts.append(groups)
        return _concatenate(parts), is_read

    def _read_offers(self) -> tuple[_Groups, np.ndarray]:
        """Return a group for each arm of each offer, and which offers could be read."""
        parts, is_read = [], np.ones(len(self._offers), bool)
        for first in range(0, len(self._offers), CHUNK):
            some = self._offers[first : first + CHUNK]
            groups = self._read(*_offers_text(some))
            if not groups.is_read:
                single = [self._read(*_offers_text([offer])) for offer in some]
                is_read[first : first + CHUNK] = [group.is_read for group in single]
                groups = _concatenate(
                    group if group.is_read else _empty(len(offer.ids))
                    for group, offer in zip(single, some, strict=True)
                )
            parts.append(groups)
        return _concatenate(parts), is_read

    def _read(self, text: UInt8[np.ndarray, " bytes"], kinds: Sequence[int]) -> _Groups:
        return _Groups(*read_groups(text, np.array(kinds), self._seed))

    def contexts(self, hashing: Hashing) -> Contexts:
        """Return the contexts of all arms of all rounds."""
        parts = []
        for first in range(0, len(self._sizes), CHUNK):
            last = min(first + CHUNK, len(self._sizes))
            if self._is_read[first:last].all():
                parts.append(self._part(slice(first, last), hashing))
            else:
                parts += [self._one(i, hashing) for i in range(first, last)]
        return stack(parts)

    def _part(self, some: slice, hashing: Hashing) -> Contexts:
        at = slice(2 * some.start, 2 * some.stop)
        places = spans(self._features[0][at], self._features[1][at])
        groups = spans(self._groups[0][at], self._groups[1][at])
        rows = feature_rows(
            self._hashes[places],
            self._values[places],
            self._counts[groups],
            self._sizes[some],
            _NO_CODES,
            interactions_of(None).chosen,
            hashing.bits,
        )
        return Contexts(rows=rows, features=hashing.size)

    def _one(self, i: int, hashing: Hashing) -> Contexts:
        """Return the contexts of a round, through Python objects if the kernel cannot read it."""
        if self._is_read[i]:
            return self._part(slice(i, i + 1), hashing)
        offer = self._offers[self._offer_of[i]]
        try:
            shared = _objects(json_array(self._texts[i].as_py().encode()))
            arms = [_objects(json_array(features)) for features in offer.features]
            return hashing.rows((shared, arms), list(offer.ids))
        except (FeatureError, msgspec.MsgspecError) as error:
            raise LogFileError(
                f"row {self._numbers[i]}: the features cannot be read: {error}"
            ) from None


def _empty(groups: int) -> _Groups:
    return _Groups(np.empty(0, np.uint64), np.empty(0), np.zeros(groups, np.int64))


_NOTHING = _empty(1)


def _concatenate(parts: Iterable[_Groups]) -> _Groups:
    hashes, values, counts, _ = zip(*parts, strict=True)
    return _Groups(np.concatenate(hashes), np.concatenate(values), np.concatenate(counts))


def _interleave(
    first: Int[np.ndarray, " rounds"],
    second: Int[np.ndarray, " offers"],
    places: Int[np.ndarray, " rounds"],
) -> tuple[Int[np.ndarray, " 2*rounds"], Int[np.ndarray, " 2*rounds"]]:
    """Return where the parts of each round begin, and their sizes: its own, then that of its offer."""
    sizes, starts = np.empty((len(first), 2), np.int64), np.empty((len(first), 2), np.int64)
    sizes[:, 0], sizes[:, 1] = first, second[places]
    starts[:, 0] = np.cumsum(first) - first
    starts[:, 1] = (np.cumsum(second) - second + first.sum())[places]
    return starts.reshape(-1), sizes.reshape(-1)


def _column_text(column: pa.Array) -> UInt8[np.ndarray, " bytes"]:
    """Return JSON texts as arrays of objects, each with an END behind it."""
    offsets, data = column.buffers()[1:]
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    text = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]]
    starts = edges[:-1] - edges[0]
    second = text[starts + 1]  # no JSON document is shorter than an empty array
    if ((text[starts] == ord("[")) & ((second == ord("{")) | (second == ord("]")))).all():
        return np.insert(text, edges[1:] - edges[0], END)
    return _joined_text(json_array(context) for context in column.cast(pa.binary()).to_pylist())


def _offers_text(offers: Iterable[Offer]) -> tuple[UInt8[np.ndarray, " bytes"], list[int]]:
    """Return the ids and the features of arms as text, and the kind of each piece."""
    pieces: list[Any] = []
    for offer in offers:
        pairs = zip(map(str.encode, offer.ids), map(json_array, offer.features), strict=True)
        pieces += chain.from_iterable(pairs)
    return _joined_text(pieces), [NEW_ID, MORE_FEATURES] * (len(pieces) // 2)


def _joined_text(pieces: Iterable[bytes]) -> UInt8[np.ndarray, " bytes"]:
    return np.frombuffer(bytearray(_END).join([*pieces, b""]), np.uint8)


@dataclass(slots=True, kw_only=True)
class Vectors:
    """Contexts that are arrays of numbers; each arm has its own block."""

    features: int
    add_arm: Callable[[str], None] | None = None  # called with each new arm
    places: dict[str, int] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        return len(self.places)

    def rows(self, rounds: Rounds) -> Contexts:
        """Return each vector in the blocks of its arms; raise LogFileError for anything but a vector."""
        for k in dict.fromkeys(rounds.offered.tolist()):
            for id in rounds.offers[k].ids:
                if id not in self.places:
                    self.places[id] = len(self.places)
                    if self.add_arm is not None:
                        self.add_arm(id)
        memo = rounds.memo
        if memo.vectors is None:
            memo.vectors = per_arm(self._matrix(rounds), self.features)
        starts, lengths, _, indices, values = memo.vectors.rows
        tables = [[self.places[id] for id in offer.ids] for offer in rounds.offers]
        blocks = np.concatenate([tables[k] for k in rounds.offered.tolist()]).astype(np.int64)
        every = np.repeat(starts, rounds.sizes), np.repeat(lengths, rounds.sizes)
        return Contexts(rows=Rows(*every, blocks, indices, values), features=self.features)

    def _matrix(self, rounds: Rounds) -> np.ndarray:
        assert rounds.contexts is not None
        texts = rounds.contexts.to_pylist()
        try:
            X = np.array(_vectors(f"[{','.join(texts)}]"), float)
        except (msgspec.MsgspecError, ValueError):
            X = np.empty((0, 0))
        if X.shape == (len(rounds), self.features):
            return X
        for number, text in zip(rounds.numbers.tolist(), texts, strict=True):
            if not is_vector(text) or len(msgspec.json.decode(text)) != self.features:
                raise LogFileError(
                    f"row {number}: the context is {text[:60]}, but an array of {self.features} numbers "
                    "is expected, as in the rows before"
                )
        raise LogFileError(
            f"the contexts from row {rounds.numbers[0]} on are not arrays of numbers"
        )


def is_vector(text: str) -> bool:
    """Return whether a context is an array of numbers.

    >>> is_vector("[0.5, -1]"), is_vector('[{"age": 31}]'), is_vector("[]")
    (True, False, False)
    """
    inner = text.lstrip()[1:].lstrip()[:1]
    return text.lstrip()[:1] == "[" and (inner.isdigit() or inner == "-")


def vector_size(rounds: Rounds) -> int:
    """Return the length of contexts that are vectors; 0 if they are dictionaries, or arms have features."""
    assert rounds.contexts is not None
    first = rounds.contexts[0].as_py()
    has_own = any(
        json_array(features) != b"[]" for features in rounds.offers[rounds.offered[0]].features
    )
    return 0 if has_own or not is_vector(first) else len(msgspec.json.decode(first))


def featuriser_of(rounds: Rounds) -> Featuriser:
    """Return a featuriser for a log, given its first rounds."""
    size = vector_size(rounds)
    return Vectors(features=size) if size else Hashed()
