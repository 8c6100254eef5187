"""Table 3: computation time of a round, of GA, and of UCB and TS with the exact Z, on Covertype's shape."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.types import Indices, Rows
from rbmle.engine.layout import Net
from rbmle.models.precision import Exact
from rbmle.policies import NeuralRBMLEGA, NeuralTS, NeuralUCB
from rbmle.studies.published import TABLE_3 as PUBLISHED

ARMS, FEATURES, FILLED = 7, 54, 12
ROUNDS, QUICK_ROUNDS = 15_000, 300
MILLISECOND = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedExact:
    """The exact Z, with a clock: `spent` has the seconds that were spent on it."""

    exact: Exact = field(default_factory=Exact)
    spent: list[float] = field(default_factory=lambda: [0.0], compare=False)

    def init(self, net: Net, ridge: float) -> Any:
        """Return Z = λI."""
        return self.exact.init(net, ridge)

    def estimates(self, state: Any, net: Net, rows: Rows, m: float) -> tuple[Indices, Indices]:
        """Return f and the widths."""
        started = time.perf_counter()
        found = self.exact.estimates(state, net, rows, m)
        self.spent[0] += time.perf_counter() - started
        return found

    def corrected(self, state: Any, net: Net, rows: Rows, amount: float, m: float) -> Indices:
        """Return f at the corrected parameters."""
        return self.exact.corrected(state, net, rows, amount, m)

    def add(self, state: Any, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        started = time.perf_counter()
        self.exact.add(state, net, rows, m)
        self.spent[0] += time.perf_counter() - started

    def grow(self, state: Any, net: Net, ridge: float) -> None:
        """Make room for more blocks."""
        self.exact.grow(state, net, ridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Milliseconds of a round, on average over all of them, and of Z⁻¹ in it."""

    policy: str
    rounds: int
    step: float
    Z: float | None
    published_step: float
    published_Z: float | None


def timings(quick: bool) -> list[Timing]:
    """Return the three rows of the table."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    clocks = {"neural-ucb": TimedExact(), "neural-ts": TimedExact()}
    policies = {
        "neural-rbmle-ga": NeuralRBMLEGA(),
        "neural-ucb": NeuralUCB(precision=clocks["neural-ucb"]),
        "neural-ts": NeuralTS(precision=clocks["neural-ts"]),
    }
    found = []
    for name, policy in policies.items():
        seconds = _seconds(policy, rounds)
        spent = clocks[name].spent[0] if name in clocks else None
        paper = PUBLISHED[name]
        found.append(
            Timing(
                policy=name,
                rounds=rounds,
                step=MILLISECOND * seconds / rounds,
                Z=None if spent is None else MILLISECOND * spent / rounds,
                published_step=MILLISECOND * float(paper["t_step"] or 0),
                published_Z=None if paper["t_Z"] is None else MILLISECOND * paper["t_Z"],
            )
        )
    return found


def _seconds(policy: Any, rounds: int) -> float:
    """Return the time of some rounds, without the compilation of the first."""
    rng = np.random.default_rng(0)
    bandit = Bandit(policy, arms=ARMS, features=FEATURES, seed=0)
    total = 0.0
    for t in range(rounds + 1):
        x = np.zeros(FEATURES)
        x[rng.choice(FEATURES, FILLED, replace=False)] = rng.normal(size=FILLED) / FILLED**0.5
        right = int(np.abs(x[:ARMS]).argmax())
        started = time.perf_counter()
        decision = bandit.decide(x)
        bandit.learn(decision, float(decision.arm == right))
        total += (time.perf_counter() - started) if t else 0.0
        if t == 0 and hasattr(policy, "precision") and isinstance(policy.precision, TimedExact):
            policy.precision.spent[0] = 0.0
    return total
