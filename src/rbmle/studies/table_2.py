"""Table 2: the standard deviation of the final regret, of the trials of Table 1."""

from pathlib import Path

from rbmle.core.files import write_text
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import latex, markdown, std_table
from rbmle.studies.base import Study
from rbmle.studies.published import PAPER
from rbmle.studies.table_1 import trials


def render(summary: Summary, out: Path) -> list[Path]:
    """Write the table in Markdown and LaTeX, and ours beside the paper's."""
    return [
        write_text(out / "table-2.md", markdown(std_table(summary))),
        write_text(out / "table-2.tex", latex(std_table(summary))),
        write_text(out / "table-2-beside-the-paper.md", markdown(std_table(summary, PAPER))),
    ]


TABLE_2 = Study(name="table-2", title="Deviation of the final regret", trials=trials, render=render)
