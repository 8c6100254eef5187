"""Beside Table 3: what Z⁻¹ costs as a p × p matrix, for some p and extrapolated to Covertype's."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from rbmle.experiments.report_table import Entry, ReportTable
from rbmle.studies.dense_inverse import (
    NUMBER_BYTES,
    REPEATS,
    Inversion,
    Update,
    sizes_that_fit,
    time_inversion,
    time_update,
)
from rbmle.studies.measurements import JSONRecord, kept
from rbmle.studies.memory import free_bytes
from rbmle.studies.milliseconds import milliseconds
from rbmle.studies.step_time import ARMS, PARAMETERS

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

    found = kept(folder, {"arms": ARMS, "updated": updated, "inverted": inverted}, measure)
    updates = [Update(**point) for point in found["updates"]]
    return updates, [Inversion(**point) for point in found["inversions"]]


def dense_table(updates: list[Update], inversions: list[Inversion]) -> ReportTable:
    """Return the times of a round, each row measured or said to be extrapolated."""
    both, anew = f"Rank-one update and {ARMS} widths", "np.linalg.inv"
    rows = [
        _row(both, u.p, u.seconds, "measured", f"update {milliseconds(u.update)}") for u in updates
    ]
    if updates[-1].p < PARAMETERS:
        rows.append(_extrapolated(both, updates[-1].p, updates[-1].seconds, 2))
    rows += [_row(anew, i.p, i.seconds, "measured") for i in inversions]
    rows.append(_extrapolated(anew, inversions[-1].p, inversions[-1].seconds, 3))
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


def _row(
    what: str, p: int, seconds: float, how: str, note: str = ""
) -> tuple[str, tuple[Entry, ...]]:
    """Return a row."""
    spent = Entry(text=milliseconds(seconds), note=note)
    return what, (Entry(text=f"{p:,}"), spent, Entry(text=how))


def _extrapolated(what: str, p: int, seconds: float, power: int) -> tuple[str, tuple[Entry, ...]]:
    """Return a row for Covertype's p by the law p², or p³."""
    how = f"extrapolated by p^{power} from p = {p:,}"
    grown = float(f"{seconds * (PARAMETERS / p) ** power:.2g}")  # no digits that it does not have
    return _row(what, PARAMETERS, grown, how)


def _gigabytes(p: int) -> str:
    """Return the size of a p × p matrix."""
    return f"{NUMBER_BYTES * p**2 / GIGABYTE:.1f} GB"
