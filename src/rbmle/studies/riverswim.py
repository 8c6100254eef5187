"""RiverSwim and other MDPs with unknown transitions: regret over time, and over the length of the river."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.console import Console

from rbmle.control import (
    KLUCRL,
    MDP,
    PSRL,
    UCRL2,
    Learner,
    TabularCE,
    TabularRBMLE,
    grid_world,
    random_mdp,
    river_swim,
    simulate,
)
from rbmle.core.files import write_text
from rbmle.experiments.code import versions
from rbmle.experiments.figures import Line, Panel, line_panels
from rbmle.experiments.measures import SIGNIFICANT
from rbmle.experiments.styles import (
    BLUE,
    DASH_DOT,
    DOTS,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    SHORT,
    VERMILION,
    Style,
)
from rbmle.experiments.tables import Entry, ReportTable, markdown
from rbmle.studies.base import ENDING, JSONRecord, load_or_measure, write_results

LENGTHS = (6, 9, 12, 16, 20)  # states of rivers
RIVERS = tuple(f"RiverSwim, {n} states" for n in LENGTHS)
POINTS = 60  # of a line
FIRST_SEED = 200  # of the regrets that are reported
TUNING_SEED, TUNING_SEEDS = 100, 5  # of the regrets by which constants are chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A learner with its name and its line, and what its constant is chosen from."""

    title: str
    learner: Any  # with the constant that was chosen
    style: Style
    constant: str = ""  # the setting that is tuned; empty: none
    values: tuple[float, ...] = ()  # that it is tuned on, as many for each learner

    @property
    def value(self) -> float:
        return float(getattr(self.learner, self.constant))

    def with_constant(self, value: float) -> "Entrant":
        return replace(self, learner=replace(self.learner, **{self.constant: value}))


ENTRANTS = (
    Entrant(
        title="RBMLE",
        learner=TabularRBMLE(bias=1.0),
        style=Style(colour=VERMILION, width=2.6),
        constant="bias",
        values=(0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    ),
    Entrant(
        title="PSRL",
        learner=PSRL(prior=0.1),
        style=Style(colour=BLUE, dashes=SHORT, width=1.8),
        constant="prior",
        values=(2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01),
    ),
    Entrant(
        title="UCRL2",
        learner=UCRL2(width=0.02),
        style=Style(colour=GREEN, dashes=DASH_DOT, width=1.8),
        constant="width",
        values=(1.0, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005),
    ),
    Entrant(
        title="KL-UCRL",
        learner=KLUCRL(width=0.01),
        style=Style(colour=ORANGE, dashes=LONG, width=1.8),
        constant="width",
        values=(1.0, 0.1, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001),
    ),
    Entrant(
        title="UCRL2, as published",
        learner=UCRL2(),
        style=Style(colour=GREEN, dashes=DOTS, width=1.2),
    ),
    Entrant(
        title="KL-UCRL, as published",
        learner=KLUCRL(),
        style=Style(colour=ORANGE, dashes=DOTS, width=1.2),
    ),
    Entrant(
        title="certainty equivalence",
        learner=TabularCE(),
        style=Style(colour=GREY, dashes=DOTS, width=1.8),
    ),
)


def tuning_worlds() -> dict[str, MDP]:
    """Return the MDPs on which constants are chosen, none of which is reported."""
    rivers = {f"RiverSwim, {n} states": river_swim(n) for n in (7, 10, 14, 18)}
    return rivers | {
        "random, 8 states, 2 actions": random_mdp(8, 2, seed=1),
        "random, 12 states, 4 actions": random_mdp(12, 4, seed=2),
        "grid, 3 × 3": grid_world(3),
        "grid, 5 × 5": grid_world(5),
    }


def tuning_regrets(entrant: Entrant, value: float, steps: int) -> JSONRecord:
    """Return the regrets of a learner with one value of its constant, by MDP and seed."""
    learner = entrant.with_constant(value).learner
    seeds = range(TUNING_SEED, TUNING_SEED + TUNING_SEEDS)
    return {
        world: [float(simulate(mdp, learner, [steps], seed).regrets[-1]) for seed in seeds]
        for world, mdp in tuning_worlds().items()
    }


def tuning_score(record: JSONRecord) -> float:
    """Return the geometric mean over MDPs of the mean regret, which counts as 1 below that."""
    means = [max(float(np.mean(regrets)), 1.0) for regrets in record.values()]
    return float(np.exp(np.mean(np.log(means))))


def worlds() -> dict[str, MDP]:
    """Return the MDPs by name: rivers of growing length, a random MDP and a grid."""
    rivers = {name: river_swim(n) for name, n in zip(RIVERS, LENGTHS, strict=True)}
    return rivers | {
        "random, 10 states, 3 actions": random_mdp(10, 3, seed=0),
        "grid, 4 × 4": grid_world(4),
    }


def play(mdp: MDP, learner: Learner[Any], seeds: int, steps: int) -> JSONRecord:
    """Play all seeds, and return their regrets over time."""
    times = np.unique(np.geomspace(10, steps, POINTS).round().astype(np.int64))
    simulate(mdp, learner, [10], seed=0)  # kernels are compiled or loaded before the clock starts
    begun = time.process_time()
    played = range(FIRST_SEED, FIRST_SEED + seeds)
    runs = [simulate(mdp, learner, times.tolist(), seed) for seed in played]
    return {
        "times": times.tolist(),
        "regrets": [run.regrets.tolist() for run in runs],
        "cpu_seconds": time.process_time() - begun,
    }


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
        entrant.with_constant(min(score_by_value, key=score_by_value.__getitem__))
        if (score_by_value := scores.get(entrant.title))
        else entrant
        for entrant in ENTRANTS
    ]
    records: Records = {}
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
            records[world, entrant.title] = load_or_measure(runs, settings, measure)
        spent = sum(records[world, entrant.title]["cpu_seconds"] for entrant in entrants)
        console.print(f"{world}: {spent:.1f} CPU s", highlight=False)
    ends = {
        (world, entrant.title): [row[-1] for row in records[world, entrant.title]["regrets"]]
        for world in worlds()
        for entrant in entrants
    }
    named = {
        (world, label(entrant)): ends[world, entrant.title]
        for world in worlds()
        for entrant in entrants
    }
    tables = [
        regret_table(named, [label(entrant) for entrant in entrants], steps),
        time_table(records, seeds, steps),
    ]
    if scores:
        tables.append(tuning_table(scores, steps))
    results = {
        "note": f"Regret after {steps:,} steps by seed, from seed {FIRST_SEED} on.",
        "steps": steps,
        "versions": versions(),
        "learners": {label(entrant): repr(entrant.learner) for entrant in entrants},
        "tuning": {
            title: {f"{v:g}": score for v, score in s.items()} for title, s in scores.items()
        },
    }
    lists = {
        "regrets": [
            [world, label(entrant), [round(end, 3) for end in ends[world, entrant.title]]]
            for world in worlds()
            for entrant in entrants
        ]
    }
    return [
        write_text(out / NAME / f"{NAME}.md", "\n".join(map(markdown, tables))),
        *line_panels(panels(records), out / NAME / NAME),
        write_results(out / NAME / f"{NAME}{ENDING}", results, lists),
    ]


def published_regrets(results: JSONRecord) -> ReportTable:
    """Return the table of regrets of results by seed."""
    ends = {(world, title): regrets for world, title, regrets in results["regrets"]}
    return regret_table(ends, list(results["learners"]), results["steps"])


def published_tuning(results: JSONRecord) -> ReportTable:
    """Return the table of tuning of results by seed."""
    scores = {
        title: {float(value): score for value, score in score_by_value.items()}
        for title, score_by_value in results["tuning"].items()
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
            record = load_or_measure(runs, settings, partial(tuning_regrets, entrant, value, steps))
            scores.setdefault(entrant.title, {})[value] = tuning_score(record)
        if entrant.values:
            score_by_value = scores[entrant.title]
            best = min(score_by_value, key=score_by_value.__getitem__)
            console.print(f"{entrant.title}: {entrant.constant} = {best:g}", highlight=False)
    return scores


def tuning_table(scores: Scores, steps: int) -> ReportTable:
    """Return what each value of each constant had in tuning, as value: score."""
    count = max(len(score_by_value) for score_by_value in scores.values())

    def entries(score_by_value: dict[float, float]) -> tuple[Entry, ...]:
        best = min(score_by_value.values())
        shown = [
            Entry(text=f"{value:g}: {score:,.0f}", is_best=score == best)
            for value, score in score_by_value.items()
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
        rows=tuple((title, entries(score_by_value)) for title, score_by_value in scores.items()),
    )


def regret_table(ends: Ends, titles: Sequence[str], steps: int) -> ReportTable:
    """Return the mean regret of the last step, and its standard error, of regrets by seed.

    In bold is the best of a column, and all from which it is not significantly different.
    """
    seeds = len(next(iter(ends.values())))
    columns = tuple(dict.fromkeys(world for world, _ in ends))

    def entry(title: str, world: str) -> Entry:
        regrets = np.array(ends[world, title])
        best = min((np.array(ends[world, other]) for other in titles), key=np.mean)
        text = f"{regrets.mean():,.0f} ± {regrets.std(ddof=1) / seeds**0.5:,.0f}"
        return Entry(text=text, is_best=is_tied(regrets, best))

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


def label(entrant: Entrant) -> str:
    return (
        f"{entrant.title}, {entrant.constant} {entrant.value:g}"
        if entrant.constant
        else entrant.title
    )


def is_tied(regrets: Float[np.ndarray, " seeds"], best: Float[np.ndarray, " seeds"]) -> bool:
    """Return whether regrets do not have a significantly larger mean than the best, by Welch's test."""
    from scipy.stats import t

    difference = float(regrets.mean() - best.mean())
    parts = [float(sample.var(ddof=1)) / len(sample) for sample in (regrets, best)]
    if difference == 0 or sum(parts) == 0:
        return difference == 0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(sample) - 1) for part, sample in zip(parts, (regrets, best), strict=True)
    )
    return bool(2 * t.sf(abs(difference) / sum(parts) ** 0.5, freedom) >= SIGNIFICANT)


def time_table(records: Records, seeds: int, steps: int) -> ReportTable:

    def entry(title: str, world: str) -> Entry:
        return Entry(text=f"{records[world, title]['cpu_seconds'] / seeds:.3f}")

    return ReportTable(
        caption=f"CPU seconds of a run of {steps:,} steps, mean of {seeds}.",
        corner="CPU seconds",
        columns=tuple(worlds()),
        rows=_rows(entry),
    )


def panels(records: Records) -> list[Panel]:
    """Return regret over time in five of the MDPs, and regret at the end over the length of the river."""
    shown = [*RIVERS[::2], *(world for world in worlds() if world not in RIVERS)]
    drawn = [
        Panel(
            title=world,
            x_label="steps",
            y_label="regret",
            lines=tuple(
                _line(
                    entrant,
                    records[world, entrant.title]["times"],
                    _regrets(records[world, entrant.title]),
                )
                for entrant in ENTRANTS
            ),
            is_log_y=True,
        )
        for world in shown
    ]
    lengthening = tuple(
        _line(
            entrant,
            LENGTHS,
            np.stack([_regrets(records[w, entrant.title])[:, -1] for w in RIVERS], 1),
        )
        for entrant in ENTRANTS
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
    return tuple(
        (entrant.title, tuple(entry(entrant.title, world) for world in worlds()))
        for entrant in ENTRANTS
    )
