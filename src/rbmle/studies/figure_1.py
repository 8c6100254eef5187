"""Figure 1: cumulative regret on MNIST, Mushroom and Shuttle."""

from pathlib import Path

from rbmle.experiments.figures import panel_figure
from rbmle.experiments.summary import Summary
from rbmle.studies.base import paper_study
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan


def contenders(plan: Plan) -> list[Contender]:
    """Return seven policies on three datasets."""
    return plan.compared((plan.image(), "mushroom", "shuttle"))


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Draw three panels."""
    return list(panel_figure(summary, out / "figure-1"))


FIGURE_1 = paper_study("figure-1", "Cumulative regret", contenders, render)
