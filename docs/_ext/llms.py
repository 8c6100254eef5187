"""llms.txt, and every page as Markdown beside its HTML, for readers that are programs."""

from pathlib import Path
from typing import Any

from docutils import nodes
from generated import expand
from sphinx.application import Sphinx
from sphinx.writers.text import TextTranslator

HEADING = """# rbmle

> Contextual bandits: choose one of K options for a user, see the reward of that choice only, and learn. A
> Python library, a benchmark of policies, and a durable decision service over HTTP.

"""


class Plain(TextTranslator):
    """The text of a page that is made of docstrings."""

    def unknown_visit(self, node: nodes.Node) -> None:
        """Leave out what has no text."""
        raise nodes.SkipNode


def page_as_text(app: Sphinx, name: str) -> str:
    """Return a page as Markdown, or as plain text where autodoc or the gallery has made it."""
    source = Path(app.env.doc2path(name))
    text = source.read_text()
    if source.suffix == ".md" and "```{eval-rst}" not in text:
        return expand(text)
    tree = app.env.get_doctree(name)
    writer = Plain(tree, app.builder)
    tree.walkabout(writer)
    return writer.body


def description(app: Sphinx, name: str) -> str:
    """Return the first sentence of a page."""
    for paragraph in app.env.get_doctree(name).findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return text.split(". ")[0].rstrip(".:") + "."
    return ""


def write(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt and the pages."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    sections: dict[str, list[str]] = {}
    for name in sorted(app.env.found_docs):
        if name.startswith("gallery/sg_") or "backreferences" in name:
            continue
        path = out / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_as_text(app, name))
        folder = name.split("/")[0].capitalize() if "/" in name else "Home"
        title = app.env.titles[name].astext()
        sections.setdefault(folder, []).append(f"- [{title}]({name}.md): {description(app, name)}")
    order = ["Home", "Start", "How-to", "Gallery", "Reference", "Explanation", "Evidence"]
    names = sorted(sections, key=lambda x: order.index(x) if x in order else len(order))
    text = HEADING + "\n\n".join(f"## {x}\n\n" + "\n".join(sections[x]) for x in names)
    (out / "llms.txt").write_text(text + "\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the files when the site is built."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
