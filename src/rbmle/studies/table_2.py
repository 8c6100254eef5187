"""Table 2: the standard deviation of the final regret, of the trials of Table 1."""

from pathlib import Path

from rbmle.core.files import write_text
from rbmle.experiments.report_table import latex, markdown
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import std_table
from rbmle.studies.base import noted, paper_study
from rbmle.studies.published import PAPER
from rbmle.studies.table_1 import contenders


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Write the table in Markdown and LaTeX, and ours beside the paper's."""
    ours, beside = noted(std_table(summary), note), noted(std_table(summary, PAPER), note)
    return [
        write_text(out / "table-2.md", markdown(ours)),
        write_text(out / "table-2.tex", latex(ours)),
        write_text(out / "table-2-beside-the-paper.md", markdown(beside)),
    ]


TABLE_2 = paper_study("table-2", "Deviation of the final regret", contenders, render)
