"""A policy and what it has learned, which threads may share."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rbmle.core.arms import Arms
from rbmle.core.decision_ids import LearnedDecisions, OnRepeat, Run, digest_of
from rbmle.core.diagnosis import CHECKED, Diagnosis, Observed, diagnosis_of, expected_reward
from rbmle.core.encoding import Encoder, ScalesContexts, Scaling
from rbmle.core.errors import ArmError, RepeatError, SnapshotError
from rbmle.core.events import Event, Events
from rbmle.core.policy import Freezes, LearnsBatches, Policy, has
from rbmle.core.randomness import Purpose, generator
from rbmle.core.sharing import Shared
from rbmle.core.trees import copied
from rbmle.core.types import ArmId, Batch, Contexts, Decision, Encoding, Moments, Scales


@dataclass(slots=True, kw_only=True)
class Learned:
    """What was learned by some moment."""

    state: Any  # of the policy
    arms: Arms | None  # None: any arms may come, with their rows
    round: int  # rewards learned so far
    scales: Scales | Moments | None = None  # what the encoder has seen; None: it remembers nothing
    known: LearnedDecisions = field(default_factory=LearnedDecisions)  # learned
    events: Events = field(default_factory=Events)  # when the model forgot what it knew
    observed: Observed = field(default_factory=Observed)  # for `diagnose`


class Learner:
    """The only writer of a state; everyone else reads it, or a copy, as it was at one moment."""

    def __init__(
        self,
        policy: Policy[Any],
        learned: Learned,
        encoder: Encoder,
        *,
        seed: int,
        encoding: Encoding,
    ) -> None:
        self.policy, self.encoder, self.seed, self.encoding = policy, encoder, seed, encoding
        self.scaling = encoder if isinstance(encoder, ScalesContexts) else None
        self.is_snapshot = False  # which has what deciding needs, and no more
        self.decisions = 0  # that were numbered
        self._share(learned)

    def _share(self, learned: Learned) -> None:
        """Guard what is learned by locks.

        What is shared must not refer to this learner: in a cycle, an old snapshot and its arrays would stay in
        memory until Python looks for garbage, however many of them there are.
        """
        self._shared = Shared(learned, partial(_frozen, self.policy))
        self._counting = threading.Lock()
        self._run = Run()

    @staticmethod
    def start(
        policy: Policy[Any], encoder: Encoder, arms: Arms | None, seed: int, encoding: Encoding
    ) -> "Learner":
        """Return a learner before any data."""
        rng = generator(seed, Purpose.START, 0)
        features = encoder.seen if isinstance(encoder, ScalesContexts) else encoder.size
        state = policy.init(_blocks(arms, encoding), features, rng)
        scales = encoder.start() if isinstance(encoder, Scaling) else None
        return Learner(
            policy,
            Learned(state=state, arms=arms, round=0, scales=scales),
            encoder,
            seed=seed,
            encoding=encoding,
        )

    @property
    def scales(self) -> Any:
        """Return what the encoder has seen, as `Scales` or `Moments`; None if it remembers nothing."""
        return self.now.scales

    @property
    def now(self) -> Learned:
        """Return what is learned, for one thread; others may change it meanwhile."""
        return self._shared.value

    def name_decisions(self, n: int) -> tuple[list[str], list[str]]:
        """Return n ids that no other decision gets, and the names of their random streams."""
        with self._counting:
            first = self.decisions
            self.decisions = first + n
        seed, run = self.seed, f"-{self._run.id}"
        streams = [f"{seed}-{number}" for number in range(first, first + n)]
        return [stream + run for stream in streams], streams

    def reading(self) -> AbstractContextManager[Learned]:
        """Give what was learned by one moment; others may read and learn meanwhile."""
        return self._shared.reading()

    @contextmanager
    def holding(self) -> Iterator[Learned]:
        """Yield what is learned, all of it, while nobody learns."""
        self._check_whole()
        with self._shared.writer:
            yield self._shared.value

    def learn(
        self,
        place: Callable[[Arms | None], Contexts],
        rewards: Float[np.ndarray, " n"],
        is_fitted: Bool[np.ndarray, " n"] | None = None,
        *,
        times: Sequence[int] | None = None,
        decision: Decision | None = None,
        on_repeat: OnRepeat = "raise",
        is_observed: bool = False,
    ) -> None:
        """Learn what some contexts paid; `place` says which they are, given the arms there are.

        Events have the time of the observation that led to them, if there are times.
        A `decision` is the one whose reward this is. `on_repeat` says what to do if it was learned before.
        What is observed is part of the diagnosis.
        """
        self._check_whole()
        with self._shared.writing() as learned:
            contexts = place(learned.arms)
            digest = None if decision is None or on_repeat == "learn" else digest_of(decision)
            if decision is not None and digest is not None and digest in learned.known:
                if on_repeat == "ignore":
                    return
                raise RepeatError(
                    f"decision {decision.id!r} was learned before; learn each decision once, or make the "
                    "bandit with on_repeat='ignore' to skip repeated rewards, or with on_repeat='learn' "
                    "if a decision has several"
                )
            contexts = self.seen(contexts, learned, is_learning=True)
            begun = learned.round
            if is_observed:
                self._observe(learned, contexts, rewards, decision)

            def restarted(at: int, forgotten: int) -> None:
                time = None if times is None else times[at]
                event = Event(round=begun + at + 1, forgotten=forgotten, time=time)
                learned.events = learned.events.with_event(event)

            batch = Batch(
                contexts=contexts,
                rewards=rewards,
                is_fitted=np.ones(len(rewards), np.bool_) if is_fitted is None else is_fitted,
                rng=partial(_stream, self.seed, begun),
                restarted=restarted,
            )
            if has(self.policy, LearnsBatches):
                self.policy.update_all(learned.state, batch)
            else:
                for i in range(len(batch)):
                    self.policy.update(learned.state, batch.observation(i), batch.rng(i))
            learned.round += len(batch)
            if digest is not None:
                learned.known.add(digest)

    def _observe(
        self,
        learned: Learned,
        contexts: Contexts,
        rewards: Float[np.ndarray, " n"],
        decision: Decision | None,
    ) -> None:
        """Note rewards before they are learned; those of a batch cannot be predicted one after another."""
        observed, arms = learned.observed, learned.arms
        before = observed.rounds
        predict = expected_reward(self.policy, learned.state) if len(rewards) == 1 else None
        for i, reward in enumerate(rewards.tolist()):
            observed.add(contexts, i, reward, decision, predict)
        if observed.rounds // CHECKED > before // CHECKED:
            observed.tell(self._fixed(arms))

    def diagnosis(self) -> Diagnosis:
        """Return what looks wrong, and the numbers behind it."""
        with self.holding() as learned:
            return diagnosis_of(learned.observed, self._fixed(learned.arms))

    def _fixed(self, arms: Arms | None) -> Arms | None:
        """Return the arms if each has a block of its own, by which its rewards are told apart."""
        return arms if self.encoding is Encoding.DISJOINT else None

    def seen(self, contexts: Contexts, learned: Learned, *, is_learning: bool = False) -> Contexts:
        """Return what the policy sees of some contexts, by what is learned."""
        if self.scaling is None:
            return contexts
        return self.scaling.scaled(contexts, learned.scales, is_learning=is_learning)

    def add_arm(self, id: ArmId) -> None:
        """Add an arm, or bring a retired one back with what it had learned."""
        self._check_whole()
        with self._shared.writing() as learned:
            if learned.arms is None:
                raise ArmError(
                    f"arm {id!r} need not be added: this bandit takes any arms, with their rows"
                )
            arms = learned.arms.with_arm(id)
            blocks = _blocks(arms, self.encoding)
            if blocks > _blocks(learned.arms, self.encoding):
                self.policy.grow(learned.state, blocks, generator(self.seed, Purpose.GROW, blocks))
            learned.arms = arms
            if self._fixed(arms) is not None:
                learned.observed.add_arm(arms.block(id))

    def retire_arm(self, id: ArmId) -> None:
        """Take an arm out of play."""
        with self._shared.writing() as learned:
            if learned.arms is None:
                raise ArmError(
                    f"arm {id!r} cannot be retired: this bandit takes any arms, with their rows; "
                    "leave out its row"
                )
            learned.arms = learned.arms.without(id)

    def snapshot(self) -> "Learner":
        """Return a learner that stays as this one is now, with no more than deciding needs."""
        twin = self._twin(partial(_frozen, self.policy))
        twin.is_snapshot = True
        return twin

    def with_learned(self, learned: Learned) -> "Learner":
        """Return a snapshot that has learned this."""
        twin = self._twin(lambda _: learned)
        twin.is_snapshot = True
        return twin

    def copy(self) -> "Learner":
        """Return a learner that knows the same, and shares nothing."""
        return self._twin(deepcopy)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all but the locks."""
        with self._shared.writer:
            kept = {name: value for name, value in vars(self).items() if name[0] != "_"}
            return kept | {"learned": deepcopy(self.now)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take what was pickled."""
        learned = kept.pop("learned")
        vars(self).update(kept)
        self._share(learned)

    def _twin(self, copy: Callable[[Learned], Learned]) -> "Learner":
        """Return another learner with a copy of what is learned."""
        with self._shared.writer:
            learned = copy(self.now)
            twin = Learner(
                self.policy, learned, self.encoder, seed=self.seed, encoding=self.encoding
            )
            twin.is_snapshot, twin.decisions = self.is_snapshot, self.decisions
        return twin

    def _check_whole(self) -> None:
        """Raise SnapshotError for what can only decide."""
        if self.is_snapshot:
            raise SnapshotError(
                "a snapshot can only decide; to learn or to save, use the bandit it was taken from"
            )


def _frozen(policy: Policy[Any], learned: Learned) -> Learned:
    """Return what is learned, for deciding; it stays as it is when the original learns."""
    state = learned.state
    frozen = policy.frozen(state) if has(policy, Freezes) else copied(state)
    scales = None if learned.scales is None else copied(learned.scales)
    return Learned(
        state=frozen,
        arms=learned.arms,
        round=learned.round,
        scales=scales,
        events=learned.events,
    )


def _blocks(arms: Arms | None, encoding: Encoding) -> int:
    """Return how many blocks the policy sees."""
    return 1 if arms is None or encoding is Encoding.PER_ARM else len(arms.ids)


def _stream(seed: int, round: int, i: int) -> np.random.Generator:
    """Return the stream of the update that is i rounds after a round."""
    return generator(seed, Purpose.UPDATE, round + i)
