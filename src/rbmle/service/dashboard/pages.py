"""The pages, from their templates; what a client named `<script>` stays a name."""

from pathlib import Path
from shlex import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rbmle.service.dashboard import words
from rbmle.service.dashboard.dates import BETWEEN
from rbmle.service.dashboard.view import ALL, View, points
from rbmle.service.statistics.ranges import RANGES

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def dashboard(view: View, *, address: str, keys: Path | None) -> str:
    """Return the page; the address is where this service was reached, and keys are in a file if it has any."""
    first, _, last = view.range.partition(BETWEEN)
    return _TEMPLATES.get_template("dashboard.html").render(
        view=view,
        points=points(view.overview),
        ranges={ALL: "All time", **{name: one.name for name, one in RANGES.items()}},
        dates=(first, last) if last else ("", ""),
        clock=words.clock(view.overview.time),
        address=address,
        keys_folder=None if keys is None else quote(str(keys.absolute().parent)),
    )


def login(problem: str = "") -> str:
    """Return the form that asks for a key; the problem says why one was not taken."""
    return _TEMPLATES.get_template("login.html").render(problem=problem)
