"""The time of each round of a policy, and of Z in it, on contexts of Covertype's shape."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Indices, Rows
from rbmle.engine.layout import Net
from rbmle.models.precision import Exact

ARMS, FEATURES = 7, 54  # Covertype's K and d
WIDTH = 100  # m, the default of a network
PARAMETERS = ARMS * FEATURES * WIDTH + WIDTH  # p of the paper's network, which has no biases
FILLED = 12  # features of a row that are not 0: ten numbers, an area and a soil
SEED = 0
Seconds = Float[np.ndarray, " rounds"]


@dataclass(slots=True)
class Clock:
    """The seconds that were spent on something."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedExact:
    """The exact Z, whose clock runs while it is read or added to."""

    exact: Exact = field(default_factory=Exact)
    clock: Clock = field(default_factory=Clock, repr=False, compare=False)

    def init(self, net: Net, ridge: float) -> Any:
        """Return Z = λI."""
        return self.exact.init(net, ridge)

    def estimates(self, state: Any, net: Net, rows: Rows, m: float) -> tuple[Indices, Indices]:
        """Return f and the widths."""
        started = time.perf_counter()
        found = self.exact.estimates(state, net, rows, m)
        self.clock.seconds += time.perf_counter() - started
        return found

    def corrected(self, state: Any, net: Net, rows: Rows, amount: float, m: float) -> Indices:
        """Return f at the corrected parameters."""
        started = time.perf_counter()
        found = self.exact.corrected(state, net, rows, amount, m)
        self.clock.seconds += time.perf_counter() - started
        return found

    def add(self, state: Any, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        started = time.perf_counter()
        self.exact.add(state, net, rows, m)
        self.clock.seconds += time.perf_counter() - started

    def grow(self, state: Any, net: Net, ridge: float) -> None:
        """Make room for more blocks."""
        self.exact.grow(state, net, ridge)

    def frozen(self, state: Any) -> Any:
        """Return Z as it is."""
        return self.exact.frozen(state)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """Seconds of each round; `Z` is all 0 without a clock."""

    wall: Seconds
    cpu: Seconds  # of all threads
    Z: Seconds


def timed(
    policy: Policy[Any], rounds: int, clock: Clock, report: Callable[[Seconds], None]
) -> Times:
    """Play some rounds; `report` is called after each, off the clock, with the seconds so far."""
    _play(Bandit(policy, arms=ARMS, features=FEATURES, seed=SEED), 0)  # compiles the kernels
    bandit = Bandit(policy, arms=ARMS, features=FEATURES, seed=SEED)
    wall, cpu, Z = np.zeros(rounds), np.zeros(rounds), np.zeros(rounds)
    for t in range(rounds):
        before = clock.seconds
        wall[t], cpu[t] = _play(bandit, t)
        Z[t] = clock.seconds - before
        report(wall[: t + 1])
    return Times(wall=wall, cpu=cpu, Z=Z)


def _play(bandit: Bandit, t: int) -> tuple[float, float]:
    """Play round t, and return the wall and CPU seconds of deciding and learning."""
    rng = generator(SEED, Purpose.ENVIRONMENT, t)
    x = np.zeros(FEATURES)
    x[rng.choice(FEATURES, FILLED, replace=False)] = rng.normal(size=FILLED) / FILLED**0.5
    right = int(np.abs(x[:ARMS]).argmax())
    wall, cpu = time.perf_counter(), time.process_time()
    decision = bandit.decide(x)
    bandit.learn(decision, float(decision.arm == right))
    return time.perf_counter() - wall, time.process_time() - cpu
