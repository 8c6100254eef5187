"""A batch of a log as arrays: the arms that were offered, the one that was played, and its reward."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from rbmle.core.types import Contexts
from rbmle.evaluation.logs.lines import TOLERANCE
from rbmle.evaluation.logs.table import DecisionLog, LogBatch, LogReading

PLAIN = ("actions", "arm", "propensity", "reward", "eligible")  # columns that need no features
COLUMNS = ("context", *PLAIN)
LOGGED = ("probabilities", "baseline", "preferred")  # what the logging policy could have done


_NONE = msgspec.Raw(b"[]")


class _Id(msgspec.Struct, gc=False):
    id: str


class _Action(msgspec.Struct):
    id: str | int
    features: msgspec.Raw = _NONE


_decode_ids = msgspec.json.Decoder(list[_Id]).decode
_decode = msgspec.json.Decoder(list[_Action | str | int]).decode


class Offer(msgspec.Struct, gc=False, frozen=True):
    """The arms of a round. There may be millions, so features stay text until they are read."""

    ids: tuple[str, ...]
    text: str = "[]"  # JSON of the actions

    @property
    def features(self) -> list[Any]:
        """Return the features of each arm as JSON."""
        by_id = {
            str(action.id if isinstance(action, _Action) else action): action.features
            if isinstance(action, _Action)
            else _NONE
            for action in _decode(self.text)
        }
        return [by_id[id] for id in self.ids]

    def place(self, arm: str | None) -> int:
        """Return the place of an arm; −1 if it was not offered."""
        try:
            return self.ids.index(arm)
        except ValueError:
            return -1


_validate = msgspec.json.Decoder(list[Any] | dict[str, Any]).decode


@dataclass(slots=True)
class FeatureMemo:
    """The contexts of some rounds, made by `rbmle.evaluation.features` when they are first needed."""

    reader: Any = None
    contexts: dict[int, Contexts] = field(default_factory=dict)  # by the bits of their hashes
    vectors: Contexts | None = None


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Rounds that make sense; the arms of round i are `sizes[i]` from `starts[i]` on, in flat arrays."""

    numbers: Int[np.ndarray, " rounds"]  # of rows or lines of the file
    contexts: pa.Array | None  # JSON; None if they were not asked for
    offers: list[Offer]  # those that differ
    offered: Int[np.ndarray, " rounds"]  # which of the offers
    sizes: Int[np.ndarray, " rounds"]
    played: Int[np.ndarray, " rounds"]  # the place of the arm
    propensities: Float[np.ndarray, " rounds"]  # NaN: not known
    rewards: Float[np.ndarray, " rounds"]
    times: Int[np.ndarray, " rounds"] | None = (
        None  # milliseconds since the epoch; None: not asked for
    )
    # the probability of each arm, NaN in rounds without them; None: not asked for
    logged: Float[np.ndarray, " arms"] | None = None
    # places of the baseline actions, −1: not eligible, or the round has none; None: not asked for
    baselines: Int[np.ndarray, " rounds"] | None = None
    is_of_policy: Bool[np.ndarray, " rounds"] | None = None  # no apprentice; None: not asked for
    memo: FeatureMemo = field(default_factory=FeatureMemo, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def starts(self) -> Int[np.ndarray, " rounds"]:
        """The place of the first arm of each round."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def at(self) -> Int[np.ndarray, " rounds"]:
        """The places of the played arms."""
        return self.starts + self.played

    def totals(self, values: Float[np.ndarray, " arms"]) -> Float[np.ndarray, " rounds"]:
        """Return the sum over the arms of each round."""
        return np.add.reduceat(values, self.starts) if len(self) else np.zeros(0)

    def part(self, at: slice | Int[np.ndarray, " some"]) -> "Rounds":
        """Return the rounds at a slice or at places."""
        flat = spans(self.starts[at], self.sizes[at])
        contexts = {bits: every.part(flat) for bits, every in self.memo.contexts.items()}
        vectors = None if self.memo.vectors is None else self.memo.vectors.part(at)
        return Rounds(
            numbers=self.numbers[at],
            contexts=None if self.contexts is None else _take_rows(self.contexts, at),
            offers=self.offers,
            offered=self.offered[at],
            sizes=self.sizes[at],
            played=self.played[at],
            propensities=self.propensities[at],
            rewards=self.rewards[at],
            times=None if self.times is None else self.times[at],
            logged=None if self.logged is None else self.logged[flat],
            baselines=None if self.baselines is None else self.baselines[at],
            is_of_policy=None if self.is_of_policy is None else self.is_of_policy[at],
            memo=FeatureMemo(contexts=contexts, vectors=vectors),
        )


def spans(
    starts: Int[np.ndarray, " rounds"], sizes: Int[np.ndarray, " rounds"]
) -> Int[np.ndarray, " arms"]:
    """Return the places from each start on, as many as its size.

    >>> spans(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def _take_rows(column: pa.Array, at: slice | Int[np.ndarray, " some"]) -> pa.Array:
    return column[at] if isinstance(at, slice) else column.take(pa.array(at))


def rounds_of(
    log: DecisionLog,
    reading: LogReading,
    *,
    has_contexts: bool,
    default_reward: float,
    has_times: bool = False,
    has_logged: bool = False,
) -> Iterator[Rounds]:
    """Yield the rounds of a log, a batch at a time; `reading` handles bad rows."""
    more = (*(("time",) if has_times else ()), *(LOGGED if has_logged else ()))
    columns = (*(COLUMNS if has_contexts else PLAIN), *more)
    for batch in log.batches(reading, columns):
        rounds = _decode_batch(batch, reading, default_reward)
        if len(rounds):
            yield rounds


def _decode_batch(batch: LogBatch, reading: LogReading, default_reward: float) -> Rounds:
    """Return a batch as rounds, without invalid ones."""
    table = batch.table
    offers, offered, faults = _offers(table)
    played = _places(table["arm"], offers, offered)
    propensities = table["propensity"].to_numpy(zero_copy_only=False)
    rewards = table["reward"].to_numpy(zero_copy_only=False)
    is_unrewarded = np.isnan(rewards)
    rewards = np.where(is_unrewarded, default_reward, rewards)
    is_good = (played >= 0) & ~(propensities <= 0) & ~(propensities > 1) & np.isfinite(rewards)
    for row in np.flatnonzero(~is_good).tolist():
        why = faults.get(int(offered[row])) or _why(
            table["arm"][row].as_py(),
            offers[offered[row]],
            float(propensities[row]),
            float(rewards[row]),
        )
        reading.fault(f"{batch.unit} {batch.numbers[row]}", why)
    sizes = np.array([len(offer.ids) for offer in offers], np.int64)[offered]
    logged = baselines = is_of_policy = None
    if "probabilities" in table.schema.names:
        logged = _logging_probabilities(batch, offers, offered, sizes, played, is_good, reading)
        baselines = _baselines(table, offers, offered)
        is_of_policy = np.asarray(pc.is_null(table["preferred"]))
    contexts = _contexts(table, batch, is_good, reading)
    reading.unrewarded += int((is_unrewarded & is_good).sum())
    return Rounds(
        numbers=batch.numbers[is_good],
        contexts=contexts
        if contexts is None or is_good.all()
        else contexts.filter(pa.array(is_good)),
        offers=offers,
        offered=offered[is_good],
        sizes=sizes[is_good],
        played=played[is_good],
        propensities=propensities[is_good],
        rewards=rewards[is_good],
        times=_times(table, is_good),
        logged=None if logged is None else logged[np.repeat(is_good, sizes)],
        baselines=None if baselines is None else baselines[is_good],
        is_of_policy=None if is_of_policy is None else is_of_policy[is_good],
    )


def _logging_probabilities(
    batch: LogBatch,
    offers: list[Offer],
    offered: Int[np.ndarray, " rounds"],
    sizes: Int[np.ndarray, " rounds"],
    played: Int[np.ndarray, " rounds"],
    is_good: Bool[np.ndarray, " rounds"],
    reading: LogReading,
) -> Float[np.ndarray, " arms"]:
    """Return the probabilities of all arms of all rounds; unset `is_good` where they are invalid.

    With one or two arms, the propensity of the played one determines them.
    """
    table, column = batch.table, batch.table["probabilities"]
    starts = np.cumsum(sizes) - sizes
    chances = np.full(int(sizes.sum()), np.nan)
    propensities = table["propensity"].to_numpy(zero_copy_only=False)
    few = np.flatnonzero(is_good & (sizes <= 2) & ~np.isnan(propensities))
    chances[spans(starts[few], sizes[few])] = np.repeat(1 - propensities[few], sizes[few])
    chances[starts[few] + played[few]] = propensities[few]
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy()
    rows = np.flatnonzero(is_good & (lengths == sizes))
    if len(rows):
        values = column.values.to_numpy(zero_copy_only=False)
        places = spans(column.offsets.to_numpy()[rows].astype(np.int64), sizes[rows])
        here = spans(starts[rows], sizes[rows])
        chances[here] = values[places]
        _put_in_order(table["eligible"], offers, offered, rows, starts, chances)
        ends = np.cumsum(sizes[rows]) - sizes[rows]
        known = propensities[rows]
        differences = np.where(
            np.isnan(known), 1.0, np.abs(chances[(starts + played)[rows]] / known - 1)
        )
        do_fit = (
            (np.minimum.reduceat(chances[here], ends) >= 0)
            & (np.abs(np.add.reduceat(chances[here], ends) - 1) <= TOLERANCE)
            & ((differences <= TOLERANCE) | np.isnan(known))
        )
        bad = rows[~do_fit]
    else:
        bad = rows
    bad = np.concatenate([bad, np.flatnonzero(is_good & (lengths >= 0) & (lengths != sizes))])
    for row in np.sort(bad).tolist():
        why = (
            f"the probabilities are {_short(str(column[row].as_py()))}, but one for each of the "
            f"{sizes[row]} eligible actions is expected; they must sum to 1, and that of the arm must be its "
            "propensity"
        )
        reading.fault(f"{batch.unit} {batch.numbers[row]}", why)
        is_good[row] = False
    return chances


def _put_in_order(
    eligible: pa.Array,
    offers: list[Offer],
    offered: Int[np.ndarray, " rounds"],
    rows: Int[np.ndarray, " some"],
    starts: Int[np.ndarray, " rounds"],
    chances: Float[np.ndarray, " arms"],
) -> None:
    """Reorder values from the order of `eligible` to that of the actions."""
    rows = rows[np.asarray(pc.is_valid(eligible))[rows]]
    if not len(rows):
        return
    encoded = pc.dictionary_encode(eligible.take(pa.array(rows)).flatten())
    codes = {id: code for code, id in enumerate(encoded.dictionary.to_pylist())}
    stated = encoded.indices.to_numpy()
    tables = {
        k: np.array([codes.get(id, -1) for id in offers[k].ids])
        for k in np.unique(offered[rows]).tolist()
    }
    wanted = [tables[k] for k in offered[rows].tolist()]
    if np.array_equal(stated, np.concatenate(wanted)):
        return
    first = 0
    for row, order in zip(rows.tolist(), wanted, strict=True):
        part = stated[first : first + len(order)].tolist()
        first += len(order)
        here = slice(starts[row], starts[row] + len(order))
        chances[here] = chances[here][[part.index(code) for code in order.tolist()]]


def _baselines(
    table: pa.RecordBatch, offers: list[Offer], offered: Int[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"]:
    """Return the places of the baseline actions; −1: not eligible, or the row has none."""
    if table["baseline"].null_count == len(table):
        return np.full(len(table), -1, np.int64)
    return _places(table["baseline"], offers, offered)


def _places(
    arms: pa.Array, offers: list[Offer], offered: Int[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"]:
    """Return the place of an arm among those of each round, −1 if it was not offered."""
    encoded = pc.dictionary_encode(arms, null_encoding="encode")
    ids = encoded.dictionary.to_pylist()
    pairs, places = np.unique(offered * len(ids) + encoded.indices.to_numpy(), return_inverse=True)
    known = [offers[pair // len(ids)].place(ids[pair % len(ids)]) for pair in pairs.tolist()]
    return np.array(known, np.int64)[places]


def _times(
    table: pa.RecordBatch, is_good: Bool[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"] | None:
    """Return the times of rows in milliseconds, 0 where there is none; None if they were not asked for."""
    if "time" not in table.schema.names:
        return None
    milliseconds = pc.fill_null(pc.cast(table["time"], pa.int64()), 0)
    return milliseconds.to_numpy(zero_copy_only=False)[is_good]


def _contexts(
    table: pa.RecordBatch,
    batch: LogBatch,
    is_good: Bool[np.ndarray, " rounds"],
    reading: LogReading,
) -> pa.Array | None:
    """Return the contexts; None if they were not asked for. Unset `is_good` where one is not JSON."""
    if "context" not in table.schema.names:
        return None
    contexts = pc.fill_null(table["context"], "[]")
    for row, text in enumerate(contexts.to_pylist()):
        try:
            _validate(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            if is_good[row]:
                why = f"the context is {_short(text)}, but JSON is expected: an object or an array"
                reading.fault(f"{batch.unit} {batch.numbers[row]}", why)
                is_good[row] = False
    return contexts


def _offers(
    table: pa.RecordBatch,
) -> tuple[list[Offer], Int[np.ndarray, " rounds"], dict[int, str]]:
    """Return the distinct offers, the number of the offer of each row, and what is wrong with some offers."""
    encoded = table["actions"]
    if not pa.types.is_dictionary(encoded.type):
        encoded = pc.dictionary_encode(encoded)
    texts = encoded.dictionary.to_pylist()
    codes = pc.fill_null(encoded.indices, len(texts)).to_numpy().astype(np.int64)
    offers, faults = [], {}
    for code, text in enumerate([*texts, None]):
        offer = _offer(text)
        if isinstance(offer, str):
            faults[code] = offer
            offer = Offer(())
        offers.append(offer)
    lengths = pc.list_value_length(table["eligible"])
    some = pc.fill_null(lengths, -1).to_numpy()
    sizes = np.array([len(offer.ids) for offer in offers])[codes]
    parts: dict[tuple[int, tuple[str, ...]], int] = {}
    for row in np.flatnonzero((some >= 0) & (some != sizes)).tolist():
        key = int(codes[row]), tuple(table["eligible"][row].as_py())
        if key not in parts:
            parts[key] = len(offers)
            offers.append(_part(offers[key[0]], key[1]))
        codes[row] = parts[key]
    return offers, codes, faults


@lru_cache(maxsize=2**12)
def _offer(text: str | None) -> Offer | str:
    """Return the actions of a row, or what is wrong with them."""
    try:
        ids = [
            action.id for action in _decode_ids(text or "")
        ]  # much faster than decoding everything
    except (msgspec.MsgspecError, UnicodeDecodeError):
        try:
            others = _decode(text or "")
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return (
                f"the actions are {_short(text)}, but a JSON array is expected, as in "
                f'[{{"id": "tea", "features": []}}] or ["tea"] ({error})'
            )
        ids = [str(action.id if isinstance(action, _Action) else action) for action in others]
    if len(set(ids)) != len(ids) or not ids:
        return f"the actions are {_short(text)}, but at least one is expected, and their ids must differ"
    return Offer(tuple(ids), text or "")


def _part(offer: Offer, eligible: tuple[str, ...]) -> Offer:
    return Offer(tuple(id for id in offer.ids if id in eligible), offer.text)


def json_array(features: Any) -> bytes:
    """Return features as a JSON array of objects; a single object, or an array of numbers, is wrapped.

    >>> json_array(b'{"age": 31}'), json_array(b"[0.5, 1]"), json_array(b"null")
    (b'[{"age": 31}]', b'[{"x":[0.5, 1]}]', b'[]')
    """
    text = bytes(features)
    if text[:1] == b"{":
        return b"[%s]" % text
    if text == b"null":
        return b"[]"
    inner = text[1:].lstrip()[:1]
    return text if inner in (b"{", b"]") else b'[{"x":%s}]' % text


def _why(arm: str | None, offer: Offer, propensity: float, reward: float) -> str:
    if arm not in offer.ids:
        ids = ", ".join(map(repr, offer.ids[:8])) or "none"
        return f"the arm is {arm!r}, but the eligible actions are {ids}"
    if not 0 < propensity <= 1 and not np.isnan(propensity):
        return (
            f"the propensity is {propensity:g}, but the probability of a played arm must be above 0 and at "
            "most 1"
        )
    return f"the reward is {reward}, but a finite number is expected"


def _short(text: str | None) -> str:
    return repr(text) if text is None or len(text) <= 60 else repr(text[:57] + "…")
