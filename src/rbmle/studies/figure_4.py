"""Figure 4: cumulative regret on Covertype, MagicTelescope and Adult."""

from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.studies.base import paper_study
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan


def contenders(plan: Plan) -> list[Contender]:
    """Return seven policies on three datasets; Covertype does not ship, and is left out if quick."""
    return plan.compared(("magic", "adult") if plan.quick else ("covertype", "magic", "adult"))


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw three panels."""
    return list(panel_figure(summary, out / "figure-4"))


FIGURE_4 = paper_study("figure-4", "Cumulative regret", contenders, render)
