"""Bandits without contexts: regret over time, beside the bound of Lai and Robbins."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console

from rbmle.classical import (
    KLUCB,
    RBMLE,
    UCB1,
    ArmPolicy,
    BernoulliArms,
    BetaTS,
    GaussianArms,
    GaussianTS,
    Instance,
    lai_robbins,
    simulate,
)
from rbmle.core.files import write_text
from rbmle.experiments.figures import Line, Panel, line_panels
from rbmle.experiments.styles import (
    BLUE,
    DASH_DOT,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    PURPLE,
    SHORT,
    SPARSE,
    VERMILION,
    Style,
)
from rbmle.experiments.tables import Entry, ReportTable, markdown
from rbmle.likelihoods import Gaussian
from rbmle.studies.base import JSONRecord, load_or_measure

NAME, TITLE = "classical", "Regret of bandits without contexts, and the bound of Lai and Robbins"
RUNS, QUICK_RUNS = 50, 20
ROUNDS, QUICK_ROUNDS = 100_000, 5_000
POINTS = 60  # of a line
NOTE = "Means of the runs, with bands of two standard errors"
SHOWN = (2.0, 4_000.0)  # regret
BOUND = "Lai and Robbins' bound"
BOUND_STYLE = Style(colour=GREY, dashes=SPARSE, width=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """Arms, and who plays them, by title."""

    arms: Instance
    policies: dict[str, ArmPolicy]


# ν of RBMLE was chosen on runs that are not reported, see docs/explanation/classical.md.
GAMES = {
    "Bernoulli, ten arms": Game(
        arms=BernoulliArms(means=(0.1, *(3 * [0.05]), *(3 * [0.02]), *(3 * [0.01]))),
        policies={
            "RBMLE": RBMLE(bias=1.0),
            "RBMLE, ν/3": RBMLE(bias=1 / 3),
            "KL-UCB": KLUCB(),
            "Thompson sampling": BetaTS(),
            "UCB1": UCB1(),
        },
    ),
    "Gaussian, ten arms": Game(
        arms=GaussianArms(means=tuple(np.linspace(0.1, 1.0, 10).round(1).tolist())),
        policies={
            "RBMLE": RBMLE(likelihood=Gaussian(), bias=3.0),
            "RBMLE, ν/3": RBMLE(likelihood=Gaussian(), bias=1.0),
            "KL-UCB": KLUCB(likelihood=Gaussian()),
            "Thompson sampling": GaussianTS(),
        },
    ),
}
STYLES = {
    "RBMLE": Style(colour=VERMILION, width=2.6),
    "RBMLE, ν/3": Style(colour=ORANGE, dashes=LONG, width=1.8),
    "KL-UCB": Style(colour=BLUE, width=1.8),
    "Thompson sampling": Style(colour=GREEN, dashes=DASH_DOT, width=1.8),
    "UCB1": Style(colour=PURPLE, dashes=SHORT, width=1.8),
}

Records = dict[tuple[str, str], JSONRecord]  # by the name of the game and the title of the policy


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Play what the folder lacks, write the table in Markdown and the figure, and return the files."""
    runs, rounds = (QUICK_RUNS, QUICK_ROUNDS) if quick else (RUNS, ROUNDS)
    records: Records = {}
    for name, game in GAMES.items():
        for title, policy in game.policies.items():
            settings: JSONRecord = {"arms": repr(game.arms), "policy": repr(policy)}
            settings |= {"runs": runs, "rounds": rounds}
            measure = partial(play, game.arms, policy, runs, rounds)
            records[name, title] = load_or_measure(out / NAME / "runs", settings, measure)
            spent = records[name, title]["cpu_seconds"]
            console.print(f"{name}, {title}: {spent:.1f} CPU s", highlight=False)
    return [
        write_text(out / NAME / f"{NAME}.md", markdown(regret_table(records, runs, rounds))),
        *line_panels([panel(records, name) for name in GAMES], out / NAME / NAME, note=NOTE),
    ]


def play(arms: Instance, policy: ArmPolicy, runs: int, rounds: int) -> JSONRecord:
    times = np.unique(np.geomspace(10, rounds, POINTS).round().astype(np.int64)).tolist()
    simulate(arms, policy, [20], runs=1)  # kernels are compiled before the clock starts
    begun = time.process_time()
    regrets = simulate(arms, policy, times, runs=runs)
    spent = time.process_time() - begun
    return {"times": times, "regrets": regrets.tolist(), "cpu_seconds": spent}


def regret_table(records: Records, runs: int, rounds: int) -> ReportTable:
    """Return the mean regret at the end, its standard error, and its largest of all runs."""

    def entry(title: str, name: str) -> Entry:
        if (name, title) not in records:
            return Entry(text="")
        ends = _regrets(records[name, title])[:, -1]
        error = ends.std(ddof=1) / runs**0.5
        return Entry(text=f"{ends.mean():,.0f} ± {error:,.0f} (at most {ends.max():,.0f})")

    bounds = tuple(
        Entry(text=f"{lai_robbins(game.arms) * np.log(rounds):,.0f}") for game in GAMES.values()
    )
    rows = tuple((title, tuple(entry(title, name) for name in GAMES)) for title in STYLES)
    return ReportTable(
        caption=(
            f"Mean regret after {rounds:,} rounds, ± its standard error over {runs} runs, and the largest of "
            "them. The bound, c log t, holds in the limit."
        ),
        corner="Regret",
        columns=tuple(GAMES),
        rows=(*rows, (BOUND, bounds)),
    )


def panel(records: Records, name: str) -> Panel:
    """Return regret over time of one game, and the bound."""
    arms, policies = GAMES[name].arms, GAMES[name].policies
    times = np.array(records[name, "RBMLE"]["times"], np.float64)
    bound = Line(label=BOUND, style=BOUND_STYLE, x=times, y=lai_robbins(arms) * np.log(times))
    lines = tuple(_line(records[name, title], title) for title in policies)
    return Panel(
        title=name, x_label="t", y_label="regret", lines=(*lines, bound), is_log_y=True, y=SHOWN
    )


def _line(record: JSONRecord, title: str) -> Line:
    """Return the mean of the runs, with a band of two standard errors."""
    regrets = _regrets(record)
    x, y = np.array(record["times"], np.float64), regrets.mean(axis=0)
    error = regrets.std(axis=0, ddof=1) / len(regrets) ** 0.5
    return Line(label=title, style=STYLES[title], x=x, y=y, low=y - 2 * error, high=y + 2 * error)


def _regrets(record: JSONRecord) -> Float[np.ndarray, "runs times"]:
    return np.array(record["regrets"])
