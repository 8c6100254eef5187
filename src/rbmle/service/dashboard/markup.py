"""HTML that is escaped unless it was made here: what a client named `<script>` stays a name."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable[str]  # Html as it is, any other text escaped


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """Return an element; of attributes, `_` is written `-`, and what is None or False is left out.

    Attributes are arguments by name because that is how HTML reads; no other module passes them on.

    >>> tag("p", "a < b", class_="note", data_text="sum", hidden=True)
    '<p class="note" data-text="sum" hidden>a &lt; b</p>'
    """
    opened = "".join([name, *map(_attribute, attributes, attributes.values())])
    if name in VOID:
        return Html(f"<{opened}>")
    return Html(f"<{opened}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Html:
    """Return some children after each other.

    >>> joined("<", [tag("b", "x"), "&"])
    '&lt;<b>x</b>&amp;'
    """
    return Html("".join(map(_written, children)))


def _written(child: Child) -> str:
    if isinstance(child, Html):
        return child
    return escape(child) if isinstance(child, str) else joined(*child)


def _attribute(name: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
