"""Table 1: the mean final regret of seven policies on six datasets."""

from pathlib import Path

from rbmle.core.files import write_text
from rbmle.experiments.figures import panel_figure
from rbmle.experiments.report_table import latex, markdown
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import mean_table
from rbmle.studies.base import noted, paper_study
from rbmle.studies.contender import Contender
from rbmle.studies.plan import Plan
from rbmle.studies.published import PAPER


def contenders(plan: Plan) -> list[Contender]:
    """Return 7 policies × 6 datasets × 10 seeds."""
    return plan.compared(plan.datasets)


def tried(plan: Plan) -> list[Contender]:
    """Return the same with every rate of learning, of which the best is shown."""
    return plan.tried(plan.datasets)


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Write the table in Markdown and LaTeX, ours beside the paper's, and all curves."""
    ours, beside = noted(mean_table(summary), note), noted(mean_table(summary, PAPER), note)
    return [
        write_text(out / "table-1.md", markdown(ours)),
        write_text(out / "table-1.tex", latex(ours)),
        write_text(out / "table-1-beside-the-paper.md", markdown(beside)),
        *panel_figure(summary, out / "table-1-curves"),
    ]


TABLE_1 = paper_study("table-1", "Mean final regret", contenders, render, tried)
