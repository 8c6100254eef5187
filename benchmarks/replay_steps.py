"""CPU time of a replay step: our kernel, and the same kernel in C, in turns."""

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from rbmle.core.types import Rows
from rbmle.engine.compiled import scalar
from rbmle.engine.layout import Net, Past
from rbmle.engine.replay import replay
from rbmle.likelihoods import Gaussian
from rbmle.models.network import Network
from rbmle.models.regression import Regression, Replay

SHAPES = ((10, 784, 150), (7, 54, 12), (2, 10, 10))  # K, d, non-zeros: MNIST, Covertype, Magic
WIDTH, STEPS, SAMPLES, TURNS = 100, 100, 2000, 300
RATE, RIDGE, KEY = 0.1, 0.001, np.uint64(7)
LIMIT = 1.4


def replay_steps() -> Table:
    """Return µs per step for each shape."""
    table = Table("K, d, non-zeros", "ours, µs", "C, µs", "ours / C", "at most")
    table.title = f"CPU time of a replay step, m = {WIDTH}, best of {TURNS} turns"
    with tempfile.TemporaryDirectory() as folder:
        library = _compiled(Path(folder))
        for shape in SHAPES:
            ours, theirs = _measured(shape, library)
            row = [str(shape), f"{ours:.3f}"]
            if theirs is None:
                table.add_row(*row, "no C compiler", "–", f"{LIMIT}")
            else:
                table.add_row(*row, f"{theirs:.3f}", f"{ours / theirs:.2f}", f"{LIMIT}")
    return table


def _measured(shape: tuple[int, int, int], library: Any) -> tuple[float, float | None]:
    """Return the best CPU time of a step, ours and C's, measured in turns."""
    ours, theirs = _ours(shape), None if library is None else _theirs(shape, library)
    best = [np.inf, np.inf]
    for _ in range(TURNS):
        best[0] = min(best[0], _seconds(ours))
        if theirs is not None:
            best[1] = min(best[1], _seconds(theirs))
    per_step = [1e6 * seconds / STEPS for seconds in best]
    return per_step[0], None if theirs is None else per_step[1]


def _seconds(run: Callable[[], Any]) -> float:
    started = time.process_time_ns()
    run()
    return (time.process_time_ns() - started) / 1e9


def _ours(shape: tuple[int, int, int]) -> Callable[[], Any]:
    net, rows, squares, rewards = _problem(shape)
    serials, none = np.arange(SAMPLES), np.zeros(0, np.int64)
    past = Past(rows, squares, rewards, serials, none, none, none, none, none)
    sizes = np.array([SAMPLES, SAMPLES, SAMPLES - 1, 0, 0])
    fit = Regression(ridge=RIDGE, training=Replay(steps=STEPS, rate=RATE)).fit

    def run() -> None:
        replay(net, past, sizes, fit, KEY, 0.0, net.theta)

    run()  # compile
    return run


def _theirs(shape: tuple[int, int, int], library: Any) -> Callable[[], Any]:
    net, rows, squares, rewards = _problem(shape)
    theta = net.theta
    h, delta = np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    network = (theta.first, theta.output, theta.biases, theta.shift, net.start.first, net.ages)
    arguments = (
        *(_pointer(array) for array in network),
        ctypes.c_double(0.0),
        ctypes.c_int64(net.features),
        ctypes.c_int64(WIDTH),
        *(_pointer(array) for array in (*rows, squares, rewards)),
        ctypes.c_int64(SAMPLES),
        ctypes.c_int64(STEPS),
        ctypes.c_double(RATE),
        ctypes.c_void_p(scalar(Gaussian.mean)),
        ctypes.c_uint64(int(KEY)),
        _pointer(h),
        _pointer(delta),
    )
    alive = (net, rows, squares, rewards, h, delta)

    def run(_: Any = alive) -> None:
        library.replay(*arguments)

    run()
    return run


def _problem(shape: tuple[int, int, int]) -> tuple[Net, Rows, np.ndarray, np.ndarray]:
    """Return a network and a history of sparse samples."""
    arms, features, filled = shape
    rng = np.random.default_rng(0)
    net = Network(width=WIDTH).init(arms, features, rng)
    indices = np.concatenate(
        [np.sort(rng.choice(features, filled, replace=False)) for _ in range(SAMPLES)]
    ).astype(np.int32)
    values = (rng.normal(size=SAMPLES * filled) / filled**0.5).astype(np.float32)
    rows = Rows(
        np.arange(SAMPLES) * filled,
        np.full(SAMPLES, filled),
        rng.integers(arms, size=SAMPLES),
        indices,
        values,
    )
    return net, rows, np.ones(SAMPLES), rng.integers(2, size=SAMPLES).astype(np.float64)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _compiled(folder: Path) -> Any:
    """Return the C kernel, or None where there is no compiler."""
    source, target = Path(__file__).with_name("replay.c"), folder / "replay.so"
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    try:
        subprocess.run(["gcc", *flags, "-o", str(target), str(source)], check=True)
    except FileNotFoundError:
        return None
    return ctypes.CDLL(str(target))
