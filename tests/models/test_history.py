"""The history: what is kept, whose it is, that memory stays bounded, and what a frozen state shares."""

from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from rbmle import (
    ArmAscent,
    Bandit,
    FullBatch,
    Memory,
    Network,
    NeuralRBMLEGA,
    NeuralUCB,
    Regression,
    Replay,
)
from rbmle.core.encoding import disjoint, per_arm, stack
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Observation
from rbmle.models.history import History
from rbmle.models.regression import RegressionState, Training
from tests.samples import context

BLOCKS, FEATURES, FROZEN_AT, ROUNDS = 3, 6, 70, 3000
MEMORIES = [Memory(), Memory(keep="window", size=50), Memory(keep="reservoir", size=50)]


def filled(memory: Memory, rounds: int, blocks: int = 3) -> tuple[History, list[Observation]]:
    history, seen = History.empty(blocks, "float64"), []
    for t in range(rounds):
        rng = np.random.default_rng(t)
        x = rng.normal(size=6) * (rng.random(6) < 0.5)
        seen.append(Observation(context=context(x, int(rng.integers(blocks))), reward=float(t)))
        history.append(seen[-1], memory, np.random.default_rng([t, 1]))
    return history, seen


def check(history: History, seen: list[Observation]) -> None:
    """Every kept observation is as it was, and each block lists just its own."""
    for slot in range(history.count):
        original = seen[int(history.serials[slot])]
        start, length = history.starts[slot], history.lengths[slot]
        np.testing.assert_array_equal(
            history.indices[start : start + length], original.context.rows.indices
        )
        np.testing.assert_array_equal(
            history.values[start : start + length], original.context.rows.values
        )
        assert history.rewards[slot] == original.reward
        assert history.squares[slot] == pytest.approx((original.context.dense() ** 2).sum())
        assert history.blocks[slot] == original.context.rows.blocks[0]
    for block in range(len(history.member_counts)):
        start, count = history.member_starts[block], history.member_counts[block]
        listed = sorted(history.members[start : start + count])
        assert listed == [s for s in range(history.count) if history.blocks[s] == block]


@pytest.mark.parametrize("rounds", [1, 63, 64, 65, 500])
def test_all_is_kept(rounds: int) -> None:
    history, seen = filled(Memory(), rounds)
    assert history.count == rounds
    check(history, seen)


@pytest.mark.parametrize("rounds", [5, 20, 21, 500])
def test_a_window_keeps_the_last(rounds: int) -> None:
    history, seen = filled(Memory(keep="window", size=20), rounds)
    kept = sorted(history.serials[: history.count])
    assert kept == list(range(max(0, rounds - 20), rounds))
    assert history.serials[history.newest] == rounds - 1
    check(history, seen)


@pytest.mark.parametrize("rounds", [5, 20, 21, 500])
def test_a_reservoir_keeps_a_sample_and_the_newest(rounds: int) -> None:
    history, seen = filled(Memory(keep="reservoir", size=20), rounds)
    assert history.count == min(rounds, 20)
    assert history.serials[history.newest] == rounds - 1
    check(history, seen)


def test_a_reservoir_is_a_uniform_sample() -> None:
    """Over 300 runs of 100 rounds, early and late rounds are kept alike: 10 of 100 each."""
    counts = np.zeros(100)
    for run in range(300):
        history = History.empty(1, "float64")
        for t in range(100):
            seen = Observation(context=context([1.0]), reward=0.0)
            history.append(seen, Memory(keep="reservoir", size=10), np.random.default_rng([run, t]))
        counts[history.serials[:10]] += 1
    halves = counts.reshape(4, 25).sum(axis=1) / 300 / 25
    np.testing.assert_allclose(halves, 0.1, atol=0.015)


@pytest.mark.parametrize("keep", ["window", "reservoir"])
def test_memory_is_bounded_for_an_endless_stream(keep: str) -> None:
    size, blocks, entries = 30, 3, 6
    history, _ = filled(Memory(keep=keep, size=size), 5000, blocks)  # type: ignore[arg-type]  # either
    assert len(history.starts) <= max(64, 2 * (size + 1))
    assert len(history.indices) == len(history.values) <= 4 * (size + 2) * entries
    assert len(history.members) <= 8 * blocks * size  # a slab doubles, and leaves as much behind


def test_a_bandit_with_a_window_forgets() -> None:
    """The right arm changes; with a window of 50 rounds the old one is forgotten."""
    policy = NeuralUCB(model=Regression(memory=Memory(keep="window", size=50)))
    bandit = Bandit(policy, arms=2, features=1)
    for t in range(400):
        bandit.learn([1.0], arm=t % 2, reward=float((t % 2) == (t < 200)))
    assert bandit.decide([1.0]).arm == 0


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.keep)
@pytest.mark.parametrize("training", [Replay(steps=2), FullBatch(steps=1)], ids=["replay", "full"])
def test_a_frozen_state_has_its_index_while_the_original_learns(
    memory: Memory, training: Training
) -> None:
    """Of NeuralRBMLE-GA, whose index reads the history; slots, pool and lists grow many times over."""
    policy, rounds = ga(memory, training), ROUNDS if isinstance(training, Replay) else 200
    state = started(policy)
    frozen = policy.frozen(state)
    before = index(policy, frozen)
    assert before == index(policy, state)
    policy.update_all(state, batch(FROZEN_AT, rounds))
    assert index(policy, frozen) == before
    assert index(policy, state) != before
    if memory.keep == "all" and rounds == ROUNDS:
        for name in ("starts", "values", "members"):
            assert len(getattr(state.history, name)) > 4 * len(getattr(frozen.history, name))


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.keep)
def test_a_frozen_state_is_read_by_one_thread_while_another_learns(memory: Memory) -> None:
    policy = ga(memory, Replay(steps=2))
    state = started(policy)
    frozen = policy.frozen(state)
    before = index(policy, frozen)
    thread = Thread(target=policy.update_all, args=(state, batch(FROZEN_AT, ROUNDS)))
    thread.start()
    answers = {index(policy, frozen)}
    while thread.is_alive():
        answers.add(index(policy, frozen))
    thread.join()
    assert answers == {before}
    assert state.round == FROZEN_AT + ROUNDS


def test_freezing_copies_no_observation_where_all_are_kept() -> None:
    policy = ga(Memory(), Replay(steps=2))
    state = started(policy)
    frozen = policy.frozen(state)
    for name in ("starts", "rewards", "indices", "values", "members"):
        assert getattr(frozen.history, name) is getattr(state.history, name)
    assert not np.shares_memory(frozen.net.theta.first, state.net.theta.first)
    assert frozen.net.start is state.net.start


def test_invalid_memory_settings_are_refused() -> None:
    with pytest.raises(SettingError, match="`size` must be at least 1 for a window, got 0"):
        Memory(keep="window")
    with pytest.raises(SettingError, match="got 'some'"):
        Memory(keep="some")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(SettingError, match="`size` must be 0 where all is kept, got 5"):
        Memory(size=5)


def ga(memory: Memory, training: Training) -> NeuralRBMLEGA:
    """Return a small policy whose index reads the history."""
    model = Regression(network=Network(width=8), training=training, memory=memory)
    ascent = ArmAscent(steps=8, rate=0.25)
    return NeuralRBMLEGA(bias=1.0, model=model, ascent=ascent, linear=None)


def started(policy: NeuralRBMLEGA) -> RegressionState:
    """Return a state that has learned a little, with lists and a pool that are partly full."""
    state = policy.init(BLOCKS, FEATURES, np.random.default_rng(0))
    policy.update_all(state, batch(0, FROZEN_AT))
    return state


def batch(begin: int, rounds: int) -> Batch:
    """Return the observations of some rounds."""
    rng = np.random.default_rng(begin)
    blocks, X = rng.integers(BLOCKS, size=rounds), rng.normal(size=(rounds, FEATURES))
    played = [disjoint(x, blocks[t : t + 1], FEATURES) for t, x in enumerate(X)]
    return Batch(
        contexts=stack(played),
        rewards=rng.random(rounds),
        is_fitted=np.ones(rounds, np.bool_),
        rng=lambda t: np.random.default_rng([begin, t]),
    )


def index(policy: NeuralRBMLEGA, state: RegressionState) -> bytes:
    """Return the index of every block, to the bit."""
    contexts = disjoint(np.ones(FEATURES), np.arange(BLOCKS), FEATURES)
    return policy.index(state, contexts, np.random.default_rng(1)).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squared_lengths_do_not_depend_on_alignment(dtype: str) -> None:
    history, expected = History.empty(1, dtype), []
    for t in range(400):  # arrays of contexts come and go, so they lie here and there
        x = np.random.default_rng(t).normal(size=1 + t % 40)
        history.append(
            Observation(context=context(x, 0), reward=0.0), Memory(), np.random.default_rng(t)
        )
        expected.append(sum(v * v for v in x.tolist()))
    np.testing.assert_array_equal(history.squares[:400], expected)


def test_a_network_has_a_bounded_memory_and_the_printed_one_remembers_all() -> None:
    usual = Memory(keep="window", size=50_000)
    assert Regression().memory == NeuralUCB().model.memory == usual
    assert NeuralRBMLEGA.as_printed().model.memory == Memory()


def test_a_file_stops_growing_when_the_memory_is_full(tmp_path: Path) -> None:
    bandit = Bandit(NeuralUCB(model=Regression(network=Network(width=4))), arms=2, features=2)
    sizes = {}
    x = np.random.default_rng(0).normal(size=(15_000, 2))
    contexts = per_arm(x, 2)
    nobody = np.zeros(15_000, np.bool_)  # is fitted: all are only remembered
    for rounds in range(15_000, 120_001, 15_000):
        bandit.learn_all(contexts, np.zeros(15_000), is_fitted=nobody)
        bandit.save(tmp_path / "saved")
        sizes[rounds] = (tmp_path / "saved").stat().st_size
    assert bandit.round == 120_000
    assert bandit.state.regression.history.count == 50_000
    assert abs(sizes[120_000] - sizes[75_000]) < 100  # the number of rounds has more digits
    assert sizes[75_000] < 8e6


def test_a_bandit_saved_with_all_of_its_history_continues_with_it(tmp_path: Path) -> None:
    policy = NeuralUCB(model=Regression(network=Network(width=4), memory=Memory()))
    bandit = Bandit(policy, arms=2, features=2, seed=1)
    for t in range(30):
        bandit.learn([1.0, t / 30], arm=t % 2, reward=float(t % 3 == 0))
    bandit.save(tmp_path / "saved")
    other = Bandit.load(tmp_path / "saved")
    assert other.policy == policy
    for one in (bandit, other):
        one.learn([0.5, 0.5], arm=0, reward=1.0)
    x = [0.2, 0.3]
    assert (bandit.decide(x).indices == other.decide(x).indices).all()
