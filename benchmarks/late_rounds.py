"""What a late round costs against an early one of the same run."""

import time

import numpy as np
from rich.progress import track
from rich.table import Table

from benchmarks.policy_rounds import with_steps
from rbmle import Bandit, NeuralRBMLEPC, NeuralUCB

ARMS, FEATURES, EARLY, WINDOW = 10, 20, 1000, 500


def late_rounds(late: int) -> Table:
    """Return the CPU time of a round around two points of one run; at most 20 % apart is asked for.

    Two runs of equal policies go in turns, one at its early rounds and one at its late, so that
    both windows are measured in the same minute on the same machine.
    """
    table = Table(
        "policy", f"µs at round {EARLY:,}", f"µs at round {late:,}", "late / early", "at most"
    )
    table.title = "Cost of a round, median of a window"
    for policy in map(with_steps, (NeuralUCB(), NeuralRBMLEPC())):
        old = Bandit(policy, arms=ARMS, features=FEATURES, seed=0)
        young = Bandit(policy, arms=ARMS, features=FEATURES, seed=0)
        for t in track(range(late), description=f"{type(policy).__name__} to round {late:,}"):
            _round(old, t)
        for t in range(EARLY):
            _round(young, t)
        early_ns, late_ns = [], []
        for t in range(WINDOW):
            early_ns.append(_round(young, EARLY + t))
            late_ns.append(_round(old, late + t))
        early_us, late_us = np.median(early_ns) / 1e3, np.median(late_ns) / 1e3
        name = type(policy).__name__
        table.add_row(
            name, f"{early_us:.0f}", f"{late_us:.0f}", f"{late_us / early_us:.2f}", "1.20"
        )
    return table


def _round(bandit: Bandit, t: int) -> int:
    """Play one round and return its CPU time in nanoseconds."""
    x = np.random.default_rng(t).normal(size=FEATURES) / FEATURES**0.5
    started = time.process_time_ns()
    decision = bandit.decide(x)
    bandit.learn(decision, float(decision.arm == int(np.abs(x[:ARMS]).argmax())))
    return time.process_time_ns() - started
