"""Formulas as MathML, which browsers draw by themselves: no script, and nothing to fetch."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# A subscript of a letter with an accent, which docutils would put below the letter.
ACCENTED = re.compile(r"(\\(?:tilde|hat|bar|dot) ?\\?[A-Za-z]+)_")


def convert(formula: str, *, as_block: bool) -> str:
    """Return a formula in TeX as MathML."""
    return tex2mathml(ACCENTED.sub(r"\1{}_", formula), as_block=as_block)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    writer.body.append(convert(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="formula">{convert(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
