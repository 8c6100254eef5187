"""Figures: curves of regret, panels of lines, and dots with error bars."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float

from rbmle.experiments.measures import Measures, is_level
from rbmle.experiments.styles import Style, family_of, styles
from rbmle.experiments.summary import Curve, Problem, Summary, policy_title

PER_ROW = 3  # panels, as in the paper's figures 1, 2 and 4
PANEL_INCHES = (4.0, 3.3)
SINGLE_INCHES = (7.6, 4.2)  # with names at the ends of the lines
DOTS_PER_INCH = 150
BANDS = 3  # of the best policies; more of them cover each other
BAND = 0.12  # opacity
LABEL_POINTS = 8.5  # the size of a name at the end of a line
# Between two names, in heights of the frame.
LABEL_GAP = 1.4 * LABEL_POINTS / 72 / (SINGLE_INCHES[1] - 0.9)
COLUMNS = 7  # of a legend, at most
POWERS = {"0": "", "0.25": "t^{1/4}", "0.5": r"\sqrt{t}", "1": "t"}  # t^n as TeX
DOTS_INCHES = (7.6, 0.9, 0.2)  # width, height without rows, and the height of a row
DOT_PANEL_INCHES = 3.3  # the width of each, if there are several
BANDS_NOTE = f"Bands, of the {BANDS} best policies of a panel: one standard deviation over seeds"


def regret_curves(
    curves: dict[str, Float[np.ndarray, "seeds rounds"]], title: str, file: Path | BinaryIO
) -> None:
    """Write cumulative regret over rounds, the mean of the seeds, with each policy's name at its end."""
    from matplotlib.figure import Figure  # it takes half a second to import

    figure = Figure(figsize=SINGLE_INCHES, layout="constrained")
    axes = figure.subplots()
    _labelled_panel(axes, {name: _curve(runs) for name, runs in curves.items()}, title)
    if any(len(runs) > 1 for runs in curves.values()):
        _add_note(figure, BANDS_NOTE)
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
            handles = _draw_lines(axes, curves, policies) | handles
            _style_frame(axes, title)
    for axes in grid[len(problems) :]:
        axes.set_axis_off()
    if not is_single:
        _add_legend(figure, [handles[policy] for policy in policies if policy in handles])
    if any(cell.std is not None for cell in summary.cells):
        _add_note(figure, BANDS_NOTE)
    return _save(figure, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotRow:
    """A number as a dot with two standard errors; the numbers of which it is the mean are small dots."""

    title: str
    colour: str
    value: float
    error: float = 0.0  # the standard error
    parts: Sequence[float] | Float[np.ndarray, " parts"] = ()
    is_filled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPanel:
    """Rows of dots, the best at the top; a value above `highest` is an arrow at the edge."""

    rows: Sequence[DotRow]
    label: str  # of the axis
    title: str = ""
    lowest: float | None = None  # None: as the rows need
    highest: float | None = None
    digits: int = 2  # of the numbers at the right
    key: Mapping[str, str] = field(default_factory=dict)  # colours by their meaning


def dot_figure(panels: Sequence[DotPanel], path: Path, note: str = "") -> tuple[Path, Path]:
    """Write panels with the same rows, three side by side; return the PNG and the PDF.

    `path` has no ending. Titles of rows stand at the first panel of each row of panels.
    """
    return _save(_draw_dots(panels, note), path)


def dot_svg(panels: Sequence[DotPanel]) -> str:
    """Return panels as an SVG element that refers to no other file."""
    return _svg(_draw_dots(panels))


def final_panels(summary: Summary) -> list[DotPanel]:
    """Return mean final regrets, a panel for each problem; policies tied with the best are filled."""
    looks = styles(summary.policies)
    panels = []
    for problem in summary.problems:
        cells = {policy: summary.cell(problem, policy) for policy in summary.policies}
        played = {policy: cell for policy, cell in cells.items() if cell is not None}
        best = min(played.values(), key=lambda cell: cell.mean)
        rows = [
            DotRow(
                title=policy_title(policy),
                colour=looks[policy].colour,
                value=cell.mean,
                error=(cell.std or 0.0) / len(cell.seeds) ** 0.5,
                is_filled=is_level(cell, best, problem.horizon),
            )
            for policy, cell in played.items()
        ]
        title = _plain(summary.title(problem))
        panels.append(DotPanel(rows=rows, label="mean final regret", title=title, digits=0))
    return panels


def relative_panel(ratios: Mapping[str, float], problems: int) -> DotPanel:
    """Return regret relative to the best, a row for each title, the smallest at the top."""
    ordered = sorted(ratios, key=lambda title: ratios[title])
    others = [ratios[title] for title in ordered if title != policy_title(REFERENCE)]
    families = {title: family_of(title) for title in ordered}
    return DotPanel(
        rows=[
            DotRow(title=title, colour=families[title][1], value=ratios[title]) for title in ordered
        ],
        label=f"regret relative to the best policy of each problem, geometric mean of {problems} problems",
        lowest=1.0,
        highest=1.03 * max(others, default=1.0),
        digits=3,
        key=dict(families.values()),
    )


def measured_panel(measures: Measures) -> DotPanel:
    """Return the panel of relative regrets for some measures."""
    titles = map(policy_title, measures.policies)
    ratios = dict(zip(titles, measures.relative.tolist(), strict=True))
    return relative_panel(ratios, len(measures.problems))


def _save(figure: Any, path: Path) -> tuple[Path, Path]:
    stem = path.name.removesuffix(".png").removesuffix(".pdf")
    png, pdf = path.with_name(f"{stem}.png"), path.with_name(f"{stem}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})  # equal runs, equal files
    return png, pdf


def _svg(figure: Any) -> str:
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "rbmle"}):  # equal figures, equal text
        figure.savefig(text, format="svg", metadata={"Date": None})
    shown = re.sub(r"<metadata>.*?</metadata>", "", text.getvalue(), flags=re.DOTALL)
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", shown[shown.index("<svg") :])


def _draw_dots(panels: Sequence[DotPanel], note: str = "") -> Any:
    from matplotlib.figure import Figure

    columns = min(PER_ROW, len(panels))
    down = -(-len(panels) // columns)
    width, rest, row_height = DOTS_INCHES
    height = (rest + row_height * max(len(panel.rows) for panel in panels)) * down
    width = width if columns == 1 else DOT_PANEL_INCHES * columns + 0.8
    figure = Figure(figsize=(width, height + 0.3 * bool(note)), layout="constrained")
    grid = figure.subplots(down, columns, squeeze=False).flatten()
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        _draw_dot_panel(axes, panel, has_names=place % columns == 0)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    if note:
        figure.supxlabel(note, fontsize=9, color="#444444")
    return figure


def _draw_dot_panel(axes: Any, panel: DotPanel, has_names: bool) -> None:
    """Draw the rows of a panel, and the numbers at its right."""
    heights = range(len(panel.rows), 0, -1)
    inside = axes.get_yaxis_transform()
    for at, row in zip(heights, panel.rows, strict=True):
        is_beyond = panel.highest is not None and row.value > panel.highest
        fill = {"color": row.colour, "mfc": row.colour if row.is_filled else "white"}
        axes.plot(row.parts, np.full(len(row.parts), at), "o", ms=3, alpha=0.35, mew=0, **fill)
        if is_beyond:
            axes.plot(0.985, at, ">", ms=7, transform=inside, clip_on=False, **fill)
        else:
            ends = [row.value - 2 * row.error, row.value + 2 * row.error]
            axes.plot(ends, [at, at], lw=2.0, color=row.colour, solid_capstyle="butt")
            axes.plot(row.value, at, "o", ms=7.5, mew=1.6, clip_on=False, zorder=3, **fill)
        text = f"{row.value:,.{panel.digits}f}"
        axes.text(1.02, at, text, va="center", fontsize=9, transform=inside)
    axes.set_yticks(list(heights), [_label(row.title) for row in panel.rows], fontsize=9)
    axes.set_ylim(0.3, len(panel.rows) + 0.7)
    if not has_names:
        axes.set_yticklabels([])
    for name, tick in zip(panel.rows, axes.get_yticklabels(), strict=False):
        tick.set_color(name.colour if panel.key else "black")
    axes.set_title(panel.title, fontsize=11)
    axes.set_xlabel(panel.label, fontsize=9)
    axes.set_xlim(panel.lowest, panel.highest)
    axes.locator_params(axis="x", nbins=5)
    _group_thousands(axes.xaxis)
    axes.grid(axis="x", alpha=0.3)
    axes.grid(axis="y", alpha=0.15)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for place, (text, colour) in enumerate(panel.key.items()):
        axes.annotate(
            text,
            (0.97, 1.0),
            (0, -8 - 16 * place),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            weight="bold",
            ha="right",
            va="top",
        )


def _curve(runs: Float[np.ndarray, "seeds rounds"]) -> Curve:
    std = runs.std(axis=0, ddof=1) if len(runs) > 1 else None
    return Curve(rounds=np.arange(1, runs.shape[1] + 1), mean=runs.mean(axis=0), std=std)


def _draw_lines(axes: Any, curves: Mapping[str, Curve], policies: Sequence[str]) -> dict[str, Any]:
    """Draw the curves, the best of them with a band of one deviation, and return the lines."""
    looks = styles(policies)
    best = sorted(curves, key=lambda policy: float(curves[policy].mean[-1]))[:BANDS]
    lines = {}
    for policy, curve in curves.items():
        look = looks[policy]
        label = _label(policy)
        (lines[policy],) = axes.plot(curve.rounds, curve.mean, label=label, **_stroke(look))
        if curve.std is not None and policy in best:
            low, high = curve.mean - curve.std, curve.mean + curve.std
            axes.fill_between(curve.rounds, low, high, color=look.colour, alpha=BAND, linewidth=0)
    return lines


def _labelled_panel(axes: Any, curves: Mapping[str, Curve], title: str) -> None:
    """Draw curves with a name and the final regret at the end of each."""
    _draw_lines(axes, curves, list(curves))
    _style_frame(axes, title)
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
        text = f"{_label(policy)}  {end:,.1f}{' ↑' if end > top else ''}"
        axes.text(1.115, place, text, va="center", fontsize=LABEL_POINTS, **where)


def _add_legend(figure: Any, lines: Sequence[Any]) -> None:
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


def _group_thousands(axis: Any) -> None:
    """Write the numbers of an axis as the text does: 15,000, and 0.5 where steps are smaller than 1."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _add_note(figure: Any, note: str) -> None:
    """Put a line of text above all panels."""
    figure.suptitle(note, x=0.01, ha="left", fontsize=9, color="#444444")


def _stroke(style: Style) -> dict[str, Any]:
    """Return a style as arguments of matplotlib."""
    dashes = (0, tuple(length / style.width for length in style.dashes))  # in widths of the line
    return {
        "color": style.colour,
        "linestyle": dashes if style.dashes else "solid",
        "linewidth": style.width,
    }


def _style_frame(axes: Any, title: str) -> None:
    axes.set(title=title, xlabel="round", ylabel="cumulative regret")
    axes.margins(x=0)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", nbins=5)
    _group_thousands(axes.xaxis)
    _group_thousands(axes.yaxis)
    axes.grid(alpha=0.3)


def _label(policy: str) -> str:
    """Return the title of a policy; the growth of α(t) is typeset."""
    growth = re.fullmatch(r"α\(t\) = ν t\^(?P<n>[\d.]+)", policy)
    if growth is None:
        return _plain(policy_title(policy))
    power = POWERS.get(growth["n"], f"t^{{{growth['n']}}}")
    return rf"$\alpha(t) = \nu\,{power}$"


def _plain(text: str) -> str:
    """Escape text, so that matplotlib sees no formula, and a legend no hidden entry."""
    return text.replace("$", r"\$").lstrip("_") or "?"


LINE_PANEL_INCHES = (4.3, 3.4)
LEGEND_INCHES = 0.25  # above a legend, and each of its rows
LABELS_PER_PANEL = 2  # side by side in a legend
LINE_BAND = 0.15  # opacity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A line, and the edges of its band; without edges there is no band."""

    label: str
    style: Style
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"] | None = None
    high: Float[np.ndarray, " points"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines in one frame; `y` is the range of the vertical axis."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_log_x: bool = True
    is_log_y: bool = False
    y: tuple[float, float] | None = None  # None: as the lines need


def line_panels(
    panels: Sequence[Panel], path: Path, *, per_row: int = PER_ROW, note: str = ""
) -> tuple[Path, Path]:
    """Write panels side by side and one legend; return the PNG and the PDF.

    `path` has no suffix. Lines with the same label share an entry of the legend. The note is above all panels.
    """
    from matplotlib.figure import Figure  # it takes half a second to import

    columns = min(per_row, len(panels))
    rows = -(-len(panels) // columns)
    labels = len({line.label for panel in panels for line in panel.lines})
    legend_rows = -(-labels // (LABELS_PER_PANEL * columns))
    width, height = LINE_PANEL_INCHES
    shrink = min(PER_ROW / columns, 1.0)  # more panels in a row are narrower
    height = shrink * height * rows + LEGEND_INCHES * (1 + legend_rows + bool(note))
    figure = Figure(figsize=(shrink * width * columns, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    handles: dict[str, Any] = {}
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        handles = _draw_panel(axes, panel, f"({chr(ord('a') + place)}) {panel.title}") | handles
        if place % columns and panel.y_label == panels[place - 1].y_label:
            axes.set_ylabel("")  # the panel on the left says it
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=-(-labels // legend_rows),
        fontsize=9,
        handlelength=3.0,
        frameon=False,
    )
    if note:
        _add_note(figure, note)
    return _save(figure, path)


def _draw_panel(axes: Any, panel: Panel, title: str) -> dict[str, Any]:
    """Draw a panel, and return its lines by their labels."""
    handles = {}
    for line in panel.lines:
        stroke = _stroke(line.style)
        (handles[line.label],) = axes.plot(line.x, line.y, label=line.label, **stroke)
        if line.low is not None and line.high is not None:
            band = {"color": line.style.colour, "alpha": LINE_BAND, "lw": 0}
            axes.fill_between(line.x, line.low, line.high, **band)
    axes.set_title(title, fontsize=11)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_xscale("log" if panel.is_log_x else "linear")
    axes.set_yscale("log" if panel.is_log_y else "linear")
    axes.margins(x=0)
    if panel.y is not None:
        axes.set_ylim(*panel.y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return handles


REFERENCE = (
    "uniform"  # plays at random; its regret is so large that it would flatten the other lines
)
CLIPPED = (
    1.5  # the reference leaves the frame above this many times the regret of the worst contender
)
ROOM = 1.1  # above the worst contender


def clipped_top(ends: Mapping[str, float]) -> float | None:
    """Return the top of a frame that the reference leaves; None if it fits."""
    others = [end for policy, end in ends.items() if policy != REFERENCE]
    if not others or ends.get(REFERENCE, 0.0) <= CLIPPED * max(others):
        return None
    return ROOM * max(others) or None


def spread(places: Sequence[float], gap: float, highest: float) -> list[float]:
    """Move places so that neighbours are at least a gap apart, and none is above `highest`.

    The order is kept, and the sum of squared moves is the smallest possible below the top.

    >>> spread([0.0, 5.0, 5.5], gap=1.0, highest=10.0)
    [0.0, 4.75, 5.75]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    blocks: list[list[float]] = []  # mean of place − rank · gap, and size: equal places in a block
    for rank, i in enumerate(order):
        blocks.append([places[i] - rank * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            before, others = blocks[-1]
            blocks[-1] = [(before * others + mean * size) / (others + size), others + size]
    means = [mean for mean, size in blocks for _ in range(int(size))]
    moved = [0.0] * len(places)
    lowest = highest - (len(places) - 1) * gap  # of the first, if the last is at the top
    for rank, i in enumerate(order):
        moved[i] = max(min(means[rank], lowest), 0.0) + rank * gap
    return moved
