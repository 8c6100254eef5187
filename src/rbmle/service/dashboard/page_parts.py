"""Parts of a page that the script keeps up to date; dashboard.js writes cells in the same way."""

from dataclasses import dataclass

from rbmle.service.dashboard.markup import Child, Html, tag
from rbmle.service.dashboard.view import Cell, Table, View


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column, and what is in it: text, number, value, id or figure."""

    name: str
    kind: str = "text"


def text(view: View, name: str, element: str = "span", class_: str | None = None) -> Html:
    """Return one of the texts."""
    return tag(element, view.texts[name], data_text=name, class_=class_)


def section(title: str, about: Child, *children: Html) -> Html:
    """Return a panel with its heading."""
    id = "of-" + title.lower().replace(" ", "-")
    return tag(
        "section",
        tag("h2", title, id=id),
        tag("p", about, class_="note") if about else "",
        children,
        class_="panel",
        aria_labelledby=id,
    )


def disclosed(label: str, *children: Html) -> Html:
    """Return what is seen when it is asked for."""
    return tag("details", tag("summary", label), tag("div", children, class_="scroll"))


def table(name: str, rows: Table, columns: tuple[Column, ...], class_: str | None = None) -> Html:
    """Return one of the tables; the first cell of a row is its head."""
    has_head = (
        any(column.kind == "text" and column.name for column in columns) or class_ is not None
    )
    heads = [tag("th", column.name, scope="col", class_=column.kind) for column in columns]
    kinds = [column.kind for column in columns]
    return tag(
        "table",
        tag("thead", tag("tr", heads), class_=None if has_head else "unseen"),
        tag(
            "tbody",
            [_row(cells, kinds) for cells in rows],
            data_rows=name,
            data_kinds=" ".join(kinds),
        ),
        class_=class_,
    )


def _row(cells: list[Cell], kinds: list[str]) -> Html:
    first, *others = zip(cells, kinds, strict=True)
    return tag(
        "tr",
        tag("th", _inside(first[0]), scope="row", class_=first[1]),
        [tag("td", _inside(cell), class_=kind) for cell, kind in others],
    )


def _inside(cell: Cell) -> list[Html]:
    parts = []
    if cell.text:
        swatch = tag("span", class_=f"swatch {cell.tone}", aria_hidden="true") if cell.tone else ""
        parts.append(tag("span", swatch, cell.text, class_="text", title=cell.text))
    if cell.note:
        parts.append(tag("span", cell.note, class_="note"))
    if cell.bar is not None:
        bar = tag("rect", width=f"{cell.bar:.2f}%", height="100%", rx="2")
        parts.append(tag("svg", bar, class_="bar", aria_hidden="true"))
    if cell.span is not None:
        low, middle, high = (f"{end:.2f}%" for end in cell.span)
        parts.append(
            tag(
                "svg",
                tag("line", x1=low, x2=high, y1="50%", y2="50%"),
                tag("circle", cx=middle, cy="50%", r="5"),
                class_=f"span {cell.tone}",
                aria_hidden="true",
            )
        )
    return parts
