"""Figure 4: cumulative regret on Covertype, MagicTelescope and Adult."""

from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.studies.base import Plan, Study


def trials(plan: Plan) -> list[Trial]:
    """Return seven policies on three datasets; Covertype does not ship, and is left out if quick."""
    return plan.compared(("magic", "adult") if plan.quick else ("covertype", "magic", "adult"))


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw three panels."""
    return list(panel_figure(summary, out / "figure-4"))


FIGURE_4 = Study(name="figure-4", title="Cumulative regret", trials=trials, render=render)
