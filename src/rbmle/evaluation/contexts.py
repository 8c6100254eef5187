"""From the features of a log to contexts: vectors as they are, and everything else hashed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np

from rbmle.core.contexts import per_arm, stacked
from rbmle.core.errors import FeatureError
from rbmle.core.types import Contexts, Rows
from rbmle.evaluation.errors import LogFileError
from rbmle.evaluation.rounds import Rounds, json_array
from rbmle.features import Hashing
from rbmle.features.json_rows import Offered, json_rows

CHUNK = 256  # rounds that a kernel reads at once
BITS = 12
_vectors = msgspec.json.Decoder(list[list[float]]).decode
_objects = msgspec.json.Decoder(list[dict[str, object]]).decode


class Featuriser(Protocol):
    """What turns the features of rounds into a context for each arm of each round."""

    @property
    def features(self) -> int:
        """Return how many features a context has."""
        ...

    @property
    def blocks(self) -> int:
        """Return how many blocks there are so far."""
        ...

    def rows(self, rounds: Rounds) -> Contexts:
        """Return the contexts of all arms, in their order."""
        ...


@dataclass(slots=True, kw_only=True)
class Hashed:
    """Features of the context, of the arm, its id and their products, hashed; one block for all arms."""

    hashing: Hashing = field(default_factory=lambda: Hashing(bits=BITS))
    blocks: int = 1

    @property
    def features(self) -> int:
        """Return how many slots there are."""
        return self.hashing.size

    def rows(self, rounds: Rounds) -> Contexts:
        """Return the contexts of all arms; raise LogFileError for features that are none."""
        assert rounds.contexts is not None
        texts = [json_array(text.encode()) for text in rounds.contexts.to_pylist()]
        offered = rounds.offered.tolist()
        own = {k: [json_array(one) for one in rounds.offers[k].features] for k in set(offered)}
        offers = [
            Offered([text], list(rounds.offers[k].ids), own[k])
            for text, k in zip(texts, offered, strict=True)
        ]
        parts = []
        for first in range(0, len(offers), CHUNK):
            some = offers[first : first + CHUNK]
            found = json_rows(self.hashing, some) if self.hashing.interactions is None else None
            if found is None:
                numbers = rounds.numbers[first : first + CHUNK].tolist()
                parts += [
                    self._slowly(one, number) for one, number in zip(some, numbers, strict=True)
                ]
            else:
                parts.append(Contexts(rows=found, features=self.features))
        return stacked(parts)

    def _slowly(self, offered: Offered, number: int) -> Contexts:
        """Return the contexts of a round that a kernel cannot read."""
        try:
            shared, own = _objects(offered.context[0]), [_objects(one) for one in offered.features]
            return self.hashing.rows((shared, own), list(offered.ids))
        except (FeatureError, msgspec.MsgspecError) as error:
            raise LogFileError(f"row {number}: the features cannot be read: {error}") from None


@dataclass(slots=True, kw_only=True)
class Vectors:
    """Contexts that are arrays of numbers, which each arm sees in a block of its own."""

    features: int
    add_arm: Callable[[str], None] | None = None  # is told of each arm that comes
    places: dict[str, int] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """Return how many arms came so far."""
        return len(self.places)

    def rows(self, rounds: Rounds) -> Contexts:
        """Return each vector in the blocks of its arms; raise LogFileError for what is no vector."""
        assert rounds.contexts is not None
        for k in dict.fromkeys(rounds.offered.tolist()):
            for id in rounds.offers[k].ids:
                if id not in self.places:
                    self.places[id] = len(self.places)
                    if self.add_arm is not None:
                        self.add_arm(id)
        X = per_arm(self._matrix(rounds), self.features)
        starts, lengths, _, indices, values = X.rows
        own = [[self.places[id] for id in offer.ids] for offer in rounds.offers]
        blocks = np.concatenate([own[k] for k in rounds.offered.tolist()]).astype(np.int64)
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
        raise LogFileError(f"the contexts from row {rounds.numbers[0]} on are no arrays of numbers")


def is_vector(text: str) -> bool:
    """Return whether a context is an array of numbers.

    >>> is_vector("[0.5, -1]"), is_vector('[{"age": 31}]'), is_vector("[]")
    (True, False, False)
    """
    inner = text.lstrip()[1:].lstrip()[:1]
    return text.lstrip()[:1] == "[" and (inner.isdigit() or inner == "-")


def are_vectors(rounds: Rounds) -> int:
    """Return how many numbers contexts are; 0 if they are dictionaries, or arms have features."""
    assert rounds.contexts is not None
    first = rounds.contexts[0].as_py()
    has_own = any(json_array(own) != b"[]" for own in rounds.offers[rounds.offered[0]].features)
    return 0 if has_own or not is_vector(first) else len(msgspec.json.decode(first))


def featuriser_of(rounds: Rounds) -> Featuriser:
    """Return what reads the features of a log whose first rounds are given."""
    size = are_vectors(rounds)
    return Vectors(features=size) if size else Hashed()
