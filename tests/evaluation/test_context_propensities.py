"""Propensities that are estimated from contexts, on logs whose truth is known."""

import json

import numpy as np
import pyarrow as pa
import pytest

from rbmle.evaluation import EvaluationWarning, TableLog, evaluate
from rbmle.evaluation.logs import LogReading
from rbmle.evaluation.propensities import ContextPropensities
from rbmle.evaluation.rounds import Rounds, rounds_of

ARMS = 3
TASTES = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])  # of each arm

KINDS = np.random.default_rng(0).normal(
    size=(8, 2)
)  # of guests; dictionaries name them, and no more


@pytest.mark.parametrize("is_vector", [True, False])
@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_a_log_of_a_policy_that_saw_the_context_is_judged_with_hardly_any_bias(
    is_vector: bool, estimator: str
) -> None:
    """The logging policy likes arms where they pay: without contexts, all arms seem to pay as much."""
    errors: dict[str, list[float]] = {"contexts": [], "arms": []}
    for seed in range(4):
        log, _, means = drawn(4_000, seed, is_vector=is_vector)
        for how, found in errors.items():
            with pytest.warns(EvaluationWarning, match="ESTIMATED PROPENSITIES"):
                one = evaluate(log, "uniform", estimators=estimator, propensities=how)
            found.append((one["uniform", estimator].value or 0.0) - means.mean())
    assert abs(np.mean(errors["contexts"])) < 0.015
    if estimator != "dr":  # whose model of rewards saw the context, and mends most of it
        assert np.mean(errors["arms"]) > 0.1


def test_estimates_are_near_to_the_truth_and_add_up_to_one() -> None:
    log, chances, _ = drawn(8_000, 0)
    rounds, found = learned(log)
    true = chances[np.arange(len(rounds)), rounds.played]
    assert np.abs(found.fill(rounds) - true).mean() < 0.02
    assert found.smallest == pytest.approx(found.fill(rounds).min())


def test_no_round_is_judged_by_a_model_that_saw_it() -> None:
    """Another arm in one round changes what is said of the other half, and nothing in its own."""
    log, _, _ = drawn(400, 1)
    (batch,) = log.batches(LogReading())
    table = pa.Table.from_batches([batch.table]).drop_columns(["propensity"])
    arms = table["arm"].to_pylist()
    changed = [f"a{(int(arms[0][1]) + 1) % ARMS}", *arms[1:]]
    place = table.column_names.index("arm")
    other = TableLog(table.set_column(place, "arm", pa.array(changed)))
    rounds, before = learned(log)
    _, after = learned(other)
    is_same = before.fill(rounds) == after.fill(rounds)
    assert is_same[0]
    assert 0.4 < is_same.mean() < 0.6


def test_rounds_with_a_propensity_keep_it_and_teach_nothing() -> None:
    log, _, _ = drawn(400, 2)
    (batch,) = log.batches(LogReading())
    table = pa.Table.from_batches([batch.table]).drop_columns(["propensity"])
    known = pa.array([0.25 if i % 2 else None for i in range(400)], pa.float64())
    arms = ["a0" if i % 2 else arm for i, arm in enumerate(table["arm"].to_pylist())]
    half = table.append_column("propensity", known)
    place = half.column_names.index("arm")
    rounds, found = learned(TableLog(half))
    _, others = learned(TableLog(half.set_column(place, "arm", pa.array(arms))))
    filled = found.fill(rounds)
    assert (filled[1::2] == 0.25).all()
    np.testing.assert_array_equal(filled[::2], others.fill(rounds)[::2])


def test_where_contexts_tell_nothing_it_is_how_often_arms_were_played() -> None:
    rng = np.random.default_rng(0)
    n = 8_000
    played = rng.choice(ARMS, p=[0.6, 0.3, 0.1], size=n)
    rounds, found = learned(_log(rng.normal(size=(n, 2)), played, np.zeros(n), is_vector=True))
    estimated = found.fill(rounds)
    for arm, share in enumerate((0.6, 0.3, 0.1)):
        assert estimated[played == arm].mean() == pytest.approx(share, abs=0.02)


def learned(log: TableLog) -> tuple[Rounds, ContextPropensities]:
    """Return the rounds of a log, and what is learned from it."""

    def read() -> list[Rounds]:
        return list(rounds_of(log, LogReading(), has_contexts=True, default_reward=0.0))

    (rounds,) = read()  # the first batch, which holds all
    return rounds, ContextPropensities.fit(read, len(rounds), lambda done: None)


def drawn(n: int, seed: int, *, is_vector: bool = True) -> tuple[TableLog, np.ndarray, np.ndarray]:
    """Return a log, the probability of every arm in every round, and what it pays on average."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) if is_vector else KINDS[rng.integers(len(KINDS), size=n)]
    odds = np.exp(X @ TASTES.T)
    chances = odds / odds.sum(axis=1, keepdims=True)
    means = 1 / (1 + np.exp(-2 * X @ TASTES.T))
    played = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    rewards = (rng.random(n) < means[np.arange(n), played]).astype(float)
    return _log(X, played, rewards, is_vector=is_vector), chances, means


def _log(X: np.ndarray, played: np.ndarray, rewards: np.ndarray, *, is_vector: bool) -> TableLog:
    contexts = [json.dumps(x if is_vector else {"kind": str(x)}) for x in X.round(6).tolist()]
    actions = json.dumps([f"a{arm}" for arm in range(ARMS)])
    return TableLog(
        {
            "context": contexts,
            "actions": pa.DictionaryArray.from_arrays(np.zeros(len(X), np.int32), [actions]),
            "arm": [f"a{arm}" for arm in played],
            "reward": rewards,
        }
    )
