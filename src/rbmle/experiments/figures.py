"""Figures, and how a policy's line looks in all of them; the only file that knows matplotlib."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.experiments.summary import Problem, Summary, policy_title

PER_ROW = 3  # panels, as in the paper's figures 1, 2 and 4
PANEL_INCHES = (4.0, 3.3)
DOTS_PER_INCH = 150
BAND = 0.15  # opacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a line looks; dashes tell lines apart without colour."""

    colour: str
    dashes: tuple[float, ...] = ()  # on, off, … in points; solid if empty
    width: float = 1.5  # points


# Okabe and Ito's colours, which colour-blind readers can tell apart, each as dark or light as
# it takes for a contrast of 3 to white and to near black.
BLUE, SKY, GREEN, ORANGE = "#0072b2", "#3a9bd9", "#009e73", "#c77f00"
VERMILION, PINK, GREY = "#d55e00", "#cc79a7", "#767676"

STYLES = {
    "neural-rbmle-ga": Style(colour=VERMILION, width=2.6),
    "neural-rbmle-pc": Style(colour=ORANGE, dashes=(7, 2), width=2.0),
    "neural-ucb": Style(colour=BLUE),
    "neural-ts": Style(colour=SKY, dashes=(5, 2)),
    "deep-fpl": Style(colour=GREEN, dashes=(7, 2, 1.5, 2)),
    "bootstrapped-nn": Style(colour=PINK, dashes=(1.5, 1.5)),
    "lin-rbmle": Style(colour=GREY, dashes=(4, 2)),
    "lin-ucb": Style(colour=BLUE, dashes=(1.5, 1.5)),
    "lin-ts": Style(colour=SKY, dashes=(7, 2, 1.5, 2)),
    "epsilon-greedy": Style(colour=GREEN, dashes=(1.5, 1.5)),
    "uniform": Style(colour=GREY, dashes=(1.5, 3)),
}
OTHERS = tuple(
    Style(colour=colour, dashes=dashes)
    for dashes in ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2))
    for colour in (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, GREY)
)


def styles(policies: Iterable[str]) -> dict[str, Style]:
    """Return a style for each policy: the same in all figures, and none twice while they last.

    A policy without a style of its own gets one by its name, or the next that is free.
    """
    names = list(policies)
    chosen = {name: STYLES[name] for name in names if name in STYLES}
    for name in sorted(set(names) - set(STYLES)):
        first = zlib.crc32(name.encode()) % len(OTHERS)
        turned = OTHERS[first:] + OTHERS[:first]
        looks = {(style.colour, style.dashes) for style in chosen.values()}
        free = (style for style in turned if (style.colour, style.dashes) not in looks)
        chosen[name] = next(free, turned[0])
    return {name: chosen[name] for name in names}


def regret_curves(
    curves: dict[str, Float[np.ndarray, "seeds rounds"]], title: str, path: Path
) -> None:
    """Write cumulative regret over rounds, the mean of the seeds with a band of one deviation."""
    from matplotlib.figure import Figure  # it takes half a second to import

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, style in styles(curves).items():
        runs = curves[name]
        rounds = np.arange(1, runs.shape[1] + 1)
        std = runs.std(axis=0, ddof=1) if len(runs) > 1 else None
        _line(axes, rounds, runs.mean(axis=0), std, style, name)
    _frame(axes, title)
    axes.legend(loc="upper left", fontsize=8, ncols=2)
    figure.savefig(path, dpi=130)


def panel_figure(
    summary: Summary,
    path: Path,
    problems: Sequence[Problem] | None = None,
    policies: Sequence[str] | None = None,
) -> tuple[Path, Path]:
    """Write a panel for each problem, three in a row, and one legend; return the PNG and the PDF.

    `path` has no ending. Without `problems` or `policies` all are drawn.
    """
    from matplotlib.figure import Figure

    problems = summary.problems if problems is None else problems
    policies = summary.policies if policies is None else policies
    if not problems:
        raise ValueError("there is nothing to draw: the summary has no runs; play a study first")
    columns = min(PER_ROW, len(problems))
    rows = -(-len(problems) // columns)
    size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    handles: dict[str, Any] = {}
    looks = styles(policies)
    for place, (axes, problem) in enumerate(zip(grid, problems, strict=False)):
        for policy in policies:
            cell = summary.cell(problem, policy)
            if cell is not None:
                curve, label = cell.curve, policy_title(policy)
                line = _line(axes, curve.rounds, curve.mean, curve.std, looks[policy], label)
                handles.setdefault(policy, line)
        _frame(axes, f"({chr(ord('a') + place % 26)}) {_plain(summary.title(problem))}")
    for axes in grid[len(problems) :]:
        axes.set_axis_off()
    shown = [handles[policy] for policy in policies if policy in handles]
    figure.legend(handles=shown, loc="outside lower center", ncols=min(len(shown), 7), fontsize=9)
    stem = path.name.removesuffix(".png").removesuffix(".pdf")
    png, pdf = path.with_name(f"{stem}.png"), path.with_name(f"{stem}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})  # equal runs, equal files
    return png, pdf


def _line(
    axes: Any,
    rounds: np.ndarray,
    mean: Float[np.ndarray, " points"],
    std: Float[np.ndarray, " points"] | None,
    style: Style,
    label: str,
) -> Any:
    """Draw a curve with its band, and return the line."""
    dashes = (0, style.dashes) if style.dashes else "solid"
    (line,) = axes.plot(
        rounds,
        mean,
        label=_plain(label),
        color=style.colour,
        linestyle=dashes,
        linewidth=style.width,
    )
    if std is not None:
        low, high = mean - std, mean + std
        axes.fill_between(rounds, low, high, color=style.colour, alpha=BAND, linewidth=0)
    return line


def _frame(axes: Any, title: str) -> None:
    """Give axes their names, limits and grid."""
    axes.set(title=title, xlabel="round", ylabel="cumulative regret")
    axes.margins(x=0)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(alpha=0.3)


def _plain(text: str) -> str:
    """Return text in which matplotlib sees no formula, and a legend no hidden entry."""
    return text.replace("$", r"\$").lstrip("_") or "?"
