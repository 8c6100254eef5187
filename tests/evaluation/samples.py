"""Logs with known values, and small ones that a hand can check."""

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rbmle.evaluation import TableLog

CONTEXT = '[{"user": {"age": 31.0, "country": "NL"}, "hour": 13.0}]'
ACTIONS = '[{"id": "tea", "features": [{"price": 2.5}]}, {"id": "air", "features": []}]'


def table(**changes: Any) -> pa.Table:
    """Return a log of three rounds."""
    usual = {
        "event_id": ["e", "f", "g"],
        "context": [CONTEXT] * 3,
        "actions": [ACTIONS] * 3,
        "arm": ["tea", "air", "tea"],
        "propensity": [0.8, 0.2, 0.8],
        "reward": [1.0, 0.0, 0.5],
    }
    kept = {name: value for name, value in (usual | changes).items() if value is not None}
    return pa.table(kept)


class World(NamedTuple):
    """A log that was drawn, and the mean reward of every arm in every round."""

    log: TableLog
    means: np.ndarray
    chances: np.ndarray  # of the logging policy


def world(n: int, seed: int, *, arms: int = 4, floor: float = 0.2, is_vector: bool = True) -> World:
    """Return clicks on arms that a softmax of the context played."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    theta = np.random.default_rng(99).normal(size=(arms, 3))
    means = 1 / (1 + np.exp(-(X @ theta.T)))
    odds = np.exp(X[:, :1] * np.linspace(-1, 1, arms))
    chances = (1 - floor) * odds / odds.sum(axis=1, keepdims=True) + floor / arms
    played = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    rewards = (rng.random(n) < means[np.arange(n), played]).astype(float)
    contexts = [
        json.dumps(x if is_vector else [{"user": dict(zip("abc", x, strict=True))}])
        for x in X.round(6).tolist()
    ]
    actions = json.dumps([{"id": f"a{arm}", "features": []} for arm in range(arms)])
    log = TableLog(
        {
            "event_id": [str(i) for i in range(n)],
            "context": contexts,
            "actions": pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [actions]),
            "arm": [f"a{arm}" for arm in played],
            "propensity": chances[np.arange(n), played],
            "reward": rewards,
            "probabilities": chances.tolist(),
        }
    )
    return World(log, means, chances)
