"""What most users hold: a policy, its state and its clock."""

import math
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from functools import partial
from typing import Any

import numpy as np

from rbmle.core.arms import Arms
from rbmle.core.contexts import disjoint, per_arm
from rbmle.core.errors import (
    ArmError,
    ContextError,
    EligibilityError,
    RewardError,
    SettingError,
    SnapshotError,
)
from rbmle.core.policy import Freezes, LearnsBatches, Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.trees import copied
from rbmle.core.types import (
    ArmId,
    Batch,
    Chosen,
    Contexts,
    Decision,
    Encoding,
    Observation,
)
from rbmle.core.weighing import weigh_all


class Bandit:
    """A policy that decides and learns, over arms known by ids of your choosing.

    >>> from rbmle import Bandit, LinUCB
    >>> bandit = Bandit(LinUCB(), arms=["tea", "coffee"], features=2, seed=0)
    >>> decision = bandit.decide([1.0, 0.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> bandit.learn([0.0, 1.0], arm="coffee", reward=0.5)  # a decision made elsewhere
    >>> bandit.round
    2
    """

    def __init__(
        self,
        policy: Policy[Any],
        *,
        arms: int | Iterable[ArmId] | None = None,
        features: int,
        seed: int = 0,
        encoding: str | Encoding = Encoding.DISJOINT,
        floor: float = 0.0,
        draws: int = 0,
    ) -> None:
        """Start before any data.

        Args:
            arms: their ids, or their number n for the ids 0 … n − 1. None, with contexts per arm:
                any arms, named or counted anew at each decision.
            floor: ε, the probability with which an eligible arm is drawn at random; every
                propensity is then at least ε/n.
            draws: how many draws estimate the propensities of a policy whose index is random; the
                arm is then drawn from these very estimates. With 0 there is no estimate.

        """
        try:
            self.encoding = Encoding(encoding)
        except ValueError:
            raise SettingError(
                f"encoding={encoding!r} is unknown; use 'disjoint' or 'per-arm'"
            ) from None
        if features != int(features) or features < 1:
            raise SettingError(f"features={features} cannot be; a context has 1 feature or more")
        if not 0 <= floor <= 1:
            raise SettingError(f"floor={floor} cannot be; it is a probability, between 0 and 1")
        if draws != int(draws) or draws < 0:
            raise SettingError(f"draws={draws} cannot be; it is a number of draws, 0 or more")
        if arms is None and self.encoding is Encoding.DISJOINT:
            raise SettingError("arms are missing; give their ids or their number, as in arms=5")
        self.policy = policy
        self.features = int(features)
        self.seed = int(seed)
        self.floor = float(floor)
        self.draws = int(draws)
        self.arms = None if arms is None else Arms.of(arms)
        self.is_snapshot = False  # which has what deciding needs, and no more
        self.decisions = 0  # made so far without an id of their own
        self.round = 0  # rewards learned so far
        self.state = policy.init(
            self._blocks(), self.features, generator(self.seed, Purpose.START, 0)
        )

    def decide(
        self,
        x: Any,
        *,
        eligible: Sequence[ArmId] | None = None,
        id: str | None = None,
        floor: float | None = None,
    ) -> Decision:
        """Return the arm to play; what was learned does not change.

        Disjoint contexts: x is one vector, and `eligible` restricts the arms. Contexts per arm: x has
        one row for each eligible arm, in their order. With an `id`, the same question gets the same
        answer as long as nothing was learned in between. A `floor` stands for the bandit's own.
        """
        ids, contexts = self._offer(x, eligible)
        name = f"{self.seed}-{self.decisions}" if id is None else str(id)
        chosen = self.weigh(contexts, name, self.floor if floor is None else floor)
        self.decisions += id is None
        chances = chosen.probabilities
        return Decision(
            id=name,
            arm=ids[chosen.place],
            arms=tuple(ids),
            indices=chosen.indices,
            propensity=None if chances is None else float(chances[chosen.place]),
            probabilities=chances,
            context=contexts.row(chosen.place),
        )

    def weigh(self, contexts: Contexts, id: str, floor: float) -> Chosen:
        """Return which of some contexts to play, and what that was drawn from: a part of `decide`."""
        (only,) = self.weigh_all(contexts, [len(contexts)], [id], floor)
        return only

    def weigh_all(
        self, contexts: Contexts, sizes: Sequence[int], ids: Sequence[str], floor: float
    ) -> list[Chosen]:
        """Return what to play in some rounds, whose contexts stand in a row, `sizes` of each.

        A round gets the same answer whichever others are with it.
        """
        return weigh_all(
            self.policy,
            self.state,
            contexts,
            sizes,
            ids,
            seed=self.seed,
            floor=floor,
            draws=self.draws,
        )

    def learn(
        self, source: Decision | Any, reward: float | None = None, *, arm: ArmId | None = None
    ) -> None:
        """Learn from the reward of a decision, or of an arm that was played in a context.

        `learn(decision, reward)` or `learn(x, arm=…, reward=…)`, where x is the vector of features
        that the arm had. Rewards may come late and in any order, and for retired arms too.
        """
        if isinstance(source, Decision):
            if arm is not None:
                raise ArmError(
                    f"arm={arm!r} was given beside a decision for arm {source.arm!r}; give one of the two"
                )
            context = self._decided(source)
        else:
            context = self._played(source, arm)
        self._update(Observation(context=context, reward=_finite(reward)))

    def learn_all(
        self,
        contexts: Contexts,
        rewards: Sequence[float] | np.ndarray,
        *,
        is_fitted: np.ndarray | None = None,
    ) -> None:
        """Learn what row i of some contexts paid, to the bit as if they came one by one.

        Contexts are those of decisions, `stacked`. An observation that is not `is_fitted` is remembered,
        but gets no training steps of its own: the next ones visit it as they visit all that is
        remembered. A policy that is not trained in steps learns all alike.
        """
        if contexts.features != self.features or len(contexts) != len(rewards):
            raise ContextError(
                f"there are {len(contexts)} contexts of {contexts.features} features and {len(rewards)} "
                f"rewards, but this bandit has {self.features} features; give one reward for each context"
            )
        if not np.isfinite(rewards).all():
            raise RewardError("a reward is no finite number; leave it out, or clean it")
        everyone = np.ones(len(rewards), np.bool_)
        self._update_all(
            Batch(
                contexts=contexts,
                rewards=np.asarray(rewards, np.float64),
                is_fitted=everyone if is_fitted is None else is_fitted,
                rng=partial(_stream, self.seed, self.round),
            )
        )

    def partial_fit(
        self, X: Any, arms: Sequence[ArmId], rewards: Sequence[float] | np.ndarray
    ) -> "Bandit":
        """Learn from a batch of logged rounds: row i of X is what arm `arms[i]` had.

        All is checked before anything is learned.
        """
        contexts = per_arm(X, self.features)
        if not len(contexts) == len(arms) == len(rewards):
            raise ContextError(
                f"there are {len(contexts)} contexts, {len(arms)} arms and {len(rewards)} rewards, "
                "but a round has one of each; give as many of each"
            )
        seen = [
            Observation(context=self._placed(contexts.row(i), arm), reward=_finite(reward))
            for i, (arm, reward) in enumerate(zip(arms, rewards, strict=True))
        ]
        for observation in seen:
            self._update(observation)
        return self

    def add_arm(self, id: ArmId) -> None:
        """Add an arm, or bring a retired one back with what it had learned."""
        if self.arms is None:
            raise ArmError(
                f"arm {id!r} needs not be added: this bandit takes any arms, with their rows"
            )
        if self.arms.add(id) and self.encoding is Encoding.DISJOINT:
            blocks = self._blocks()
            self.policy.grow(self.state, blocks, generator(self.seed, Purpose.GROW, blocks))

    def retire_arm(self, id: ArmId) -> None:
        """Take an arm out of play; what was learned of it stays, and late rewards are welcome."""
        if self.arms is None:
            raise ArmError(
                f"arm {id!r} cannot be retired: this bandit takes any arms, with their rows"
            )
        self.arms.retire(id)

    def snapshot(self) -> "Bandit":
        """Return a bandit that decides as this one does now, whatever this one learns later.

        It has no more than deciding needs, so it cannot learn, and cannot be saved.
        """
        policy, frozen = self.policy, copy(self)
        frozen.state = (
            policy.frozen(self.state) if isinstance(policy, Freezes) else copied(self.state)
        )
        frozen.is_snapshot = True
        frozen.arms = deepcopy(self.arms)
        return frozen

    def save(self, path: Any) -> None:
        """Write the bandit to one file, whole or not at all."""
        from rbmle.core.saving import save  # it needs this class

        save(self, path)

    @staticmethod
    def load(path: Any, *, policy: Policy[Any] | None = None) -> "Bandit":
        """Return the bandit that was saved; it goes on as if it had never stopped.

        A policy, or a part of one, that is not from this package has to be given again.
        """
        from rbmle.core.saving import load  # it needs this class

        return load(path, policy)

    def _blocks(self) -> int:
        """Return how many blocks the policy sees."""
        return 1 if self.arms is None or self.encoding is Encoding.PER_ARM else len(self.arms.ids)

    def _offer(self, x: Any, eligible: Sequence[ArmId] | None) -> tuple[Sequence[ArmId], Contexts]:
        """Return the eligible arms and their contexts."""
        if self.encoding is Encoding.PER_ARM:
            contexts = per_arm(x, self.features)
            n = len(contexts)
            ids = self._eligible(eligible) if self.arms or eligible is not None else range(n)
            if len(ids) != n or n == 0:
                raise EligibilityError(
                    f"there are {n} rows of features for {len(ids)} eligible arms; give one row for each "
                    "eligible arm, in their order, and at least one"
                )
            return ids, contexts
        ids = self._eligible(eligible)
        assert self.arms is not None  # the constructor saw to it
        if eligible is None and not self.arms.retired:
            blocks = np.arange(len(ids))
        else:
            blocks = np.array([self.arms.block(id) for id in ids], np.int64)
        return ids, disjoint(x, blocks, self.features)

    def _eligible(self, eligible: Sequence[ArmId] | None) -> Sequence[ArmId]:
        """Return the arms to choose from, checked."""
        if eligible is None:
            return self.arms.active if self.arms else ()
        ids = list(eligible)
        if not ids:
            raise EligibilityError(
                "eligible=[] leaves no arm to choose from; give at least one arm"
            )
        if len(set(ids)) < len(ids):
            raise ArmError(f"eligible={ids!r} lists an arm twice; list each once")
        for id in ids if self.arms else ():
            assert self.arms is not None
            self.arms.block(id)
            if id in self.arms.retired:
                raise ArmError(f"arm {id!r} is retired; add_arm({id!r}) brings it back")
        return ids

    def _decided(self, decision: Decision) -> Contexts:
        """Return the context of a decision, checked against this bandit."""
        if decision.context.features != self.features:
            raise ContextError(
                f"the decision {decision.id} has {decision.context.features} features, but this bandit "
                f"has {self.features}; it was made by another bandit"
            )
        return self._placed(decision.context, decision.arm)

    def _played(self, x: Any, arm: ArmId | None) -> Contexts:
        """Return the context of an arm that was played."""
        if arm is None and (self.arms or self.encoding is Encoding.DISJOINT):
            raise ArmError(
                "the arm is missing; use learn(x, arm=…, reward=…) or learn(decision, reward)"
            )
        return self._placed(disjoint(x, np.zeros(1, np.int64), self.features), arm)

    def _placed(self, context: Contexts, arm: ArmId | None) -> Contexts:
        """Return a context in the block of an arm."""
        block = self.arms.block(arm) if self.arms and arm is not None else 0
        if self.encoding is Encoding.PER_ARM or context.rows.blocks[0] == block:
            return context
        rows = context.rows._replace(blocks=np.array([block], np.int64))
        return Contexts(rows=rows, features=context.features)

    def _update(self, seen: Observation) -> None:
        """Learn from one observation."""
        self.check_whole()
        self.policy.update(self.state, seen, _stream(self.seed, self.round, 0))
        self.round += 1

    def _update_all(self, batch: Batch) -> None:
        """Learn from a batch."""
        self.check_whole()
        if isinstance(self.policy, LearnsBatches):
            self.policy.update_all(self.state, batch)
        else:
            for i in range(len(batch)):
                self.policy.update(self.state, batch.observation(i), batch.rng(i))
        self.round += len(batch)

    def check_whole(self) -> None:
        """Raise SnapshotError for a bandit that can only decide."""
        if self.is_snapshot:
            raise SnapshotError(
                "a snapshot decides, and cannot learn or be saved; use the bandit that it is of"
            )


def _stream(seed: int, round: int, i: int) -> np.random.Generator:
    """Return the stream of the update that is i rounds after a round."""
    return generator(seed, Purpose.UPDATE, round + i)


def _finite(reward: float | None) -> float:
    """Return the reward, or raise RewardError."""
    try:
        value = math.nan if reward is None else float(reward)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise RewardError(
            f"the reward is {reward!r}, but it must be a finite number; leave it out, or clean it"
        )
    return value
