"""A bandit that threads share: nothing is lost, nothing crashes, and what is read is of one moment."""

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle import POLICIES, Bandit, LinUCB, NeuralRBMLEGA, NeuralUCB
from rbmle.core.policy import Policy
from rbmle.core.state import Shared
from rbmle.core.trees import leaves
from rbmle.core.types import Batch, Contexts, Indices, Observation

THREADS = 8
TURNS = 40  # of each thread
FEATURES = 5
PATIENCE_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Recorder:
    """Plays as another policy, and keeps what it learned in the order in which it did."""

    policy: Policy[Any]
    done: list[tuple[Any, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> Any:
        return self.policy.init(blocks, features, rng)

    def index(self, state: Any, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return self.policy.index(state, contexts, rng)

    def update(self, state: Any, seen: Observation, rng: np.random.Generator) -> None:
        self.done.append(("learn", seen))
        self.policy.update(state, seen, rng)

    def grow(self, state: Any, blocks: int, rng: np.random.Generator) -> None:
        self.done.append(("grow", blocks))
        self.policy.grow(state, blocks, rng)


@pytest.mark.parametrize("name", POLICIES)
def test_many_threads_learn_the_same_as_one_in_their_order(name: str, tmp_path: Path) -> None:
    compiled(POLICIES[name]())
    recorder = Recorder(policy=POLICIES[name]())
    bandit = Bandit(recorder, arms=["a", "b", "c"], features=FEATURES, seed=7)

    def act(me: int) -> None:
        rng = np.random.default_rng(me)
        for turn in range(TURNS):
            decision = bandit.decide(rng.normal(size=FEATURES))
            assert np.isfinite(decision.indices).all()
            assert len(decision.arms) == len(decision.indices)
            bandit.learn(decision, float(rng.random() < 0.5))
            match turn % 10:
                case 3:
                    bandit.add_arm(f"{me}/{turn}")
                case 5:
                    bandit.retire_arm(f"{me}/{turn - 2}")
                case 7:
                    kept = bandit.snapshot()
                    one = kept.decide(np.ones(FEATURES), id="same")
                    again = kept.decide(np.ones(FEATURES), id="same")
                    np.testing.assert_array_equal(one.indices, again.indices)
                case 9:
                    bandit.save(tmp_path / f"{me}.rbmle")

    together(act)
    assert bandit.round == len([deed for deed, _ in recorder.done if deed == "learn"])
    assert bandit.round == THREADS * TURNS
    assert bandit.decisions == THREADS * TURNS

    alone = Bandit(POLICIES[name](), arms=["a", "b", "c"], features=FEATURES, seed=7)
    for deed, what in recorder.done:
        if deed == "grow":
            alone.add_arm(f"new {what}")
        else:
            alone.learn_all(what.context, [what.reward])
    assert bytes_of(alone.state) == bytes_of(bandit.state)
    for saved in sorted(tmp_path.glob("*.rbmle")):
        assert Bandit.load(saved, policy=Recorder(policy=POLICIES[name]())).round > 0


@pytest.mark.parametrize("policy", [NeuralRBMLEGA(), NeuralUCB(), LinUCB()], ids=repr)
def test_a_decision_during_learning_sees_one_consistent_state(policy: Policy[Any]) -> None:
    """Every answer is one that the bandit gives after some number of rounds."""
    rng = np.random.default_rng(3)
    X, asked = rng.normal(size=(60, FEATURES)), rng.normal(size=FEATURES)
    serial = Bandit(policy, arms=4, features=FEATURES)
    moments = {serial.decide(asked, id="q").indices.tobytes()}
    for t, x in enumerate(X):
        serial.learn(x, arm=t % 4, reward=float(t % 3 == 0))
        moments.add(serial.decide(asked, id="q").indices.tobytes())

    shared = Bandit(policy, arms=4, features=FEATURES)
    answers: list[bytes] = []

    def act(me: int) -> None:
        if me == 0:
            for t, x in enumerate(X):
                shared.learn(x, arm=t % 4, reward=float(t % 3 == 0))
        else:
            answers.extend(shared.decide(asked, id="q").indices.tobytes() for _ in range(100))

    together(act)
    assert set(answers) <= moments
    assert bytes_of(shared.state) == bytes_of(serial.state)


def test_decisions_continue_while_a_large_batch_is_learned() -> None:
    """A decision does not wait for the writer, once the bandit knows that it is shared."""
    begun, may_end = threading.Event(), threading.Event()

    @dataclass(frozen=True, kw_only=True)
    class Slow(LinUCB):
        def update_all(self, state: Any, batch: Batch) -> None:
            begun.set()
            assert may_end.wait(PATIENCE_SECONDS)

    bandit = Bandit(Slow(), arms=2, features=2)
    bandit.learner._shared.met_reader = True
    writer = threading.Thread(target=lambda: bandit.learn([1.0, 0.0], arm=0, reward=1.0))
    writer.start()
    assert begun.wait(PATIENCE_SECONDS)
    assert bandit.decide([1.0, 0.0]).arm in (0, 1)
    assert bandit.round == 0
    may_end.set()
    writer.join()
    assert bandit.round == 1


def test_a_value_that_one_thread_uses_is_never_copied() -> None:
    copies: list[int] = []
    shared = Shared([0], lambda value: copies.append(1) or list(value))  # type: ignore[func-returns-value]  # counts
    for _ in range(5):
        with shared.writing() as value:
            value[0] += 1
        with shared.reading() as value:
            assert value[0] > 0
    assert copies == []


def test_a_value_that_cannot_be_copied_releases_its_lock() -> None:
    def refuse(value: list[int]) -> list[int]:
        raise TypeError("it cannot be copied")

    shared = Shared([0], refuse)
    shared.met_reader = True
    with pytest.raises(TypeError, match="cannot be copied"), shared.writing():
        pass
    shared.met_reader = False
    done: list[int] = []

    def write() -> None:
        with shared.writing() as value:
            done.extend(value)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert done == [0]
    with shared.reading() as value:
        assert value == [0]


def test_a_copy_of_a_bandit_goes_its_own_way() -> None:
    bandit = Bandit(NeuralUCB(), arms=["a", "b"], features=2, seed=1)
    bandit.learn([1.0, 0.0], arm="a", reward=1.0)
    makers: tuple[Callable[[Bandit], Bandit], ...] = (
        copy.copy,
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
    )
    for make in makers:
        twin = make(bandit)
        assert bytes_of(twin.state) == bytes_of(bandit.state)
        before = bytes_of(bandit.state)
        twin.learn([0.0, 1.0], arm="b", reward=0.0)
        twin.add_arm("c")
        twin.decide([1.0, 1.0])
        assert bytes_of(bandit.state) == before
        assert bandit.arms is not None
        assert (bandit.round, bandit.decisions, bandit.arms.ids) == (1, 0, ("a", "b"))


def compiled(policy: Policy[Any]) -> None:
    """Let kernels be compiled before threads are given a time to end in."""
    bandit = Bandit(policy, arms=2, features=FEATURES)
    bandit.learn(bandit.decide(np.ones(FEATURES)), 1.0)
    bandit.snapshot().decide(np.ones(FEATURES))


def together(act: Callable[[int], None]) -> None:
    """Let threads act at once, and raise what one of them raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(THREADS)

    def run(me: int) -> None:
        try:
            barrier.wait()
            act(me)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(me,), daemon=True) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def bytes_of(state: Any) -> bytes:
    arrays, numbers = leaves(state)
    return b"".join(array.tobytes() for array in arrays.values()) + repr(numbers).encode()
