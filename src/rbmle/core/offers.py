"""From what a user offers to contexts: which arms are eligible, and what each of them sees."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbmle.core.arms import Arms
from rbmle.core.checks import check_arm_id, listed
from rbmle.core.contexts import disjoint, every_in_blocks, per_arm, stacked
from rbmle.core.encoding import Encoder
from rbmle.core.errors import ArmError, ContextError, EligibilityError
from rbmle.core.types import ArmId, Contexts, Decision, Encoding

Offer = tuple[Sequence[ArmId], Contexts]  # the eligible arms, and what they see

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
    """How a bandit reads what it is offered."""

    encoding: Encoding
    encoder: Encoder

    @property
    def features(self) -> int:
        """Return the number of features of a context."""
        return self.encoder.size

    def one(self, x: Any, eligible: Sequence[ArmId] | None, arms: Arms | None) -> Offer:
        """Return the eligible arms of a round and their contexts."""
        if self.encoding is Encoding.PER_ARM:
            return self._rows(x, eligible, arms)
        assert arms is not None  # a bandit with disjoint contexts has arms
        ids = _eligible(eligible, arms)
        return ids, disjoint(self.encoder.row(x, None), _blocks(ids, arms), self.features)

    def many(
        self, X: Any, eligible: Sequence[ArmId] | None, arms: Arms | None
    ) -> tuple[Sequence[Sequence[ArmId]], Contexts]:
        """Return the eligible arms of some rounds, and all their contexts in a row."""
        if self.encoding is Encoding.PER_ARM:
            offers = [self._rows(x, eligible, arms) for x in _rounds(X)]
            if not offers:
                raise ContextError("there are no rounds to decide; give one matrix for each round")
            return [ids for ids, _ in offers], stacked([contexts for _, contexts in offers])
        assert arms is not None  # as above
        ids = _eligible(eligible, arms)
        rounds = per_arm(self.encoder.rows(X, None), self.features, USE_DECIDE)
        contexts = every_in_blocks(rounds, _blocks(ids, arms))
        return [ids] * (len(contexts) // len(ids)), contexts

    def played(self, source: Any, arm: ArmId | None, arms: Arms | None) -> Contexts:
        """Return the context of a decision, or of an arm that was played in a context."""
        if isinstance(source, Decision):
            if arm is not None:
                raise ArmError(
                    f"arm {arm!r} was given with a decision for arm {source.arm!r}; give one of the two"
                )
            return self._decided(source, arms)
        if arm is None and (arms or self.encoding is Encoding.DISJOINT):
            raise ArmError(
                "the arm is missing; use learn(x, arm=…, reward=…) or learn(decision, reward)"
            )
        is_per_arm = self.encoding is Encoding.PER_ARM
        if arm is not None:
            check_arm_id(arm)
        row = self.encoder.row(source, arm if is_per_arm else None)
        advice = ROW_OF_ARM if is_per_arm else USE_PARTIAL_FIT
        return self.placed(disjoint(row, np.zeros(1, np.int64), self.features, advice), arm, arms)

    def logged(self, X: Any, arms: Sequence[ArmId], rewards: int) -> Contexts:
        """Return the contexts of arms that were played, one in each round, as are rewards."""
        named = arms if self.encoding is Encoding.PER_ARM else None
        contexts = per_arm(self.encoder.rows(X, named), self.features, USE_LEARN)
        if not len(contexts) == len(arms) == rewards:
            raise ContextError(
                f"there are {len(contexts)} contexts, {len(arms)} arms and {rewards} rewards; a round "
                "has one of each, so give equally many"
            )
        return contexts

    def check(self, contexts: Contexts, rewards: int) -> None:
        """Raise ContextError for contexts that are not of this bandit, or not as many as rewards."""
        if contexts.features != self.features or len(contexts) != rewards:
            raise ContextError(
                f"there are {len(contexts)} contexts of {contexts.features} features and {rewards} "
                f"rewards, but this bandit has {self.features} features; give one reward for each context"
            )

    def placed_all(self, contexts: Contexts, ids: Sequence[ArmId], arms: Arms | None) -> Contexts:
        """Return each of some contexts in the block of its arm."""
        rows = [self.placed(contexts.row(i), id, arms) for i, id in enumerate(ids)]
        return stacked(rows) if rows else contexts

    def placed(self, context: Contexts, arm: ArmId | None, arms: Arms | None) -> Contexts:
        """Return a context in the block of an arm."""
        block = arms.block(arm) if arms and arm is not None else 0
        if self.encoding is Encoding.PER_ARM or context.rows.blocks[0] == block:
            return context
        rows = context.rows._replace(blocks=np.array([block], np.int64))
        return Contexts(rows=rows, features=context.features)

    def _decided(self, decision: Decision, arms: Arms | None) -> Contexts:
        """Return the context of a decision, checked."""
        if decision.context.features != self.features:
            raise ContextError(
                f"decision {decision.id} has {decision.context.features} features, but this bandit has "
                f"{self.features}; it was made by another bandit"
            )
        return self.placed(decision.context, decision.arm, arms)

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
    ids = listed("eligible", eligible, EligibilityError)
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
