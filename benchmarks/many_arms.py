"""What thousands of arms cost: a decision against a plain forward pass, and a lesson against few arms.

Contexts are given in double precision, NumPy's own; the network of a policy is in single precision.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from rbmle import Bandit, NeuralRBMLEGA, NeuralRBMLEPC, NeuralUCB
from rbmle.core.policy import Policy

ARMS, FEATURES, WIDTH = 10_000, 50, 100
WARM, TURNS = 200, 21
FEW = 10
DECIDING: tuple[tuple[Policy[Any], float], ...] = (
    (NeuralUCB(), 2.5),
    (NeuralRBMLEPC(), 2.5),
    (NeuralRBMLEGA(), 6.0),
)
LEARNING = 6.0


def many_arms() -> Table:
    """Return the CPU time of a decision and of a lesson, in ratios; the median of some turns."""
    table = Table("what", "ms", "against", "ms", "ratio", "at most")
    table.title = f"K = {ARMS:,}, d = {FEATURES}, m = {WIDTH}, one thread, median of {TURNS} turns"
    X = np.random.default_rng(0).normal(size=(ARMS, FEATURES)) / FEATURES**0.5
    for policy, limit in DECIDING:
        bandit = _trained(policy)
        passes = {f"NumPy, {dtype}": _forward(X.astype(dtype)) for dtype in ("float64", "float32")}
        ours, *numpys = _medians(partial(bandit.decide, X), *passes.values())
        name = f"{type(policy).__name__}, decide"
        for against, theirs in zip(passes, numpys, strict=True):
            _add(table, name, ours, against, theirs, limit)
    many, few = (_lessons(arms) for arms in (ARMS, FEW))
    ours, theirs = _medians(many, few)
    _add(table, "NeuralUCB, learn, disjoint", ours, f"K = {FEW}", theirs, LEARNING)
    return table


def _add(table: Table, what: str, ours: float, against: str, theirs: float, limit: float) -> None:
    ratio = f"{ours / theirs:.2f}"
    table.add_row(what, f"{1e3 * ours:.2f}", against, f"{1e3 * theirs:.2f}", ratio, f"{limit}")


def _medians(*runs: Callable[[], Any]) -> list[float]:
    """Return the median CPU seconds of each, measured in turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()  # compile
    for _ in range(TURNS):
        for run, own in zip(runs, seconds, strict=True):
            started = time.thread_time()
            run()
            own.append(time.thread_time() - started)
    return [float(np.median(own)) for own in seconds]


def _forward(X: np.ndarray) -> Callable[[], np.ndarray]:
    """Return the forward pass of a network, as a user of NumPy writes it."""
    rng = np.random.default_rng(1)
    W, b, w = (rng.normal(size=n).astype(X.dtype) for n in ((FEATURES, WIDTH), WIDTH, WIDTH))
    return lambda: np.maximum(X @ W + b, 0) @ w


def _trained(policy: Policy[Any]) -> Bandit:
    bandit = Bandit(policy, features=FEATURES, encoding="per-arm", seed=0)
    for t in range(WARM):
        X = np.random.default_rng(t).normal(size=(20, FEATURES)) / FEATURES**0.5
        decision = bandit.decide(X)
        bandit.learn(decision, float(X[int(decision.arm), 0] > 0))
    return bandit


def _lessons(arms: int) -> Callable[[], None]:
    """Return what teaches a bandit one more reward of a random arm."""
    bandit = Bandit(NeuralUCB(), arms=arms, features=FEATURES, seed=0)

    def run() -> None:
        rng = np.random.default_rng(bandit.round)
        x = rng.normal(size=FEATURES) / FEATURES**0.5
        bandit.learn(x, arm=int(rng.integers(arms)), reward=float(x[0] > 0))

    for _ in range(WARM):
        run()
    return run
