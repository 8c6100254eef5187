"""Table 1: the mean final regret of seven policies on six datasets."""

from pathlib import Path

from rbmle.core.files import write_text
from rbmle.experiments.figures import panel_figure
from rbmle.experiments.report_table import latex, markdown
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import mean_table
from rbmle.experiments.trial import Trial
from rbmle.studies.base import Plan, Study, noted
from rbmle.studies.published import PAPER


def trials(plan: Plan) -> list[Trial]:
    """Return 7 policies × 6 datasets × 10 seeds."""
    return plan.compared(plan.datasets)


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Write the table in Markdown and LaTeX, ours beside the paper's, and all curves."""
    ours, beside = noted(mean_table(summary), note), noted(mean_table(summary, PAPER), note)
    return [
        write_text(out / "table-1.md", markdown(ours)),
        write_text(out / "table-1.tex", latex(ours)),
        write_text(out / "table-1-beside-the-paper.md", markdown(beside)),
        *panel_figure(summary, out / "table-1-curves"),
    ]


TABLE_1 = Study(name="table-1", title="Mean final regret", trials=trials, render=render)
