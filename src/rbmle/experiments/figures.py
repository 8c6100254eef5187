"""Figures of regret, of ranks and of shares; only this file and line_panels.py know matplotlib."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float

from rbmle.experiments.labels import clipped_top, spread
from rbmle.experiments.ranks import Ranks
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
RANKS_INCHES = (10.0, 1.4, 0.2)  # width, height without policies, and the height of each
DOTS_INCHES = (7.6, 0.9, 0.27)  # width, height without policies, and the height of each
CLIQUE_STEP, NAME_STEP = 0.45, 0.8  # between two bars, and between two names


def regret_curves(
    curves: dict[str, Float[np.ndarray, "seeds rounds"]], title: str, file: Path | BinaryIO
) -> None:
    """Write cumulative regret over rounds, the mean of the seeds, with each policy's name at its end."""
    from matplotlib.figure import Figure  # it takes half a second to import

    figure = Figure(figsize=SINGLE_INCHES, layout="constrained")
    axes = figure.subplots()
    _labelled_panel(axes, {name: _curve(runs) for name, runs in curves.items()}, title)
    figure.savefig(file, dpi=DOTS_PER_INCH, format="png")


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


def rank_figure(ranks: Ranks, path: Path) -> tuple[Path, Path]:
    """Write the critical-difference diagram of mean ranks; return the PNG and the PDF.

    `path` has no ending. The best policy is at the left; a bar joins policies not told apart.
    """
    figure = _ranks(ranks)
    png, pdf = path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})
    return png, pdf


def rank_svg(ranks: Ranks) -> str:
    """Return the critical-difference diagram as an element of a page."""
    return _svg(_ranks(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """A number of each policy, made of one for each problem; the best policy comes first."""

    names: tuple[str, ...]  # of styles
    titles: tuple[str, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...]  # standard errors of the means
    values: tuple[Float[np.ndarray, " problems"], ...]
    label: str


def dot_figure(dots: Dots, path: Path) -> tuple[Path, Path]:
    """Write a row for each policy, with its mean and its problems as dots; return the PNG and the PDF."""
    figure = _dots(dots)
    png, pdf = path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})
    return png, pdf


def dot_svg(dots: Dots) -> str:
    """Return the same as an element of a page."""
    return _svg(_dots(dots))


def _svg(figure: Any) -> str:
    """Return a figure as an element of a page."""
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "rbmle"}):  # equal figures, equal text
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _dots(dots: Dots) -> Any:
    """Return a row for each policy, the best at the top."""
    from matplotlib.figure import Figure

    width, rest, each = DOTS_INCHES
    figure = Figure(figsize=(width, rest + each * len(dots.names)), layout="constrained")
    axes = figure.subplots()
    looks = styles(dots.names)
    rows = range(len(dots.names), 0, -1)
    for row, name, mean, error, values in zip(
        rows, dots.names, dots.means, dots.errors, dots.values, strict=True
    ):
        colour = looks[name].colour
        axes.plot(values, np.full(len(values), row), "o", ms=3, alpha=0.35, color=colour, mew=0)
        axes.plot([mean - 2 * error, mean + 2 * error], [row, row], lw=2.0, color=colour)
        axes.plot(mean, row, "o", ms=8, color=colour)
        axes.text(
            1.02, row, f"{mean:.2f}", va="center", fontsize=9, transform=axes.get_yaxis_transform()
        )
    axes.set_yticks(list(rows), [_plain(title) for title in dots.titles], fontsize=9)
    axes.set_xlabel(dots.label, fontsize=9)
    axes.set_xlim(min(-0.02, *(float(values.min()) for values in dots.values)) - 0.02, 1.0)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def _ranks(ranks: Ranks) -> Any:
    """Return the diagram: an axis of ranks, bars below it, and a name for each policy below these."""
    from matplotlib.figure import Figure

    k, cliques = len(ranks.policies), ranks.cliques
    order = np.argsort(ranks.means, kind="stable")
    width, rest, each = RANKS_INCHES
    rows = CLIQUE_STEP * len(cliques) + NAME_STEP * -(-k // 2)
    figure = Figure(figsize=(width, rest + each * rows / NAME_STEP), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(1 - 0.4 * k, k + 0.4 * k), ylim=(-rows - 1.2, 2.4))
    ink: dict[str, Any] = {"color": "black", "solid_capstyle": "butt", "clip_on": False}
    axes.plot([1, k], [0, 0], lw=1.2, **ink)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0, 0.25], lw=1.0, **ink)
        axes.text(rank, 0.4, str(rank), ha="center", va="bottom", fontsize=LABEL_POINTS)
    axes.plot([1, 1 + ranks.difference], [1.7, 1.7], lw=2.0, **ink)
    label = f"critical difference {ranks.difference:.2f}, of {ranks.problems} problems"
    axes.text(1, 1.85, label, ha="left", va="bottom", fontsize=LABEL_POINTS)
    for place, clique in enumerate(cliques):
        ends = ranks.means[list(clique)]
        y = -CLIQUE_STEP * (place + 1)
        axes.plot([ends.min() - 0.06, ends.max() + 0.06], [y, y], lw=3.2, **ink)
    top = -CLIQUE_STEP * len(cliques) - NAME_STEP
    looks = styles(ranks.policies)
    for place, at in enumerate(order):
        is_left = place < -(-k // 2)
        y = top - NAME_STEP * (place if is_left else k - 1 - place)
        mean, end = float(ranks.means[at]), 0.7 if is_left else k + 0.3
        colour = looks[ranks.policies[at]].colour
        axes.plot([mean, mean, end], [0, y, y], lw=1.0, color=colour, clip_on=False, zorder=1)
        name = _plain(policy_title(ranks.policies[at]))
        text = f"{name}  {mean:.2f}" if is_left else f"{mean:.2f}  {name}"
        side = "right" if is_left else "left"
        gap = -0.1 if is_left else 0.1
        axes.text(end + gap, y, text, ha=side, va="center", fontsize=LABEL_POINTS)
    return figure


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
