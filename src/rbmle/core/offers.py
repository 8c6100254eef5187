"""Arms by their ids, and the contexts that a user's features give them."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbmle.core.checks import as_list, check_arm_id, whole_number
from rbmle.core.encoding import Encoder, disjoint, every_in_blocks, per_arm, stack
from rbmle.core.errors import ArmError, ContextError, EligibilityError, SettingError
from rbmle.core.types import ArmId, Contexts, Decision, Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The ids of arms in the order of their blocks, and which of them are retired."""

    ids: tuple[ArmId, ...]
    retired: frozenset[ArmId] = frozenset()
    _blocks: dict[ArmId, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        blocks: dict[ArmId, int] = {}
        for id in self.ids:
            check_arm_id(id)
            if id in blocks:
                raise ArmError(f"arm {id!r} is listed twice; arm ids must differ")
            blocks[id] = len(blocks)
        object.__setattr__(self, "_blocks", blocks)

    @staticmethod
    def of(arms: int | Iterable[ArmId]) -> "Arms":
        """Return arms with the given ids, or n of them with the ids 0 … n − 1."""
        if isinstance(arms, int | float | complex | np.number | np.bool_):
            count = whole_number("arms", arms)
            if count < 1:
                raise SettingError(f"`arms` must be at least 1, got {count}")
            return Arms(ids=tuple(range(count)))
        ids = tuple(_plain(id) for id in as_list("arms", arms))
        if not ids:
            raise SettingError("`arms` is empty; a bandit needs at least one arm")
        return Arms(ids=ids)

    @property
    def active(self) -> tuple[ArmId, ...]:
        """Return the arms that may be played."""
        return tuple(id for id in self.ids if id not in self.retired) if self.retired else self.ids

    def block(self, id: ArmId) -> int:
        """Return the block of an arm, retired or not."""
        if type(id) is not str and type(id) is not int:
            check_arm_id(id)
        try:
            return self._blocks[id]
        except KeyError:
            raise ArmError(
                f"there is no arm {id!r}; there are {_some(self.ids)}; add it with add_arm({id!r})"
            ) from None

    def check_active(self, id: ArmId) -> None:
        """Raise ArmError for an arm that does not exist or is retired."""
        self.block(id)
        if id in self.retired:
            raise ArmError(f"arm {id!r} is retired; add_arm({id!r}) brings it back")

    def with_arm(self, id: ArmId) -> "Arms":
        """Return these arms and one more, or with a retired one back in play."""
        id = _plain(id)
        check_arm_id(id)
        if id in self.retired:
            return Arms(ids=self.ids, retired=self.retired - {id})
        if id in self._blocks:
            raise ArmError(f"arm {id!r} is already in play; give the new arm another id")
        return Arms(ids=(*self.ids, id), retired=self.retired)

    def without(self, id: ArmId) -> "Arms":
        """Return these arms with one of them retired."""
        self.block(id)
        if id in self.retired:
            raise ArmError(f"arm {id!r} is retired already; add_arm({id!r}) brings it back")
        if len(self.retired) + 1 == len(self.ids):
            raise ArmError(f"arm {id!r} is the last one in play; add another before you retire it")
        return Arms(ids=self.ids, retired=self.retired | {id})


def _plain(id: Any) -> ArmId:
    """Return an id as Python's own string or integer; NumPy's cannot be saved."""
    if isinstance(id, np.str_):
        return str(id)
    return int(id) if isinstance(id, np.integer) else id


def _some(ids: tuple[ArmId, ...]) -> str:
    """Return the first ids in words."""
    shown = ", ".join(repr(id) for id in ids[:8])
    return shown if len(ids) <= 8 else f"{shown} and {len(ids) - 8} more"


Offer = tuple[Sequence[ArmId], Contexts]  # the eligible arms, and their contexts

# What to do about features of one round where many are expected, or the other way round.
USE_DECIDE = "for one round, use decide"
USE_LEARN = "for one round, use learn(x, arm=…, reward=…)"
USE_PARTIAL_FIT = (
    "learn takes the features of one round; for many, use partial_fit(X, arms, rewards)"
)
ROW_OF_ARM = (
    "learn takes the row of the arm that was played, as in X[i]; for many rounds, use "
    "partial_fit(X, arms, rewards)"
)
ORDER = "the order of arguments is partial_fit(X, arms, rewards)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """How a bandit turns the features it is given into contexts."""

    encoding: Encoding
    encoder: Encoder

    @property
    def features(self) -> int:
        """Return the number of features of a context."""
        return self.encoder.size

    def of_round(self, x: Any, eligible: Sequence[ArmId] | None, arms: Arms | None) -> Offer:
        """Return the eligible arms of a round and their contexts."""
        if self.encoding is Encoding.PER_ARM:
            return self._rows(x, eligible, arms)
        assert arms is not None  # a bandit with disjoint contexts has arms
        ids = _eligible(eligible, arms)
        return ids, disjoint(self.encoder.row(x, None), _blocks(ids, arms), self.features)

    def of_rounds(
        self, X: Any, eligible: Sequence[ArmId] | None, arms: Arms | None
    ) -> tuple[Sequence[Sequence[ArmId]], Contexts]:
        """Return the eligible arms of each round, and the contexts of all rounds stacked."""
        if self.encoding is Encoding.PER_ARM:
            offers = [self._rows(x, eligible, arms) for x in _rounds(X)]
            if not offers:
                raise ContextError("there are no rounds to decide; give one matrix for each round")
            return [ids for ids, _ in offers], stack([contexts for _, contexts in offers])
        assert arms is not None  # as above
        ids = _eligible(eligible, arms)
        rounds = per_arm(self.encoder.rows(X, None), self.features, USE_DECIDE)
        contexts = every_in_blocks(rounds, _blocks(ids, arms))
        return [ids] * (len(contexts) // len(ids)), contexts

    def of_played(self, source: Any, arm: ArmId | None, arms: Arms | None) -> Contexts:
        """Return the context of a decision, or of an arm that was played in a context."""
        if isinstance(source, Decision):
            if arm is not None:
                raise ArmError(
                    f"arm {arm!r} was given with a decision for arm {source.arm!r}; give one of the two"
                )
            return self._context_of(source, arms)
        if arm is None and (arms or self.encoding is Encoding.DISJOINT):
            raise ArmError(
                "the arm is missing; use learn(x, arm=…, reward=…) or learn(decision, reward)"
            )
        is_per_arm = self.encoding is Encoding.PER_ARM
        if arm is not None:
            check_arm_id(arm)
        row = self.encoder.row(source, arm if is_per_arm else None)
        advice = ROW_OF_ARM if is_per_arm else USE_PARTIAL_FIT
        return self.put_in_block(
            disjoint(row, np.zeros(1, np.int64), self.features, advice), arm, arms
        )

    def of_logged(self, X: Any, arms: Sequence[ArmId], rewards: int) -> Contexts:
        """Return the context of each arm that was played; raise ContextError if their numbers differ."""
        named = arms if self.encoding is Encoding.PER_ARM else None
        contexts = per_arm(self.encoder.rows(X, named), self.features, USE_LEARN)
        if not len(contexts) == len(arms) == rewards:
            raise ContextError(
                f"there are {len(contexts)} contexts, {len(arms)} arms and {rewards} rewards; a round "
                "has one of each, so give equally many"
            )
        return contexts

    def check(self, contexts: Contexts, rewards: int) -> None:
        """Raise ContextError if contexts have other features than this bandit, or do not match the rewards."""
        if contexts.features != self.features or len(contexts) != rewards:
            raise ContextError(
                f"there are {len(contexts)} contexts of {contexts.features} features and {rewards} "
                f"rewards, but this bandit has {self.features} features; give one reward for each context"
            )

    def put_in_blocks(
        self, contexts: Contexts, ids: Sequence[ArmId], arms: Arms | None
    ) -> Contexts:
        """Return contexts with each in the block of its arm."""
        rows = [self.put_in_block(contexts.row(i), id, arms) for i, id in enumerate(ids)]
        return stack(rows) if rows else contexts

    def put_in_block(self, context: Contexts, arm: ArmId | None, arms: Arms | None) -> Contexts:
        """Return a context in the block of an arm."""
        block = arms.block(arm) if arms and arm is not None else 0
        if self.encoding is Encoding.PER_ARM or context.rows.blocks[0] == block:
            return context
        rows = context.rows._replace(blocks=np.array([block], np.int64))
        return Contexts(rows=rows, features=context.features)

    def _context_of(self, decision: Decision, arms: Arms | None) -> Contexts:
        """Return the context of a decision, checked."""
        if decision.context.features != self.features:
            raise ContextError(
                f"decision {decision.id} has {decision.context.features} features, but this bandit has "
                f"{self.features}; it was made by another bandit"
            )
        return self.put_in_block(decision.context, decision.arm, arms)

    def _rows(self, X: Any, eligible: Sequence[ArmId] | None, arms: Arms | None) -> Offer:
        """Return the eligible arms, one for each row."""
        named = _eligible(eligible, arms) if arms or eligible is not None else None
        contexts = per_arm(self.encoder.rows(X, named), self.features)
        n = len(contexts)
        ids = range(n) if named is None else named
        if len(ids) != n or n == 0:
            raise EligibilityError(
                f"there are {n} rows of features for {len(ids)} eligible arms; give one row for each "
                "eligible arm, in their order, and at least one"
            )
        return ids, contexts


def check_order(ids: Sequence[Any], rewards: Sequence[Any], arms: Arms | None) -> None:
    """Raise ArmError for invalid ids, or if arms and rewards were swapped; warn if it looks like it.

    They were swapped if some arms do not exist while all rewards are ids of arms. It looks like it if the arms
    played are 0 and 1 alone, as clicks are, while the rewards are the ids of three or more arms.
    """
    for id in ids:
        if type(id) is not str and type(id) is not int and (id is not None or arms):
            try:
                check_arm_id(id)
            except ArmError as error:
                raise ArmError(f"{error}; {ORDER}") from None
    if arms is None or not rewards:
        return
    known = set(arms.ids)
    try:
        paid = set(rewards)
    except TypeError:  # not numbers; `rewards_of` says so
        return
    if not paid <= known:  # 2.0 is in a set of integers that has 2
        return
    played = set(ids)
    if not played <= known:
        unknown = next(id for id in ids if id not in known)
        raise ArmError(
            f"there is no arm {unknown!r}, but every reward is the id of an arm; {ORDER}: were they swapped?"
        )
    if len(paid) > 2 and played <= {0, 1} and len(known) > 2:
        warnings.warn(
            f"the arms played are 0 and 1 alone, and the rewards are ids of {len(paid)} arms; {ORDER}: if they "
            "are swapped, learn again",
            stacklevel=3,
        )


def _rounds(X: Any) -> Iterable[Any]:
    """Return the matrices of many rounds, or raise ContextError."""
    if getattr(X, "ndim", 3) != 3 or not isinstance(X, Iterable):
        raise ContextError(
            "decide_many takes one matrix for each round, with a row of features for each arm, got "
            f"{f'an array of shape {X.shape}' if hasattr(X, 'shape') else repr(X)}; {USE_DECIDE}"
        )
    return X


def _eligible(eligible: Sequence[ArmId] | None, arms: Arms | None) -> Sequence[ArmId]:
    """Return the arms to choose from, checked."""
    if eligible is None:
        return arms.active if arms else ()
    ids = as_list("eligible", eligible, EligibilityError)
    if not ids:
        raise EligibilityError("`eligible` is empty; give at least one arm to choose from")
    for id in ids:
        if arms is None:
            check_arm_id(id)
        else:
            arms.check_active(id)
    if len(set(ids)) < len(ids):
        raise ArmError(f"`eligible` lists an arm twice: {ids!r}; list each arm once")
    return ids


def _blocks(ids: Sequence[ArmId], arms: Arms) -> np.ndarray:
    """Return the blocks of some arms."""
    if ids is arms.ids:
        return np.arange(len(ids))
    return np.array([arms.block(id) for id in ids], np.int64)
