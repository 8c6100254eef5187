"""Figures of regret; the only file that knows matplotlib."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.experiments.labels import clipped_top, spread
from rbmle.experiments.styles import Style, styles
from rbmle.experiments.summary import Curve, Problem, Summary, policy_title

PER_ROW = 3  # panels, as in the paper's figures 1, 2 and 4
PANEL_INCHES = (4.0, 3.3)
SINGLE_INCHES = (7.6, 4.2)  # with names at the ends of the lines
DOTS_PER_INCH = 150
BANDS = 3  # of the best policies; more of them cover each other
BAND = 0.12  # opacity
LABEL_POINTS = 8.5  # the size of a name at the end of a line
LABEL_GAP = (
    1.4 * LABEL_POINTS / 72 / (SINGLE_INCHES[1] - 0.9)
)  # of two names, in heights of the frame
COLUMNS = 7  # of a legend, at most


def regret_curves(
    curves: dict[str, Float[np.ndarray, "seeds rounds"]], title: str, path: Path
) -> None:
    """Write cumulative regret over rounds, the mean of the seeds, with each policy's name at its end."""
    from matplotlib.figure import Figure  # it takes half a second to import

    figure = Figure(figsize=SINGLE_INCHES, layout="constrained")
    axes = figure.subplots()
    _labelled_panel(axes, {name: _curve(runs) for name, runs in curves.items()}, title)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def panel_figure(
    summary: Summary,
    path: Path,
    problems: Sequence[Problem] | None = None,
    policies: Sequence[str] | None = None,
) -> tuple[Path, Path]:
    """Write a panel for each problem, three in a row, and one legend; return the PNG and the PDF.

    `path` has no ending. Without `problems` or `policies` all are drawn. A single panel has the
    names at the ends of its lines.
    """
    from matplotlib.figure import Figure

    problems = summary.problems if problems is None else problems
    policies = summary.policies if policies is None else policies
    if not problems:
        raise ValueError("there is nothing to draw: the summary has no runs; play a study first")
    columns = 2 if len(problems) == 4 else min(PER_ROW, len(problems))
    rows = -(-len(problems) // columns)
    is_single = len(problems) == 1
    size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 0.5)
    figure = Figure(figsize=SINGLE_INCHES if is_single else size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    handles: dict[str, Any] = {}
    for place, (axes, problem) in enumerate(zip(grid, problems, strict=False)):
        cells = {policy: summary.cell(problem, policy) for policy in policies}
        curves = {policy: cell.curve for policy, cell in cells.items() if cell is not None}
        title = f"({chr(ord('a') + place % 26)}) {_plain(summary.title(problem))}"
        if is_single:
            _labelled_panel(axes, curves, _plain(summary.title(problem)))
        else:
            handles = _lines(axes, curves, policies) | handles
            _frame(axes, title)
    for axes in grid[len(problems) :]:
        axes.set_axis_off()
    if not is_single:
        _legend(figure, [handles[policy] for policy in policies if policy in handles])
    stem = path.name.removesuffix(".png").removesuffix(".pdf")
    png, pdf = path.with_name(f"{stem}.png"), path.with_name(f"{stem}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})  # equal runs, equal files
    return png, pdf


def _curve(runs: Float[np.ndarray, "seeds rounds"]) -> Curve:
    """Return mean and deviation of runs."""
    std = runs.std(axis=0, ddof=1) if len(runs) > 1 else None
    return Curve(rounds=np.arange(1, runs.shape[1] + 1), mean=runs.mean(axis=0), std=std)


def _lines(axes: Any, curves: Mapping[str, Curve], policies: Sequence[str]) -> dict[str, Any]:
    """Draw the curves, the best of them with a band of one deviation, and return the lines."""
    looks = styles(policies)
    best = sorted(curves, key=lambda policy: float(curves[policy].mean[-1]))[:BANDS]
    lines = {}
    for policy, curve in curves.items():
        look = looks[policy]
        label = _plain(policy_title(policy))
        (lines[policy],) = axes.plot(curve.rounds, curve.mean, label=label, **_stroke(look))
        if curve.std is not None and policy in best:
            low, high = curve.mean - curve.std, curve.mean + curve.std
            axes.fill_between(curve.rounds, low, high, color=look.colour, alpha=BAND, linewidth=0)
    return lines


def _labelled_panel(axes: Any, curves: Mapping[str, Curve], title: str) -> None:
    """Draw curves with a name and the final regret at the end of each."""
    _lines(axes, curves, list(curves))
    _frame(axes, title)
    ends = {policy: float(curve.mean[-1]) for policy, curve in curves.items()}
    top = clipped_top(ends) or axes.get_ylim()[1]
    axes.set_ylim(0, top)
    axes.spines[["top", "right"]].set_visible(False)
    places = spread([min(end / top, 1.0) for end in ends.values()], LABEL_GAP, 1.0)
    looks = styles(curves)
    for (policy, end), place in zip(ends.items(), places, strict=True):
        sample = ([1.03, 1.1], [place, place])  # in widths and heights of the frame
        where: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot(*sample, **_stroke(looks[policy]), **where)
        if end <= top:
            axes.plot([1.0, 1.03], [end / top, place], color=looks[policy].colour, lw=0.6, **where)
        text = f"{_plain(policy_title(policy))}  {end:,.1f}{' ↑' if end > top else ''}"
        axes.text(1.115, place, text, va="center", fontsize=LABEL_POINTS, **where)


def _legend(figure: Any, lines: Sequence[Any]) -> None:
    """Put a legend below all panels, in as many columns as fit into the figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    for columns in range(min(len(lines), COLUMNS), 0, -1):
        legend = figure.legend(
            handles=lines, loc="outside lower center", ncols=columns, fontsize=9, handlelength=3.0
        )
        if columns == 1 or legend.get_window_extent(renderer).width <= figure.bbox.width:
            return
        legend.remove()


def _stroke(style: Style) -> dict[str, Any]:
    """Return a style as matplotlib has it."""
    dashes = (0, tuple(length / style.width for length in style.dashes))  # in widths of the line
    return {
        "color": style.colour,
        "linestyle": dashes if style.dashes else "solid",
        "linewidth": style.width,
    }


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
