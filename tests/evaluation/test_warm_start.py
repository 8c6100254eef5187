"""Bandits that begin with a log."""

import json

import numpy as np
import pytest

from benchmarks.evaluation.warm_start import regret
from rbmle import Bandit, Hashing, LinUCB
from rbmle.environments import Classification
from rbmle.evaluation import TableLog, warm_start
from rbmle.evaluation.logs import LogReading
from tests.evaluation.samples import table, world


def test_it_is_partial_fit_on_the_played_arms() -> None:
    log = world(300, 0).log
    warm = Bandit(LinUCB(), arms=["a0"], features=3)
    assert warm_start(warm, log) == 300
    assert warm.round == 300
    assert warm.arms is not None
    assert set(warm.arms.ids) == {"a0", "a1", "a2", "a3"}
    again = Bandit(LinUCB(), arms=warm.arms.ids, features=3)
    (batch,) = log.batches(LogReading())
    X = np.array([json.loads(text) for text in batch.table["context"].to_pylist()])
    again.partial_fit(X, batch.table["arm"].to_pylist(), batch.table["reward"].to_pylist())
    assert warm.predict(X[0]) == pytest.approx(again.predict(X[0]))


def test_dictionaries_are_learned_per_arm_and_disjoint() -> None:
    log = TableLog(table())
    per_arm = Bandit(LinUCB(), features=Hashing(bits=6), encoding="per-arm")
    assert warm_start(per_arm, log) == 3
    shared, own = {"user": {"age": 31.0, "country": "NL"}, "hour": 13.0}, [{"price": 2.5}, {}]
    liked = per_arm.predict((shared, own), eligible=["tea", "air"])
    assert liked["tea"] > liked["air"]
    disjoint = Bandit(LinUCB(), arms=["tea", "air"], features=Hashing(bits=6))
    assert warm_start(disjoint, log) == 3
    found = disjoint.predict(shared)
    assert found["tea"] > found["air"]


@pytest.mark.slow
def test_a_log_saves_regret() -> None:
    problem = Classification(dataset="shuttle")
    cold, warm = (regret("lin-ucb", problem, n, 400, 0) for n in (0, 1_000))
    assert warm < 0.7 * cold
