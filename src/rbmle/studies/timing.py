"""Table 3: computation time of a round, of GA, and of UCB and TS with the exact Z, on Covertype's shape."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from scipy.linalg.blas import sger

from rbmle.core.bandit import Bandit
from rbmle.core.files import write_text
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Indices, Rows
from rbmle.engine.layout import Net
from rbmle.experiments.summary import policy_title
from rbmle.experiments.tables import Entry, ReportTable, latex, markdown
from rbmle.models.precision import Exact
from rbmle.policies import NeuralRBMLEGA, NeuralTS, NeuralUCB
from rbmle.studies.base import LEARNER, JSONRecord, load_or_measure
from rbmle.studies.base import TABLE_3 as PUBLISHED

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
        return self.exact.init(net, ridge)

    def estimates(self, state: Any, net: Net, rows: Rows, m: float) -> tuple[Indices, Indices]:
        started = time.perf_counter()
        estimates = self.exact.estimates(state, net, rows, m)
        self.clock.seconds += time.perf_counter() - started
        return estimates

    def corrected(self, state: Any, net: Net, rows: Rows, amount: float, m: float) -> Indices:
        started = time.perf_counter()
        estimates = self.exact.corrected(state, net, rows, amount, m)
        self.clock.seconds += time.perf_counter() - started
        return estimates

    def add(self, state: Any, net: Net, rows: Rows, m: float) -> None:
        """Z ← Z + g gᵀ/m."""
        started = time.perf_counter()
        self.exact.add(state, net, rows, m)
        self.clock.seconds += time.perf_counter() - started

    def grow(self, state: Any, net: Net, ridge: float) -> None:
        self.exact.grow(state, net, ridge)

    def frozen(self, state: Any) -> Any:
        return self.exact.frozen(state)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """Seconds of each round; `Z` is all 0 without a clock."""

    wall: Seconds
    cpu: Seconds  # of all threads
    Z: Seconds


def time_policy(
    policy: Policy[Any], rounds: int, clock: Clock, report: Callable[[Seconds], None]
) -> Times:
    """Play some rounds; `report` is called after each, off the clock, with the seconds so far."""
    _play_round(Bandit(policy, arms=ARMS, features=FEATURES, seed=SEED), 0)  # compiles the kernels
    bandit = Bandit(policy, arms=ARMS, features=FEATURES, seed=SEED)
    wall, cpu, Z = np.zeros(rounds), np.zeros(rounds), np.zeros(rounds)
    for t in range(rounds):
        before = clock.seconds
        wall[t], cpu[t] = _play_round(bandit, t)
        Z[t] = clock.seconds - before
        report(wall[: t + 1])
    return Times(wall=wall, cpu=cpu, Z=Z)


def _play_round(bandit: Bandit, t: int) -> tuple[float, float]:
    """Play round t, and return the wall and CPU seconds of deciding and learning."""
    rng = generator(SEED, Purpose.ENVIRONMENT, t)
    x = np.zeros(FEATURES)
    x[rng.choice(FEATURES, FILLED, replace=False)] = rng.normal(size=FILLED) / FILLED**0.5
    right = int(np.abs(x[:ARMS]).argmax())
    wall, cpu = time.perf_counter(), time.process_time()
    decision = bandit.decide(x)
    bandit.learn(decision, float(decision.arm == right))
    return time.perf_counter() - wall, time.process_time() - cpu


def milliseconds(seconds: float | None) -> str:
    """Return seconds as whole milliseconds, or with three digits if they are few; a dash for None.

    >>> milliseconds(0.0017), milliseconds(0.0123456), milliseconds(9.9027), milliseconds(None)
    ('1.70', '12.3', '9,903', '–')
    """
    if seconds is None:
        return "–"
    ms = 1e3 * seconds
    return f"{ms:,.0f}" if ms >= 99.5 else f"{ms:#.3g}"


KIB = 1024
MEMINFO = Path("/proc/meminfo")
CONTROL_GROUP = Path("/sys/fs/cgroup")


def free_bytes(meminfo: Path = MEMINFO, group: Path = CONTROL_GROUP) -> int:
    """Return the free memory of the machine, or of its container if that has less; 0 if not known."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * KIB
    except (OSError, ValueError, KeyError):
        return 0
    try:
        limit = int((group / "memory.max").read_text())
        return max(min(free, limit - int((group / "memory.current").read_text())), 0)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free


LOOK_SECONDS = 0.5  # between two lines
FEW = 10  # rounds; too few to extrapolate from


@contextmanager
def show_progress(title: str, rounds: int, console: Console) -> Iterator[Callable[[Seconds], None]]:
    """Yield a function that shows how far the rounds have got, given their seconds."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[played]:,} of {task.fields[rounds]:,} rounds"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]} left"),
    )
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        bar = progress.add_task(title, total=None, played=0, rounds=rounds, left="–")
        looked = time.monotonic()

        def report(wall: Seconds) -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked < LOOK_SECONDS and len(wall) < rounds:
                return
            looked = now
            left, spent = seconds_left(wall, rounds), float(wall.sum())
            progress.update(
                bar,
                played=len(wall),
                completed=spent,
                total=None if left is None else spent + left,
                left="–" if left is None else str(timedelta(seconds=round(left))),
            )
            progress.refresh()

        yield report


def seconds_left(wall: Seconds, rounds: int) -> float | None:
    """Return the time of the rounds to come if t of them take at + bt³; None in the first few.

    A round with the exact Z reads t² numbers, so all of them t³.
    """
    t, s = len(wall), len(wall) // 2
    if s < FEW:
        return None
    early, whole = wall[:s].mean(), wall.mean()
    b = max((whole - early) / (t**2 - s**2), 0.0)
    a = max(whole - b * t**2, 0.0)
    return float(a * (rounds - t) + b * (rounds**3 - t**3))


NUMBER_BYTES = 4  # of float32
SHARE = 0.8  # of the free memory that a matrix may take
REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Seconds of a round with a p × p inverse."""

    p: int
    update: float  # Z⁻¹ ← Z⁻¹ − uuᵀ/(1 + gᵀu), u = Z⁻¹g
    widths: float  # gᵀZ⁻¹g for each arm

    @property
    def seconds(self) -> float:
        return self.update + self.widths


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Seconds of `np.linalg.inv` of a p × p matrix."""

    p: int
    seconds: float


def time_update(p: int, arms: int) -> Update:
    """Measure Sherman and Morrison's update in place, and gᵀZ⁻¹g for each arm; the fastest of some."""
    rng = generator(SEED, Purpose.ENVIRONMENT, p)
    inverse = np.eye(p, dtype=np.float32)
    widths, updates = [], []
    for _ in range(REPEATS):
        G = (rng.normal(size=(arms, p)) / p**0.5).astype(np.float32)
        started = time.perf_counter()
        np.einsum("pi,ip->i", inverse @ G.T, G)
        decided = time.perf_counter()
        sherman_morrison(inverse, G[0])
        widths.append(decided - started)
        updates.append(time.perf_counter() - decided)
    return Update(p=p, update=min(updates), widths=min(widths))


def sherman_morrison(inverse: np.ndarray, g: np.ndarray) -> None:
    """Z⁻¹ ← Z⁻¹ − uuᵀ/(1 + gᵀu) with u = Z⁻¹g, without another matrix."""
    u = inverse @ g
    sger(-1 / (1 + g @ u), u, u, a=inverse.T, overwrite_a=1)  # Fortran's order, so in place


def time_inversion(p: int) -> Inversion:
    Z = generator(SEED, Purpose.ENVIRONMENT, p).normal(size=(p, p)).astype(np.float32)
    np.fill_diagonal(Z, p)
    spent = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        np.linalg.inv(Z)
        spent.append(time.perf_counter() - started)
    return Inversion(p=p, seconds=min(spent))


def sizes_that_fit(sizes: tuple[int, ...], free: int) -> list[int]:
    """Return the sizes, those too large for the free bytes replaced by the largest that fits."""
    largest = int((SHARE * free / NUMBER_BYTES) ** 0.5)
    return sorted({min(p, max(largest, sizes[0])) for p in sizes})


UPDATED, QUICK_UPDATED = (4_000, 16_000, PARAMETERS), (1_000, 2_000, 4_000)
INVERTED, QUICK_INVERTED = (1_000, 2_000, 4_000), (500, 1_000, 2_000)
GIGABYTE = 1e9


def dense_points(
    quick: bool, folder: Path, console: Console
) -> tuple[list[Update], list[Inversion]]:
    """Return the times of updates and of inversions of p × p matrices, for some p."""
    wanted = QUICK_UPDATED if quick else UPDATED
    free = free_bytes()
    updated, inverted = sizes_that_fit(wanted, free), QUICK_INVERTED if quick else INVERTED
    if updated[-1] < wanted[-1]:
        console.print(
            f"A {wanted[-1]:,} × {wanted[-1]:,} matrix takes {_gigabytes(wanted[-1])}, and "
            f"{free / GIGABYTE:.1f} GB are free: p = {updated[-1]:,} is measured in its place."
        )

    def measure() -> JSONRecord:
        console.print(f"Z⁻¹ as a p × p matrix, p up to {updated[-1]:,} …")
        return {
            "updates": [asdict(time_update(p, ARMS)) for p in updated],
            "inversions": [asdict(time_inversion(p)) for p in inverted],
        }

    record = load_or_measure(
        folder, {"arms": ARMS, "updated": updated, "inverted": inverted}, measure
    )
    updates = [Update(**point) for point in record["updates"]]
    return updates, [Inversion(**point) for point in record["inversions"]]


def dense_table(updates: list[Update], inversions: list[Inversion]) -> ReportTable:
    """Return the times of a round, each row measured or said to be extrapolated."""
    both, inversion = f"Rank-one update and {ARMS} widths", "np.linalg.inv"
    rows = [
        _dense_row(both, u.p, u.seconds, "measured", f"update {milliseconds(u.update)}")
        for u in updates
    ]
    if updates[-1].p < PARAMETERS:
        rows.append(_extrapolate_row(both, updates[-1].p, updates[-1].seconds, 2))
    rows += [_dense_row(inversion, i.p, i.seconds, "measured") for i in inversions]
    rows.append(_extrapolate_row(inversion, inversions[-1].p, inversions[-1].seconds, 3))
    return ReportTable(
        caption=(
            "The inverse of Z as a p by p matrix of float32, which ours is not, once a round: by the formula "
            f"of Sherman and Morrison, or anew; the fastest of {REPEATS}, on all cores. Covertype has "
            f"p = {PARAMETERS:,}, a matrix of {_gigabytes(PARAMETERS)}."
        ),
        corner="Dense inverse",
        columns=("p", "ms", "how"),
        rows=tuple(rows),
    )


def _dense_row(
    what: str, p: int, seconds: float, how: str, note: str = ""
) -> tuple[str, tuple[Entry, ...]]:
    spent = Entry(text=milliseconds(seconds), note=note)
    return what, (Entry(text=f"{p:,}"), spent, Entry(text=how))


def _extrapolate_row(
    what: str, p: int, seconds: float, power: int
) -> tuple[str, tuple[Entry, ...]]:
    how = f"extrapolated by p^{power} from p = {p:,}"
    grown = float(f"{seconds * (PARAMETERS / p) ** power:.2g}")  # no digits that it does not have
    return _dense_row(what, PARAMETERS, grown, how)


def _gigabytes(p: int) -> str:
    return f"{NUMBER_BYTES * p**2 / GIGABYTE:.1f} GB"


NAME, TITLE = "table-3", "Computation time of a round"
ROUNDS, QUICK_ROUNDS = 15_000, 1_500
PARTS = (1 / 15, 1 / 3, 2 / 3, 1)  # of the rounds: 1,000, 5,000, 10,000 and 15,000
WINDOW = 100  # rounds of a mean


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Measure what the folder lacks, write the tables in Markdown and LaTeX, and return the files."""
    rows = step_rows(QUICK_ROUNDS if quick else ROUNDS, out / NAME, console)
    updates, inversions = dense_points(quick, out / NAME, console)
    tables = (step_table(rows), growth_table(rows), dense_table(updates, inversions))
    return [
        write_text(out / f"{NAME}.md", "\n".join(map(markdown, tables))),
        write_text(out / f"{NAME}.tex", "\n".join(map(latex, tables))),
    ]


def step_rows(rounds: int, folder: Path, console: Console) -> dict[str, JSONRecord]:
    """Return the seconds of a round of the three policies; those that the folder has are not played."""
    ucb, ts = TimedExact(), TimedExact()
    policies: dict[str, tuple[Policy[Any], Clock]] = {
        "neural-rbmle-ga": (NeuralRBMLEGA(model=LEARNER), Clock()),
        "neural-ucb": (NeuralUCB(model=LEARNER, precision=ucb), ucb.clock),
        "neural-ts": (NeuralTS(model=LEARNER, precision=ts), ts.clock),
    }
    shape = {"arms": ARMS, "features": FEATURES, "filled": FILLED, "rounds": rounds, "seed": SEED}
    return {
        name: load_or_measure(
            folder,
            {"policy": repr(policy)} | shape,
            partial(_measure_policy, policy_title(name), policy, clock, rounds, console),
        )
        for name, (policy, clock) in policies.items()
    }


def step_table(rows: dict[str, JSONRecord]) -> ReportTable:
    """Return the paper's table, its numbers beside ours."""
    rounds = next(iter(rows.values()))["rounds"]
    fastest = min(float(row["wall"]) for row in rows.values())
    return ReportTable(
        caption=(
            f"Milliseconds of a round with K = {ARMS}, d = {FEATURES} and m = {WIDTH}, mean of {rounds:,} "
            "rounds; UCB and TS with the exact Z. t_step is the time of deciding and learning, t_Z what the "
            "widths and the update of Z take of it, gradients included. The paper's are of its own machine."
        ),
        corner="Computation time",
        columns=("t_step, ms", "CPU, ms", "t_Z, ms", "paper: t_step, ms", "paper: t_Z, ms"),
        rows=tuple(
            (
                policy_title(name),
                (
                    Entry(text=milliseconds(row["wall"]), is_best=row["wall"] == fastest),
                    Entry(text=milliseconds(row["cpu"])),
                    Entry(text=milliseconds(row["Z"])),
                    Entry(text=milliseconds(PUBLISHED[name]["t_step"])),
                    Entry(text=milliseconds(PUBLISHED[name]["t_Z"])),
                ),
            )
            for name, row in rows.items()
        ),
    )


def growth_table(rows: dict[str, JSONRecord]) -> ReportTable:
    """Return the time of a round early and late in the run."""
    points = list(next(iter(rows.values()))["at"])
    return ReportTable(
        caption=f"Milliseconds of a round, mean of the last {WINDOW} rounds up to t.",
        corner="t_step, ms",
        columns=tuple(f"t = {int(t):,}" for t in points),
        rows=tuple(
            (policy_title(name), tuple(Entry(text=milliseconds(row["at"][t])) for t in points))
            for name, row in rows.items()
        ),
    )


def _measure_policy(
    title: str, policy: Policy[Any], clock: Clock, rounds: int, console: Console
) -> JSONRecord:
    """Play a policy, and return the mean seconds of a round, and of Z in it if there is one."""
    with show_progress(title, rounds, console) as report:
        times = time_policy(policy, rounds, clock, report)
    points = [max(round(part * rounds), 1) for part in PARTS]
    return {
        "rounds": rounds,
        "wall": float(times.wall.mean()),
        "cpu": float(times.cpu.mean()),
        "Z": float(times.Z.mean()) if times.Z.any() else None,
        "at": {str(t): float(times.wall[max(t - WINDOW, 0) : t].mean()) for t in points},
    }
