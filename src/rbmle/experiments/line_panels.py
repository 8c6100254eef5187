"""Lines over time, or over sizes, in panels, each with a band: figures of what is no trial of a bandit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.experiments.styles import Style

PANEL_INCHES = (4.3, 3.4)
LEGEND_INCHES = 0.25  # above a legend, and each of its rows
LABELS_PER_PANEL = 2  # side by side in a legend
PER_ROW = 3
DOTS_PER_INCH = 150
BAND = 0.15  # opacity


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
    """Lines in one frame; its axes are logarithmic as it says, and `y` is the range of the vertical one."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_log_x: bool = True
    is_log_y: bool = False
    y: tuple[float, float] | None = None  # None: what the lines need


def line_panels(panels: Sequence[Panel], path: Path) -> tuple[Path, Path]:
    """Write panels side by side, three in a row, and one legend; return the PNG and the PDF.

    `path` has no ending. Lines with one label are one line of the legend.
    """
    from matplotlib.figure import Figure  # it takes half a second to import

    columns = min(PER_ROW, len(panels))
    rows = -(-len(panels) // columns)
    labels = len({line.label for panel in panels for line in panel.lines})
    legend_rows = -(-labels // (LABELS_PER_PANEL * columns))
    height = PANEL_INCHES[1] * rows + LEGEND_INCHES * (1 + legend_rows)
    size = (PANEL_INCHES[0] * columns, height)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    handles: dict[str, Any] = {}
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        handles = _draw(axes, panel, f"({chr(ord('a') + place)}) {panel.title}") | handles
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=-(-labels // legend_rows),
        fontsize=9,
        handlelength=3.0,
    )
    png, pdf = path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=DOTS_PER_INCH)
    figure.savefig(pdf, metadata={"CreationDate": None})  # equal lines, equal files
    return png, pdf


def _draw(axes: Any, panel: Panel, title: str) -> dict[str, Any]:
    """Draw a panel, and return its lines by their labels."""
    handles = {}
    for line in panel.lines:
        look = line.style
        dashes = (0, tuple(length / look.width for length in look.dashes))
        (handles[line.label],) = axes.plot(
            line.x,
            line.y,
            label=line.label,
            color=look.colour,
            linewidth=look.width,
            linestyle=dashes if look.dashes else "solid",
        )
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=look.colour, alpha=BAND, lw=0)
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
