"""The values that policies, models and users exchange."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

Indices = Float[np.ndarray, " arms"]
Probabilities = Float[np.ndarray, " arms"]
ArmId = str | int


class Encoding(StrEnum):
    """How arms see features.

    DISJOINT: one vector x for all arms, which arm a sees in its own block, (0, …, x, …, 0) ∈ ℝ^{dK}.
    PER_ARM: one row of features for each arm; the arms may differ from round to round.
    """

    DISJOINT = "disjoint"
    PER_ARM = "per-arm"


class Rows(NamedTuple):
    """Sparse contexts; row i has `lengths[i]` entries from `starts[i]` on, in block `blocks[i]`.

    Rows may share entries: the disjoint encoding is one vector in many blocks. A row has no index twice.
    """

    starts: Int[np.ndarray, " n"]
    lengths: Int[np.ndarray, " n"]
    blocks: Int[np.ndarray, " n"]
    indices: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]


class Scales(NamedTuple):
    """What an encoder has seen of features, by the hash of their name; learning changes it in place."""

    counts: Float[np.ndarray, " buckets"]  # how often a feature came
    names: UInt64[np.ndarray, " places"]  # of numbers; 0: the place is free
    moments: Float[np.ndarray, "places 3"]  # of numbers: count, mean and variance
    used: Int[np.ndarray, " 1"]  # places that are not free


class Moments(NamedTuple):
    """What was seen of features that are known by their place; learning changes it in place.

    Mean and variance are of the values that are not 0, so that the cost of a sparse row is that of its entries.
    """

    rows: Float[np.ndarray, " 1"]  # how many were seen
    counts: Float[np.ndarray, " features"]  # in how many of them a feature was not 0
    means: Float[np.ndarray, " features"]
    variances: Float[np.ndarray, " features"]


def rows_at(rows: Rows, at: Any) -> Rows:
    """Return the rows at some places, over the same entries."""
    starts, lengths, blocks, indices, values = rows
    return Rows(starts[at], lengths[at], blocks[at], indices, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """The contexts of a round's arms; they are never expanded to dK numbers."""

    rows: Rows
    features: int  # d, the features of one block

    def __len__(self) -> int:
        return len(self.rows.blocks)

    def row(self, arm: int) -> "Contexts":
        """Return a copy of the context of one arm, so that keeping it does not keep the others in memory."""
        starts, lengths, blocks, indices, values = self.rows
        start, length = int(starts[arm]), int(lengths[arm])
        end, after = start + length, arm + 1
        copy = Rows(
            np.zeros(1, np.int64),
            lengths[arm:after].copy(),
            blocks[arm:after].copy(),
            indices[start:end].copy(),
            values[start:end].copy(),
        )
        return Contexts(rows=copy, features=self.features)

    def part(self, at: Any) -> "Contexts":
        """Return the contexts of some arms, by a slice or their places."""
        return Contexts(rows=rows_at(self.rows, at), features=self.features)

    def dense(self) -> Float[np.ndarray, "arms features"]:
        """Return the features of each arm as a row, without its block."""
        X = np.zeros((len(self), self.features))
        for i, (start, length) in enumerate(zip(self.rows.starts, self.rows.lengths, strict=True)):
            entries = slice(start, start + length)
            X[i, self.rows.indices[entries]] = self.rows.values[entries]
        return X


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The context that was played, and the reward it paid."""

    context: Contexts  # of length one
    reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Observations in the order in which they are learned."""

    contexts: Contexts  # row i was played
    rewards: Float[np.ndarray, " n"]
    is_fitted: Bool[np.ndarray, " n"]  # the others are only remembered, for later fits
    rng: Callable[[int], np.random.Generator]  # the stream of observation i
    # Models call it after a restart, with the place of the observation and how many were forgotten.
    restarted: Callable[[int, int], None] = lambda _at, _forgotten: None

    def __len__(self) -> int:
        return len(self.rewards)

    @staticmethod
    def of(seen: Observation, rng: np.random.Generator) -> "Batch":
        """Return a batch of one observation, which is fitted."""
        rewards, is_fitted = np.array([seen.reward], np.float64), np.array([True])
        return Batch(contexts=seen.context, rewards=rewards, is_fitted=is_fitted, rng=lambda _: rng)

    def one(self, i: int) -> "Batch":
        """Return a batch of one of the observations."""
        only = slice(i, i + 1)
        return Batch(
            contexts=self.contexts.row(i),
            rewards=self.rewards[only],
            is_fitted=self.is_fitted[only],
            rng=lambda _: self.rng(i),
            restarted=lambda _, forgotten: self.restarted(i, forgotten),
        )

    def singles(self) -> "Iterator[tuple[Batch, np.random.Generator]]":
        """Yield each observation as a batch of one, with the stream that both the batch and the caller use."""
        for i in range(len(self)):
            rng = self.rng(i)
            yield replace(self.one(i), rng=[rng].__getitem__), rng

    def observation(self, i: int) -> Observation:
        """Return one of the observations."""
        return Observation(context=self.contexts.row(i), reward=float(self.rewards[i]))


class Chosen(NamedTuple):
    """The arm to play, by its place among those offered, and why."""

    place: int
    indices: Indices
    probabilities: Probabilities | None  # None if the policy knows none


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A bandit's answer: the arm to play, and what is needed to learn from its reward."""

    id: str
    arm: ArmId
    arms: tuple[ArmId, ...]  # the eligible arms, in the order of `indices`
    indices: Indices
    propensity: float | None  # P(arm), or None if the policy knows none
    probabilities: Probabilities | None = field(repr=False)  # of all eligible arms
    context: Contexts = field(repr=False)  # of the arm

    @staticmethod
    def of(
        id: str, arms: Sequence[ArmId], contexts: Contexts, chosen: Chosen, start: int = 0
    ) -> "Decision":
        """Return a decision among arms whose contexts begin at `start`."""
        place, indices, chances = chosen
        return Decision(
            id=id,
            arm=arms[place],
            arms=tuple(arms),
            indices=indices,
            propensity=None if chances is None else float(chances[place]),
            probabilities=chances,
            context=contexts.row(start + place),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain values, which JSON can hold; `from_dict` reads them again."""
        rows = self.context.rows
        return {
            "id": self.id,
            "arm": self.arm,
            "arms": list(self.arms),
            "indices": self.indices.tolist(),
            "propensity": self.propensity,
            "probabilities": None if self.probabilities is None else self.probabilities.tolist(),
            "context": {
                "features": self.context.features,
                "block": int(rows.blocks[0]),
                "indices": rows.indices.tolist(),
                "values": rows.values.tolist(),
            },
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Decision":
        """Return the decision that `as_dict` was called on."""
        context, chances = values["context"], values["probabilities"]
        indices = np.array(context["indices"], np.int32)
        rows = Rows(
            np.zeros(1, np.int64),
            np.array([len(indices)], np.int64),
            np.array([context["block"]], np.int64),
            indices,
            np.array(context["values"], np.float64),
        )
        return Decision(
            id=values["id"],
            arm=values["arm"],
            arms=tuple(values["arms"]),
            indices=np.array(values["indices"], np.float64),
            propensity=values["propensity"],
            probabilities=None if chances is None else np.array(chances, np.float64),
            context=Contexts(rows=rows, features=context["features"]),
        )
