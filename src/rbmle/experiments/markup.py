"""The parts of a report as HTML; all text in them is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from rbmle.experiments.report_table import ReportTable


def section(heading: str, content: str) -> str:
    """Return a section."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>"


def numbers(table: ReportTable) -> str:
    """Return a table of numbers, in a box that scrolls."""
    rows = []
    for title, entries in table.rows:
        shown = []
        for entry in entries:
            text = escape(entry.text)
            note = f"<small>{escape(entry.note)}</small>" if entry.note else ""
            best = f'<td class="best"><strong>{text}</strong>{note}</td>'
            shown.append(best if entry.is_best else f"<td>{text}{note}</td>")
        rows.append(f'<tr><th scope="row">{escape(title)}</th>{"".join(shown)}</tr>')
    return _box(table.caption, (table.corner, *table.columns), rows, "numbers")


def words(
    caption: str, corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]
) -> str:
    """Return a table of words."""
    shown = [
        f'<tr><th scope="row">{escape(title)}</th>'
        f"{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"
        for title, texts in rows
    ]
    return _box(caption, (corner, *columns), shown, "words")


def listing(items: Sequence[str], otherwise: str = "") -> str:
    """Return sentences as a list, or what to say if there are none."""
    if not items:
        return f"<p>{escape(otherwise)}</p>"
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _box(caption: str, head: Sequence[str], rows: Iterable[str], kind: str) -> str:
    """Return a table in a box that scrolls by itself, by keyboard too."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind}"><caption><span>{escape(caption)}</span></caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
    )
