"""Docstrings in plain text, as reStructuredText: code spans are kept, and signs of formulas are escaped."""

import re
from typing import Any

from sphinx.application import Sphinx

CODE_SPAN = re.compile(r"(`+)(.+?)\1")
FIELD = re.compile(r"^\s*:\w[\w ]*:")


def escape(text: str) -> str:
    """Escape what would be markup in reStructuredText, as in b*, |x| and a_."""
    text = re.sub(r"([*|])", r"\\\1", text)
    return re.sub(r"(\w)_(?!\w)", r"\1\\_", text)


def convert(line: str) -> str:
    """Return a line with `code` as ``code``, and everything else escaped."""
    parts, at = [], 0
    for span in CODE_SPAN.finditer(line):
        parts += [escape(line[at : span.start()]), f"``{span[2]}``"]
        at = span.end()
    return "".join([*parts, escape(line[at:])])


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Convert the lines of a docstring in place, and leave doctests as they are."""
    in_doctest = False
    for number, line in enumerate(lines):
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if not in_doctest and not FIELD.match(line):
            lines[number] = convert(line)


def reset_example(conf: dict[str, Any], name: str) -> None:
    """Give every example of the gallery the same look."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": (7.0, 3.8),
            "figure.dpi": 100,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
        }
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion, before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
