"""RiverSwim and other MDPs: regret over time, and over the length of the river."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console

from rbmle.core.files import write_text
from rbmle.experiments.line_panels import Line, Panel, line_panels
from rbmle.experiments.report_table import Entry, ReportTable, markdown
from rbmle.studies.mdp_contest import ENTRANTS, LENGTHS, RIVERS, Entrant, play, worlds
from rbmle.studies.measurements import JSONRecord, kept

NAME, TITLE = "riverswim", "Regret in Markov decision processes with unknown transitions"
SEEDS, QUICK_SEEDS = 20, 3
STEPS, QUICK_STEPS = 100_000, 10_000
LEAST = 1.0  # regret that is drawn, on a logarithmic axis
BAND = (0.1, 0.9)  # quantiles over seeds

Records = dict[tuple[str, str], JSONRecord]  # by the name of the MDP and the title of the learner


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Play what the folder lacks, write the tables in Markdown and the figure, and return the files."""
    seeds, steps = (QUICK_SEEDS, QUICK_STEPS) if quick else (SEEDS, STEPS)
    found: Records = {}
    for world, mdp in worlds().items():
        for entrant in ENTRANTS:
            settings = {
                "world": world,
                "learner": repr(entrant.learner),
                "seeds": seeds,
                "steps": steps,
            }
            measure = partial(play, mdp, entrant.learner, seeds, steps)
            found[world, entrant.title] = kept(out / NAME / "runs", settings, measure)
        spent = sum(found[world, entrant.title]["cpu_seconds"] for entrant in ENTRANTS)
        console.print(f"{world}: {spent:.1f} CPU s", highlight=False)
    tables = (regret_table(found, seeds, steps), time_table(found, seeds, steps))
    return [
        write_text(out / NAME / f"{NAME}.md", "\n".join(map(markdown, tables))),
        *line_panels(panels(found), out / NAME / NAME),
    ]


def regret_table(found: Records, seeds: int, steps: int) -> ReportTable:
    """Return the mean regret of the last step, and its standard error."""

    def entry(title: str, world: str) -> Entry:
        ends = {each.title: _regrets(found[world, each.title])[:, -1] for each in ENTRANTS}
        mean, error = ends[title].mean(), ends[title].std(ddof=1) / seeds**0.5
        best = min(end.mean() for end in ends.values())
        return Entry(text=f"{mean:,.0f} ± {error:,.0f}", is_best=bool(mean == best))

    return ReportTable(
        caption=(
            f"Mean regret after {steps:,} steps, ± its standard error over {seeds} seeds. In bold the best of "
            "each column."
        ),
        corner="Regret",
        columns=tuple(worlds()),
        rows=_rows(entry),
    )


def time_table(found: Records, seeds: int, steps: int) -> ReportTable:
    """Return the CPU time of a run."""

    def entry(title: str, world: str) -> Entry:
        return Entry(text=f"{found[world, title]['cpu_seconds'] / seeds:.3f}")

    return ReportTable(
        caption=f"CPU seconds of a run of {steps:,} steps, mean of {seeds}.",
        corner="CPU seconds",
        columns=tuple(worlds()),
        rows=_rows(entry),
    )


def panels(found: Records) -> list[Panel]:
    """Return regret over time in five of the MDPs, and regret at the end over the length of the river."""
    shown = [*RIVERS[::2], *(world for world in worlds() if world not in RIVERS)]
    drawn = [
        Panel(
            title=world,
            x_label="steps",
            y_label="regret",
            lines=tuple(
                _line(each, found[world, each.title]["times"], _regrets(found[world, each.title]))
                for each in ENTRANTS
            ),
            is_log_y=True,
        )
        for world in shown
    ]
    lengthening = tuple(
        _line(each, LENGTHS, np.stack([_regrets(found[w, each.title])[:, -1] for w in RIVERS], 1))
        for each in ENTRANTS
    )
    last = Panel(
        title="longer rivers, regret at the end",
        x_label="states",
        y_label="regret",
        lines=lengthening,
        is_log_x=False,
        is_log_y=True,
    )
    return [*drawn, last]


def _regrets(record: JSONRecord) -> Float[np.ndarray, "seeds times"]:
    """Return regrets by seed and time."""
    return np.array(record["regrets"])


def _line(entrant: Entrant, x: Iterable[float], regrets: Float[np.ndarray, "seeds times"]) -> Line:
    """Return the mean of the seeds, with a band of quantiles."""
    low, high = np.quantile(regrets, BAND, axis=0)
    return Line(
        label=entrant.title,
        style=entrant.style,
        x=np.array(list(x), np.float64),
        y=np.maximum(regrets.mean(axis=0), LEAST),
        low=np.maximum(low, LEAST),
        high=np.maximum(high, LEAST),
    )


def _rows(entry: Callable[[str, str], Entry]) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """Return a row for each entrant."""
    return tuple(
        (each.title, tuple(entry(each.title, world) for world in worlds())) for each in ENTRANTS
    )
