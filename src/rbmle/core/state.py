"""The state of a policy, which threads may share: one learns at a time, while others decide.

The id of a decision is `seed-number-run`, as in "0-17-9f3a61c2d04b". A new run is drawn for every copy of a
bandit: when it is made, loaded, copied, unpickled or forked. A policy's random numbers depend on `seed-number`
alone, the decision's stream, so the same seed gives the same choices in every run.
"""

import os
import re
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, Literal, TypeVar, cast, get_args

import numpy as np
from jaxtyping import Bool, Float

from rbmle.core.diagnosis import CHECKED, Diagnosis, Observed, diagnosis_of, expected_reward
from rbmle.core.encoding import Encoder, ScalesContexts, Scaling
from rbmle.core.errors import ArmError, RepeatError, SettingError, SnapshotError
from rbmle.core.events import Event, Events
from rbmle.core.offers import Arms
from rbmle.core.policy import Freezes, LearnsBatches, Policy, has
from rbmle.core.randomness import Purpose, generator
from rbmle.core.trees import copy_tree
from rbmle.core.types import ArmId, Batch, Contexts, Decision, Encoding, Moments, Scales

OnRepeat = Literal["raise", "ignore", "learn"]
REMEMBERED = 10_000  # learned decisions, about 1 MB
_RUN_BYTES = 6
_WITH_RUN = re.compile(rf"(-?\d+-\d+)-[0-9a-f]{{{2 * _RUN_BYTES}}}")


class RunId:
    """The part of decision ids that no other copy of a bandit has."""

    __slots__ = ("_id", "_process")

    def __init__(self) -> None:
        self._draw()

    @property
    def id(self) -> str:
        """Return the run's id; a forked process draws its own."""
        if self._process != os.getpid():
            self._draw()
        return self._id

    def _draw(self) -> None:
        self._process, self._id = os.getpid(), secrets.token_hex(_RUN_BYTES)


def stream_of(id: str) -> str:
    """Return the part of an id that random numbers depend on: without the run, if the bandit made the id.

    >>> stream_of("0-17-9f3a61c2d04b"), stream_of("order 12")
    ('0-17', 'order 12')
    """
    match = _WITH_RUN.fullmatch(id)
    return id if match is None else match[1]


def given_ids(ids: Any, n: int) -> list[str]:
    """Return the ids that a user gave to n decisions, as strings; raise SettingError."""
    if isinstance(ids, str | bytes):
        raise SettingError(f"`ids` must be a list with an id for each round, got the text {ids!r}")
    listed = list(ids)
    if len(listed) != n:
        raise SettingError(f"there are {len(listed)} ids for {n} rounds; give one for each")
    for id in listed:
        if id is None or isinstance(id, bytes | float | list | dict | set | np.ndarray):
            raise SettingError(f"the id of a decision must be a string, got {id!r}")
    return [str(id) for id in listed]


def on_repeat_of(value: Any) -> OnRepeat:
    """Return the value of `on_repeat`, or raise SettingError."""
    if value not in get_args(OnRepeat):
        raise SettingError(
            f"`on_repeat` must be 'raise', 'ignore' or 'learn', got {value!r}; it says what `learn` does "
            "with a decision that was learned before"
        )
    return cast(OnRepeat, value)


class LearnedDecisions:
    """The last `REMEMBERED` decisions that were learned.

    A decision is identified by its id, its arm and its context, because a user may give several decisions
    the same id.
    """

    __slots__ = ("_digests", "_order")

    def __init__(self, digests: Iterable[int] = ()) -> None:
        self._order = deque(digests)  # the oldest first
        self._digests = set(self._order)

    def __contains__(self, digest: int) -> bool:
        return digest in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digest: int) -> None:
        """Remember a decision."""
        if len(self._order) >= REMEMBERED:
            self._digests.discard(self._order.popleft())
        self._order.append(digest)
        self._digests.add(digest)

    def as_array(self) -> np.ndarray:
        """Return the digests, the oldest first."""
        return np.array(self._order, np.uint64)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LearnedDecisions":
        return LearnedDecisions(self._order)


def digest_of(decision: Decision) -> int:
    """Return 64 bits that identify a decision."""
    rows = decision.context.rows
    name = f"{decision.id}\0{decision.arm!r}\0".encode("utf-8", "surrogatepass")
    content = name + rows.indices.tobytes() + rows.values.tobytes()
    return int.from_bytes(blake2b(content, digest_size=8).digest())


Value = TypeVar("Value")


class Shared(Generic[Value]):
    """A value under a readers–writer lock in which a reader rarely waits for a writer.

    Readers read the value itself while no one writes. A writer waits for them to finish. If the last writer met
    a reader, it leaves a frozen copy for readers that arrive meanwhile; otherwise they wait for the writer to
    end. So a value that only one thread uses is never copied.
    """

    def __init__(self, value: Value, freeze: Callable[[Value], Value]) -> None:
        self.value = value
        self.freeze = freeze
        self.writer = threading.RLock()  # held by the one who may write
        self.lock = threading.Lock()  # guards all that follows
        self.turn = threading.Condition(self.lock)
        self.waiting = 0  # threads that wait for their turn
        self.readers = 0  # of the value itself
        self.is_written = False
        self.copy: Value | None = None  # for readers, while the value is written
        self.met_reader = False

    def reading(self) -> "ReadContext[Value]":
        """Return a context with the value, or with a copy from before the write in progress."""
        return ReadContext(self)

    def writing(self) -> "WriteContext[Value]":
        """Return a context with the value for its only writer, once no one reads it."""
        return WriteContext(self)

    def wait(self) -> None:
        """Wait until something has changed; the lock is held before and after."""
        self.waiting += 1
        try:
            self.turn.wait()
        finally:
            self.waiting -= 1

    def wake(self) -> None:
        """Wake all who wait; the lock is held."""
        if self.waiting:
            self.turn.notify_all()


class ReadContext(Generic[Value]):
    """A context in which a value is read."""

    __slots__ = ("is_copy", "shared")

    def __init__(self, shared: Shared[Value]) -> None:
        self.shared = shared

    def __enter__(self) -> Value:
        shared = self.shared
        with shared.lock:
            while shared.is_written:
                shared.met_reader = True
                if shared.copy is not None:
                    self.is_copy = True
                    return shared.copy
                shared.wait()
            self.is_copy = False
            shared.readers += 1
            return shared.value

    def __exit__(self, *_: object) -> None:
        if self.is_copy:
            return
        shared = self.shared
        with shared.lock:
            shared.readers -= 1
            shared.wake()


class WriteContext(Generic[Value]):
    """A context in which a value is changed."""

    __slots__ = ("shared",)

    def __init__(self, shared: Shared[Value]) -> None:
        self.shared = shared

    def __enter__(self) -> Value:
        shared = self.shared
        shared.writer.acquire()
        try:
            copy = shared.freeze(shared.value) if shared.met_reader or shared.readers else None
            with shared.lock:
                shared.copy, shared.is_written, shared.met_reader = copy, True, False
                while shared.readers:
                    shared.wait()
        except BaseException:  # a state that cannot be copied, or an interrupt: release the others
            self.__exit__()
            raise
        return shared.value

    def __exit__(self, *_: object) -> None:
        shared = self.shared
        with shared.lock:
            shared.copy, shared.is_written = None, False
            shared.wake()
        shared.writer.release()


@dataclass(slots=True, kw_only=True)
class Learned:
    """Everything that was learned up to some moment."""

    state: Any  # of the policy
    arms: Arms | None  # None: any arms may come, with their rows
    round: int  # rewards learned so far
    scales: Scales | Moments | None = None  # what the encoder has seen; None: it remembers nothing
    known: LearnedDecisions = field(default_factory=LearnedDecisions)  # learned
    events: Events = field(default_factory=Events)  # when the model forgot what it knew
    observed: Observed = field(default_factory=Observed)  # for `diagnose`


class SharedState:
    """The state of a policy, guarded by locks: one thread writes, others read it or a copy."""

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
        self.is_snapshot = False  # a snapshot has only what deciding needs
        self.decisions = 0  # how many were numbered
        self._share(learned)

    def _share(self, learned: Learned) -> None:
        """Put what is learned behind a lock.

        `Shared` must not refer to this object: in a cycle, old snapshots and their arrays would stay in memory
        until Python collects garbage.
        """
        self._shared = Shared(learned, partial(_freeze, self.policy))
        self._counting = threading.Lock()
        self._run = RunId()

    @staticmethod
    def start(
        policy: Policy[Any], encoder: Encoder, arms: Arms | None, seed: int, encoding: Encoding
    ) -> "SharedState":
        """Return a state before any data."""
        rng = generator(seed, Purpose.START, 0)
        features = encoder.seen if isinstance(encoder, ScalesContexts) else encoder.size
        state = policy.init(_blocks(arms, encoding), features, rng)
        scales = encoder.start() if isinstance(encoder, Scaling) else None
        return SharedState(
            policy,
            Learned(state=state, arms=arms, round=0, scales=scales),
            encoder,
            seed=seed,
            encoding=encoding,
        )

    @property
    def scales(self) -> Any:
        """The `Scales` or `Moments` of the encoder; None if it has none."""
        return self.now.scales

    @property
    def now(self) -> Learned:
        """Return what is learned, without taking the lock: other threads may change it."""
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
        """Return a context with what is learned at this moment; others may read and learn meanwhile."""
        return self._shared.reading()

    @contextmanager
    def holding(self) -> Iterator[Learned]:
        """Yield what is learned, and block learning meanwhile."""
        self._check_not_snapshot()
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
        """Learn the rewards of contexts, which `place` returns for the present arms.

        An event gets the time of the observation that led to it, if there are `times`. `decision` is the one
        whose reward this is, and `on_repeat` says what to do if it was learned before. With `is_observed`, the
        rewards count in the diagnosis.
        """
        self._check_not_snapshot()
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
            contexts = self.scale(contexts, learned, is_learning=True)
            begun = learned.round
            if is_observed:
                self._observe(learned, contexts, rewards, decision)

            def note_restart(at: int, forgotten: int) -> None:
                time = None if times is None else times[at]
                event = Event(round=begun + at + 1, forgotten=forgotten, time=time)
                learned.events = learned.events.with_event(event)

            batch = Batch(
                contexts=contexts,
                rewards=rewards,
                is_fitted=np.ones(len(rewards), np.bool_) if is_fitted is None else is_fitted,
                rng=partial(_stream, self.seed, begun),
                restarted=note_restart,
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
        """Add rewards to the diagnosis before they are learned; only single rewards are predicted."""
        observed, arms = learned.observed, learned.arms
        before = observed.rounds
        predict = expected_reward(self.policy, learned.state) if len(rewards) == 1 else None
        for i, reward in enumerate(rewards.tolist()):
            observed.add(contexts, i, reward, decision, predict)
        if observed.rounds // CHECKED > before // CHECKED:
            observed.tell(self._fixed_arms(arms))

    def diagnosis(self) -> Diagnosis:
        """Return what looks wrong, and the numbers behind it."""
        with self.holding() as learned:
            return diagnosis_of(learned.observed, self._fixed_arms(learned.arms))

    def _fixed_arms(self, arms: Arms | None) -> Arms | None:
        """Return the arms if each has its own block, so that rewards can be attributed to arms."""
        return arms if self.encoding is Encoding.DISJOINT else None

    def scale(self, contexts: Contexts, learned: Learned, *, is_learning: bool = False) -> Contexts:
        """Return contexts as the policy sees them, scaled if the encoder scales them."""
        if self.scaling is None:
            return contexts
        return self.scaling.scale(contexts, learned.scales, is_learning=is_learning)

    def add_arm(self, id: ArmId) -> None:
        """Add an arm, or bring a retired one back with what it had learned."""
        self._check_not_snapshot()
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
            if self._fixed_arms(arms) is not None:
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

    def snapshot(self) -> "SharedState":
        """Return a copy for deciding, which later learning does not change."""
        twin = self._twin(partial(_freeze, self.policy))
        twin.is_snapshot = True
        return twin

    def with_learned(self, learned: Learned) -> "SharedState":
        """Return a snapshot with this state."""
        twin = self._twin(lambda _: learned)
        twin.is_snapshot = True
        return twin

    def copy(self) -> "SharedState":
        """Return a copy that shares nothing."""
        return self._twin(deepcopy)

    def __getstate__(self) -> dict[str, Any]:
        with self._shared.writer:
            kept = {name: value for name, value in vars(self).items() if name[0] != "_"}
            return kept | {"learned": deepcopy(self.now)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        learned = kept.pop("learned")
        vars(self).update(kept)
        self._share(learned)

    def _twin(self, copy: Callable[[Learned], Learned]) -> "SharedState":
        with self._shared.writer:
            learned = copy(self.now)
            twin = SharedState(
                self.policy, learned, self.encoder, seed=self.seed, encoding=self.encoding
            )
            twin.is_snapshot, twin.decisions = self.is_snapshot, self.decisions
        return twin

    def _check_not_snapshot(self) -> None:
        if self.is_snapshot:
            raise SnapshotError(
                "a snapshot can only decide; to learn or to save, use the bandit it was taken from"
            )


def _freeze(policy: Policy[Any], learned: Learned) -> Learned:
    state = learned.state
    frozen = policy.frozen(state) if has(policy, Freezes) else copy_tree(state)
    scales = None if learned.scales is None else copy_tree(learned.scales)
    return Learned(
        state=frozen,
        arms=learned.arms,
        round=learned.round,
        scales=scales,
        events=learned.events,
    )


def _blocks(arms: Arms | None, encoding: Encoding) -> int:
    return 1 if arms is None or encoding is Encoding.PER_ARM else len(arms.ids)


def _stream(seed: int, round: int, i: int) -> np.random.Generator:
    return generator(seed, Purpose.UPDATE, round + i)
