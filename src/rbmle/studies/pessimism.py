"""The sign of the bias: what is learned from the log of a narrow policy, with α below, at and above 0."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from rich.console import Console

from rbmle.core.bandit import Bandit
from rbmle.core.files import write_text
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator
from rbmle.experiments.figures import Line, Panel, line_panels
from rbmle.experiments.styles import (
    BLUE,
    DASH_DOT,
    GREEN,
    GREY,
    LONG,
    SHORT,
    SOLID,
    VERMILION,
    Style,
)
from rbmle.experiments.tables import Entry, ReportTable, markdown
from rbmle.models import Network, Regression, Ridge
from rbmle.policies import LinRBMLE, NeuralRBMLEPC
from rbmle.studies.base import JSONRecord, load_or_measure

NAME, TITLE = "pessimism", "Learning from the log of a narrow policy, by the sign of the bias"
PROBLEMS, QUICK_PROBLEMS = 40, 5
SIZES, QUICK_SIZES = (100, 300, 1_000, 3_000), (100, 1_000)
ARMS, FEATURES = 10, 5
NOISE = 1.0  # deviation of rewards
OFFSET = 1.0  # deviation of what the logging policy thinks too much of an arm
EXPLORING = 0.05  # share of its rounds in which it plays any arm
JUDGED = 1_000  # fresh contexts, on which what was learned is judged

SHOWN = (0.05, 3.0)  # regrets in the figure

Means = Float[np.ndarray, "rounds arms"]
Contexts = Float[np.ndarray, "rounds features"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Problems of one kind: the mean rewards, by θᵀx of each arm, and who learns."""

    means: Callable[[Means], Means]
    policy: Any  # with a bias above 0, whose sign is changed


# The learner for which ν was chosen; it never forgets.
LEARNER = Regression(network=Network(width=32, start="standard"), ridge=0.001, alarm=0.0)
# Each ν was chosen on problems that are not reported: docs/explanation/lineage.md.
CONTESTS = {
    "LinRBMLE, linear rewards": Contest(
        means=lambda z: z,
        policy=LinRBMLE(bias=0.3, model=Ridge(alarm=0.0)),
    ),
    "NeuralRBMLE-PC, folded rewards": Contest(
        means=lambda z: 2 * np.abs(z) - 1.6,  # of about the mean 0
        policy=NeuralRBMLEPC(bias=1e-3, model=LEARNER),
    ),
}
SIGNS = {"pessimistic, −ν": -1.0, "greedy, ν = 0": 0.0, "optimistic, ν": 1.0}
LOGGED = "the logging policy"
STYLES = {
    "pessimistic, −ν": Style(colour=VERMILION, dashes=SOLID, width=2.6),
    "greedy, ν = 0": Style(colour=BLUE, dashes=LONG, width=1.8),
    "optimistic, ν": Style(colour=GREY, dashes=DASH_DOT, width=1.8),
    LOGGED: Style(colour=GREEN, dashes=SHORT, width=1.5),
}

Records = dict[tuple[str, str], JSONRecord]  # by the name of the contest and who played


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Learn what the folder lacks, write the table in Markdown and the figure, and return the files."""
    problems, sizes = (QUICK_PROBLEMS, QUICK_SIZES) if quick else (PROBLEMS, SIZES)
    records: Records = {}
    for name, contest in CONTESTS.items():
        for title in STYLES:
            settings = {"contest": name, "policy": repr(contest.policy), "title": title}
            counts = {"problems": problems, "sizes": list(sizes)}
            measure = partial(play, contest, title, range(problems), sizes)
            records[name, title] = load_or_measure(out / NAME / "runs", settings | counts, measure)
    return [
        write_text(out / NAME / f"{NAME}.md", markdown(regret_table(records, sizes, problems))),
        *line_panels([panel(records, name, sizes) for name in CONTESTS], out / NAME / NAME),
    ]


def play(contest: Contest, title: str, seeds: range, sizes: tuple[int, ...]) -> JSONRecord:
    """Return the mean regret of a round on fresh contexts, of each problem and each size of the log."""
    return {"regrets": [[regret(contest, title, seed, n) for n in sizes] for seed in seeds]}


def regret(contest: Contest, title: str, seed: int, n: int) -> float:
    """Return what a round costs with what was learned from n logged rounds; or what the logging policy paid."""
    rng = generator(seed, Purpose.ENVIRONMENT, 0)
    theta, offsets = rng.normal(size=(FEATURES, ARMS)), OFFSET * rng.normal(size=ARMS)
    X, fresh = rng.normal(size=(n, FEATURES)), rng.normal(size=(JUDGED, FEATURES))
    means = contest.means(X @ theta / FEATURES**0.5)
    arms = (means + offsets).argmax(axis=1)
    arms = np.where(rng.random(n) < EXPLORING, rng.integers(ARMS, size=n), arms)
    if title == LOGGED:
        return _shortfall(means, arms)
    rewards = means[np.arange(n), arms] + NOISE * rng.normal(size=n)
    policy = replace(contest.policy, bias=SIGNS[title] * contest.policy.bias)
    return _shortfall(
        contest.means(fresh @ theta / FEATURES**0.5),
        choose_after_learning(policy, X, arms, rewards, fresh),
    )


def choose_after_learning(
    policy: Policy[Any],
    X: Contexts,
    arms: Int[np.ndarray, " rounds"],
    rewards: Float[np.ndarray, " rounds"],
    fresh: Contexts,
) -> Int[np.ndarray, " judged"]:
    """Return the arms that a policy plays in fresh contexts after learning from a log."""
    bandit = Bandit(policy, arms=ARMS, features=FEATURES)
    bandit.partial_fit(X, arms.tolist(), rewards)
    return np.array([decision.arm for decision in bandit.decide_many(fresh)])


def regret_table(records: Records, sizes: tuple[int, ...], problems: int) -> ReportTable:
    """Return the mean regret of a round, and its standard error over problems."""

    def entries(record: JSONRecord) -> tuple[Entry, ...]:
        regrets = np.array(record["regrets"])
        errors = regrets.std(axis=0, ddof=1) / problems**0.5
        pairs = zip(regrets.mean(axis=0), errors, strict=True)
        return tuple(Entry(text=f"{mean:.3f} ± {error:.3f}") for mean, error in pairs)

    return ReportTable(
        caption=f"Mean regret of a round on fresh contexts, ± its standard error over {problems} problems.",
        corner="Logged rounds",
        columns=tuple(f"{n:,}" for n in sizes),
        rows=tuple(
            (f"{name}: {title}", entries(record)) for (name, title), record in records.items()
        ),
    )


def panel(records: Records, name: str, sizes: tuple[int, ...]) -> Panel:
    """Return the regret over the size of the log, with a band of two standard errors."""

    def line(title: str) -> Line:
        regrets = np.array(records[name, title]["regrets"])
        mean, error = regrets.mean(axis=0), regrets.std(axis=0, ddof=1) / len(regrets) ** 0.5
        x = np.array(sizes, np.float64)
        low, high = mean - 2 * error, mean + 2 * error
        return Line(label=title, style=STYLES[title], x=x, y=mean, low=low, high=high)

    return Panel(
        title=name,
        x_label="logged rounds",
        y_label="regret of a round",
        lines=tuple(map(line, STYLES)),
        is_log_y=True,
        y=SHOWN,
    )


def _shortfall(means: Means, arms: Int[np.ndarray, " rounds"]) -> float:
    return float((means.max(axis=1) - means[np.arange(len(arms)), arms]).mean())
