"""A table of a report: what it says, and how it is written in Markdown and LaTeX."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One place of a table."""

    text: str = "–"
    note: str = ""  # beside it, smaller
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """What a table says, without saying how it looks."""

    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]


def markdown(table: ReportTable) -> str:
    """Return a table in Markdown, and its caption below."""

    def escaped(text: str) -> str:
        return re.sub(r"([\\`*_|<>\[\]&~$])", r"\\\1", " ".join(text.split()))

    def shown(entry: Entry) -> str:
        text = escaped(entry.text)
        note = f" ({escaped(entry.note)})" if entry.note else ""
        return (f"**{text}**" if entry.is_best else text) + note

    head = [escaped(text) for text in (table.corner, *table.columns)]
    rows = [[escaped(title), *map(shown, entries)] for title, entries in table.rows]
    rule = ["---"] + ["---:"] * len(table.columns)
    lines = [f"| {' | '.join(row)} |" for row in [head, rule, *rows]]
    return "\n".join([*lines, "", escaped(table.caption), ""])


def latex(table: ReportTable) -> str:
    """Return a table in LaTeX; it needs no package."""

    def shown(entry: Entry) -> str:
        text = latex_text(entry.text)
        note = f" {{\\scriptsize({latex_text(entry.note)})}}" if entry.note else ""
        return (f"\\textbf{{{text}}}" if entry.is_best else text) + note

    head = [f"\\textbf{{{latex_text(text)}}}" for text in (table.corner, *table.columns)]
    rows = [[latex_text(title), *map(shown, entries)] for title, entries in table.rows]
    return "\n".join(
        [
            "\\begin{table}",
            f"\\caption{{{latex_text(table.caption)}}}",
            "\\centering",
            f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            "\\hline",
            " & ".join(head) + r" \\ \hline",
            *(" & ".join(row) + r" \\" for row in rows),
            "\\hline",
            "\\end{tabular}",
            "\\end{table}\n",
        ]
    )


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "†": r"\dag{}",
    }
    | {special: f"\\{special}" for special in "&%$#_{}"}
)


def latex_text(text: str) -> str:
    r"""Return text that LaTeX prints as it is: `A_B & 5 %` becomes `A\_B \& 5 \%`."""
    return " ".join(text.split()).translate(LATEX)
