"""Table 3: computation time of a round, of GA, and of UCB and TS with the exact Z, on Covertype's shape."""

from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from rbmle.core.files import write_text
from rbmle.core.policy import Policy
from rbmle.experiments.report_table import Entry, ReportTable, latex, markdown
from rbmle.experiments.summary import policy_title
from rbmle.policies import NeuralRBMLEGA, NeuralTS, NeuralUCB
from rbmle.studies.measurements import JSONRecord, kept
from rbmle.studies.milliseconds import milliseconds
from rbmle.studies.paper_policies import LEARNER
from rbmle.studies.progress import watched
from rbmle.studies.published import TABLE_3 as PUBLISHED
from rbmle.studies.step_time import ARMS, FEATURES, FILLED, SEED, WIDTH, Clock, TimedExact, timed
from rbmle.studies.table_3_dense import dense_points, dense_table

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
        name: kept(
            folder,
            {"policy": repr(policy)} | shape,
            partial(_row, policy_title(name), policy, clock, rounds, console),
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


def _row(
    title: str, policy: Policy[Any], clock: Clock, rounds: int, console: Console
) -> JSONRecord:
    """Play a policy, and return the mean seconds of a round, and of Z in it if there is one."""
    with watched(title, rounds, console) as report:
        times = timed(policy, rounds, clock, report)
    points = [max(round(part * rounds), 1) for part in PARTS]
    return {
        "rounds": rounds,
        "wall": float(times.wall.mean()),
        "cpu": float(times.cpu.mean()),
        "Z": float(times.Z.mean()) if times.Z.any() else None,
        "at": {str(t): float(times.wall[max(t - WINDOW, 0) : t].mean()) for t in points},
    }
