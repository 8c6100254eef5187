"""RiverSwim and other MDPs: regret over time, and over the length of the river."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console

from rbmle.core.files import write_text
from rbmle.experiments.line_panels import Line, Panel, line_panels
from rbmle.experiments.paired import SIGNIFICANT
from rbmle.experiments.report_table import Entry, ReportTable, markdown
from rbmle.experiments.versions import versions
from rbmle.studies.mdp_contest import (
    ENTRANTS,
    FIRST_SEED,
    LENGTHS,
    RIVERS,
    TUNING_SEED,
    TUNING_SEEDS,
    Entrant,
    play,
    tuning_regrets,
    tuning_score,
    tuning_worlds,
    worlds,
)
from rbmle.studies.measurements import ENDING, JSONRecord, kept, write_results

NAME, TITLE = "riverswim", "Regret in Markov decision processes with unknown transitions"
SEEDS, QUICK_SEEDS = 20, 3
STEPS, QUICK_STEPS = 100_000, 10_000
LEAST = 1.0  # regret that is drawn, on a logarithmic axis
BAND = (0.1, 0.9)  # quantiles over seeds

Records = dict[tuple[str, str], JSONRecord]  # by the name of the MDP and the title of the learner
Ends = Mapping[tuple[str, str], Sequence[float]]  # the same, regrets after the last step by seed
Scores = dict[str, dict[float, float]]  # by the title of the learner and the value of its constant


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Tune and play what the folder lacks, write the tables and the figure, and return the files.

    A quick run has the constants that were chosen before.
    """
    seeds, steps = (QUICK_SEEDS, QUICK_STEPS) if quick else (SEEDS, STEPS)
    runs = out / NAME / "runs"
    scores = {} if quick else tune(runs, steps, console)
    entrants = [
        each.with_constant(min(tried, key=tried.__getitem__))
        if (tried := scores.get(each.title))
        else each
        for each in ENTRANTS
    ]
    found: Records = {}
    for world, mdp in worlds().items():
        for entrant in entrants:
            settings = {
                "world": world,
                "learner": repr(entrant.learner),
                "first_seed": FIRST_SEED,
                "seeds": seeds,
                "steps": steps,
            }
            measure = partial(play, mdp, entrant.learner, seeds, steps)
            found[world, entrant.title] = kept(runs, settings, measure)
        spent = sum(found[world, entrant.title]["cpu_seconds"] for entrant in entrants)
        console.print(f"{world}: {spent:.1f} CPU s", highlight=False)
    ends = {
        (world, each.title): [row[-1] for row in found[world, each.title]["regrets"]]
        for world in worlds()
        for each in entrants
    }
    named = {
        (world, labelled(each)): ends[world, each.title] for world in worlds() for each in entrants
    }
    tables = [
        regret_table(named, [labelled(each) for each in entrants], steps),
        time_table(found, seeds, steps),
    ]
    if scores:
        tables.append(tuning_table(scores, steps))
    results = {
        "note": f"Regret after {steps:,} steps by seed, from seed {FIRST_SEED} on.",
        "steps": steps,
        "versions": versions(),
        "learners": {labelled(each): repr(each.learner) for each in entrants},
        "tuning": {
            title: {f"{v:g}": score for v, score in s.items()} for title, s in scores.items()
        },
    }
    lists = {
        "regrets": [
            [world, labelled(each), [round(end, 3) for end in ends[world, each.title]]]
            for world in worlds()
            for each in entrants
        ]
    }
    return [
        write_text(out / NAME / f"{NAME}.md", "\n".join(map(markdown, tables))),
        *line_panels(panels(found), out / NAME / NAME),
        write_results(out / NAME / f"{NAME}{ENDING}", results, lists),
    ]


def published_regrets(results: JSONRecord) -> ReportTable:
    """Return the table of regrets of results by seed."""
    ends = {(world, title): regrets for world, title, regrets in results["regrets"]}
    return regret_table(ends, list(results["learners"]), results["steps"])


def published_tuning(results: JSONRecord) -> ReportTable:
    """Return the table of tuning of results by seed."""
    scores = {
        title: {float(value): score for value, score in tried.items()}
        for title, tried in results["tuning"].items()
    }
    return tuning_table(scores, results["steps"])


def tune(runs: Path, steps: int, console: Console) -> Scores:
    """Return the geometric mean of regret of each value of each constant, on MDPs that are not reported."""
    scores: Scores = {}
    for entrant in ENTRANTS:
        for value in entrant.values:
            settings = {
                "tuning": sorted(tuning_worlds()),
                "learner": repr(entrant.with_constant(value).learner),
                "first_seed": TUNING_SEED,
                "seeds": TUNING_SEEDS,
                "steps": steps,
            }
            record = kept(runs, settings, partial(tuning_regrets, entrant, value, steps))
            scores.setdefault(entrant.title, {})[value] = tuning_score(record)
        if entrant.values:
            tried = scores[entrant.title]
            best = min(tried, key=tried.__getitem__)
            console.print(f"{entrant.title}: {entrant.constant} = {best:g}", highlight=False)
    return scores


def tuning_table(scores: Scores, steps: int) -> ReportTable:
    """Return what each value of each constant had in tuning, as value: score."""
    count = max(len(tried) for tried in scores.values())

    def entries(tried: dict[float, float]) -> tuple[Entry, ...]:
        best = min(tried.values())
        shown = [
            Entry(text=f"{value:g}: {score:,.0f}", is_best=score == best)
            for value, score in tried.items()
        ]
        return (*shown, *[Entry()] * (count - len(shown)))

    return ReportTable(
        caption=(
            f"Tuning: each value of the constant, and the geometric mean over {len(tuning_worlds())} MDPs "
            f"of the mean regret after {steps:,} steps, {TUNING_SEEDS} seeds from {TUNING_SEED} on. None of "
            "these MDPs and seeds is reported. In bold what was chosen."
        ),
        corner="Learner",
        columns=tuple(f"value {place}" for place in range(1, count + 1)),
        rows=tuple((title, entries(tried)) for title, tried in scores.items()),
    )


def regret_table(ends: Ends, titles: Sequence[str], steps: int) -> ReportTable:
    """Return the mean regret of the last step, and its standard error, of regrets by seed.

    In bold is the best of a column, and all from which it is not significantly different.
    """
    seeds = len(next(iter(ends.values())))
    columns = tuple(dict.fromkeys(world for world, _ in ends))

    def entry(title: str, world: str) -> Entry:
        own = np.array(ends[world, title])
        best = min((np.array(ends[world, each]) for each in titles), key=np.mean)
        text = f"{own.mean():,.0f} ± {own.std(ddof=1) / seeds**0.5:,.0f}"
        return Entry(text=text, is_best=is_tied(own, best))

    return ReportTable(
        caption=(
            f"Mean regret after {steps:,} steps, ± its standard error over {seeds} seeds from {FIRST_SEED} "
            "on. In bold the best of each column, and every learner that is not significantly worse (Welch's "
            "test, p ≥ 0.05)."
        ),
        corner="Regret",
        columns=columns,
        rows=tuple((title, tuple(entry(title, world) for world in columns)) for title in titles),
    )


def labelled(entrant: Entrant) -> str:
    """Return an entrant's title with its tuned constant."""
    return (
        f"{entrant.title}, {entrant.constant} {entrant.value:g}"
        if entrant.constant
        else entrant.title
    )


def is_tied(own: Float[np.ndarray, " seeds"], best: Float[np.ndarray, " seeds"]) -> bool:
    """Return whether regrets do not have a significantly larger mean than the best, by Welch's test."""
    from scipy.stats import t

    difference = float(own.mean() - best.mean())
    parts = [float(each.var(ddof=1)) / len(each) for each in (own, best)]
    if difference == 0 or sum(parts) == 0:
        return difference == 0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(each) - 1) for part, each in zip(parts, (own, best), strict=True)
    )
    return bool(2 * t.sf(abs(difference) / sum(parts) ** 0.5, freedom) >= SIGNIFICANT)


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
