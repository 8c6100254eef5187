"""A report of runs: one HTML file that asks for nothing else, to be read offline."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from rbmle.experiments.comparison_page import comparison_sections
from rbmle.experiments.labels import CLIPPED, REFERENCE, ROOM
from rbmle.experiments.markup import listing, numbers, section, words
from rbmle.experiments.report_table import Entry, ReportTable
from rbmle.experiments.standings import standings
from rbmle.experiments.styles import styles
from rbmle.experiments.summary import Problem, Summary, policy_title
from rbmle.experiments.tables import (
    OURS,
    PaperResults,
    defeats,
    incomparable,
    is_comparable,
    mean_table,
    std_table,
    unbeaten,
)

TITLE = "Regret of neural contextual bandits"
EMPTY = """<section>
<h2>There are no runs yet</h2>
<p>Play the trials of a study into a store, then write this report again:</p>
<pre><code>store = Store(folder=Path("runs"))
for trial in trials:
    if store.get(trial) is None:
        store.put(play(trial))
write_report(summarise(store.all()), Path("report.html"))</code></pre>
</section>"""


def write_report(
    summary: Summary,
    path: Path,
    published: PaperResults | None = None,
    title: str = TITLE,
    note: str = "",
) -> None:
    """Write the report of a summary, beside the published numbers if there are some.

    `note` is said before any number.
    """
    page = Template(_asset("page.html")).substitute(
        title=escape(title),
        lead=escape(_lead(summary)),
        body=_body(summary, published, note) if summary.cells else EMPTY,
        data=_data(summary),
        css=_vendored("uPlot.min.css") + _asset("page.css"),
        js=_plotting() + _asset("chart.js"),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def _body(summary: Summary, published: PaperResults | None, note: str) -> str:
    """Return all sections."""
    if published is not None and not any(published.has(p) for p in summary.problems):
        published = None
    beside = published if published is not None and is_comparable(summary, published) else None
    notices = [*([note] if note else []), *_notices(summary, published)]
    return "\n".join(
        [
            *(f'<p class="notice">{escape(text)}</p>' for text in notices),
            section("Mean regret", numbers(mean_table(summary, beside))),
            section("Deviation over seeds", numbers(std_table(summary, beside))),
            *_comparisons(summary, published),
            *comparison_sections(summary),
            section("Regret curves", _charts(summary)),
            section("Settings of every policy", _settings(summary)),
            section("Problems", _problems(summary)),
            section("CPU time", _cpu(summary)),
            section("Versions", _versions(summary)),
        ]
    )


def _lead(summary: Summary) -> str:
    """Return in one sentence what was played."""
    if not summary.cells:
        return "Nothing was played."
    datasets = len({problem.dataset for problem in summary.problems})
    seeds = _span(len(set(cell.seeds)) for cell in summary.cells)
    rounds = _span(problem.horizon for problem in summary.problems)
    return (
        f"{_count(summary.runs, 'run')} on {_count(datasets, 'dataset')} by "
        f"{_count(len(summary.policies), 'policy', 'policies')}, with {seeds} "
        f"{'seed' if seeds == '1' else 'seeds'} each and {rounds} {'round' if rounds == '1' else 'rounds'}."
    )


def _notices(summary: Summary, published: PaperResults | None) -> Iterable[str]:
    """Yield what a reader must know before any number."""
    if len({len(cell.seeds) for cell in summary.cells}) > 1:
        most = max(len(cell.seeds) for cell in summary.cells)
        fewer = sum(len(cell.seeds) < most for cell in summary.cells)
        yield f"{fewer} of {len(summary.cells)} means are over fewer than {most} runs."
    if published is not None:
        shorter = [
            f"{summary.title(problem)} ({problem.horizon:,})"
            for problem in incomparable(summary, published)
        ]
        if shorter:
            yield (
                f"Played for fewer rounds than in the {published.source}, and so not compared with it: "
                f"{', '.join(shorter)}."
            )


def _comparisons(summary: Summary, published: PaperResults | None) -> Iterable[str]:
    """Yield how policies compare: on published problems with our claim, on others with each other."""
    claimed = [p for p in summary.problems if published is not None and published.has(p)]
    others = [p for p in summary.problems if p not in claimed]
    if others:
        yield section("Which policy is best where", listing(standings(summary, others)))
    if published is not None:
        yield section("Where we lose", _losses(summary, published, claimed))


def _losses(summary: Summary, published: PaperResults, problems: Sequence[Problem]) -> str:
    """Return where our policy is beaten, and where published numbers are not."""
    ours = policy_title(OURS)
    nowhere = f"Nowhere: {ours} is the best of every column, or within 1 % of it."
    nothing = f"Nothing: no number that can be compared is above the {published.source}'s."
    shown = [
        f"<h3>{ours} against the others</h3>",
        listing(defeats(summary, problems=problems), nowhere),
    ]
    if is_comparable(summary, published):
        shown.append(f"<h3>Each policy against the {escape(published.source)}</h3>")
        shown.append(listing(unbeaten(summary, published), nothing))
    return "\n".join(shown)


def _charts(summary: Summary) -> str:
    """Return a place for each chart, which the script fills."""
    hint = (
        "<p>Mean over seeds; the best three policies have a band of one standard deviation. Point at a "
        "line to see its band, at a round to read the regrets there. Click a policy in a legend to hide "
        "it in all charts, or to show it again.</p>"
        '<p><button type="button" id="bands" aria-pressed="false">Bands of all policies</button></p>'
        "<noscript><p>Curves need JavaScript; the tables above hold the final regrets.</p></noscript>"
    )
    return hint + "".join(
        '<figure class="chart">'
        f"<figcaption>{escape(summary.title(problem))}</figcaption>"
        '<div class="plot" role="slider" tabindex="0" aria-valuemin="1" '
        f'aria-valuemax="{problem.horizon}" aria-valuenow="{problem.horizon}" '
        f'aria-label="Round of {escape(summary.title(problem))}"></div>'
        '<div class="legend"><p></p><ul></ul></div></figure>'
        for problem in summary.problems
    )


def _settings(summary: Summary) -> str:
    """Return each policy's settings, and where they were used."""
    shown = []
    for policy in summary.policies:
        used: dict[str, list[str]] = {}
        for cell in summary.cells:
            if cell.policy == policy:
                used.setdefault(cell.settings, []).append(summary.title(cell.problem))
        entries = [
            f"<li>{escape(', '.join(where))}: <code>{escape(settings)}</code></li>"
            for settings, where in used.items()
        ]
        shown.append(
            f"<h3>{escape(policy_title(policy))}</h3><ul class='wide'>{''.join(entries)}</ul>"
        )
    return "\n".join(shown)


def _problems(summary: Summary) -> str:
    """Return horizon and preprocessing of every problem."""
    rows = []
    for problem in summary.problems:
        details = "; ".join(f"{name}: {_listed(value)}" for name, value in problem.details)
        texts = (f"{problem.horizon:,}", problem.preprocessing or "none stated", details or "–")
        rows.append((summary.title(problem), texts))
    return words("What was played.", "Problem", ("Rounds", "Preprocessing", "Data"), rows)


def _listed(value: str) -> str:
    """Return a setting as words; a list without its brackets."""
    try:
        found = json.loads(value)
    except ValueError:  # it is a text
        return value
    return ", ".join(map(str, found)) if isinstance(found, list) else value


def _cpu(summary: Summary) -> str:
    """Return CPU time of a trial for every cell."""
    rows = []
    for policy in summary.policies:
        cells = [summary.cell(problem, policy) for problem in summary.problems]
        entries = [Entry() if c is None else Entry(text=f"{c.cpu_seconds:.1f}") for c in cells]
        rows.append((policy_title(policy), tuple(entries)))
    columns = tuple(summary.title(problem) for problem in summary.problems)
    caption = "CPU seconds of a trial, mean over seeds."
    return numbers(ReportTable(caption=caption, corner="Policy", columns=columns, rows=tuple(rows)))


def _versions(summary: Summary) -> str:
    """Return the versions of all runs; several of one name are all named."""
    found: dict[str, set[str]] = {}
    for cell in summary.cells:
        for versions in cell.versions:
            for name, version in versions.items():
                found.setdefault(name, set()).add(version)
    rows = [(name, (", ".join(sorted(found[name])),)) for name in found]
    return words("What the runs were made with.", "Name", ("Version",), rows)


def _data(summary: Summary) -> str:
    """Return the curves as JSON that cannot leave its script element."""
    charts = []
    for problem in summary.problems:
        cells = [cell for cell in summary.cells if cell.problem == problem]
        curves = [cell.curve for cell in cells]
        lines = [
            {
                "policy": cell.policy,
                "title": policy_title(cell.policy),
                "mean": curve.mean.round(2).tolist(),
                "std": None if curve.std is None else curve.std.round(2).tolist(),
            }
            for cell, curve in zip(cells, curves, strict=True)
        ]
        charts.append({"rounds": curves[0].rounds.tolist(), "lines": lines})
    looks = {
        name: {"colour": style.colour, "dashes": style.dashes, "width": style.width}
        for name, style in styles(summary.policies).items()
    }
    frame = {"reference": REFERENCE, "clipped": CLIPPED, "room": ROOM}
    text = json.dumps({"charts": charts, "styles": looks, **frame}, separators=(",", ":"))
    for special in "<>&":
        text = text.replace(special, f"\\u{ord(special):04x}")
    return text


def _count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _span(numbers: Iterable[int]) -> str:
    """Return the smallest and the largest of numbers."""
    found = sorted(set(numbers)) or [0]
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _plotting() -> str:
    """Return uPlot with its licence, and without the address that its first line has."""
    comment, _, code = _vendored("uPlot.iife.min.js").partition("\n")
    version = comment.partition("(")[2].partition(")")[0]
    return f"/*! uPlot {version}\n\n{_vendored('uPlot.LICENSE.txt')}*/\n{code}\n"


def _vendored(name: str) -> str:
    """Return a file of others that the page needs."""
    return (files("rbmle") / "vendored" / name).read_text(encoding="utf-8")


def _asset(name: str) -> str:
    """Return a file of the page."""
    return (files("rbmle.experiments") / "page" / name).read_text(encoding="utf-8")
