"""HTML pages about runs: self-contained, so that they can be read offline."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from rbmle.core.files import write_text
from rbmle.experiments.figures import (
    CLIPPED,
    REFERENCE,
    ROOM,
    dot_svg,
    final_panels,
    measured_panel,
)
from rbmle.experiments.measures import Measures, measure
from rbmle.experiments.styles import styles
from rbmle.experiments.summary import Problem, Summary, policy_title, settings_text
from rbmle.experiments.tables import (
    Entry,
    PaperResults,
    ReportTable,
    comparison_table,
    defeats,
    incomparable,
    is_comparable,
    is_compared,
    loss_table,
    mean_table,
    pairs_table,
    standings,
    std_table,
    unbeaten,
)


def section(heading: str, content: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>"


def numbers(table: ReportTable) -> str:
    """Return a scrollable table of numbers."""
    rows = []
    for title, entries in table.rows:
        shown = []
        for entry in entries:
            text = escape(entry.text)
            note = f"<small>{escape(entry.note)}</small>" if entry.note else ""
            best = f'<td class="best"><strong>{text}</strong>{note}</td>'
            shown.append(best if entry.is_best else f"<td>{text}{note}</td>")
        rows.append(f'<tr><th scope="row">{escape(title)}</th>{"".join(shown)}</tr>')
    return _box(table.legend, (table.corner, *table.columns), rows, "numbers")


def words(
    caption: str, corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]
) -> str:
    shown = [
        f'<tr><th scope="row">{escape(title)}</th>'
        f"{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"
        for title, texts in rows
    ]
    return _box(caption, (corner, *columns), shown, "words")


def listing(items: Sequence[str], otherwise: str = "") -> str:
    """Return sentences as a list, or the text `otherwise` if there are none."""
    if not items:
        return f"<p>{escape(otherwise)}</p>"
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _box(caption: str, head: Sequence[str], rows: Iterable[str], kind: str) -> str:
    """Return a table in a box that scrolls, also by keyboard."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind}"><caption><span>{escape(caption)}</span></caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
    )


COMPARISON_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
$css
</style>
</head>
<body>
<main>
<header><h1>$title</h1><p class="lead">$lead</p></header>
$body
</main>
</body>
</html>
""")


def comparison_sections(summary: Summary) -> list[str]:
    """Return the section that compares policies over all problems, if there is anything to compare."""
    measures = measure(summary)
    if not is_compared(measures):
        return []
    tables = numbers(comparison_table(measures)) + numbers(pairs_table(measures))
    return [section("All problems together", tables)]


def write_comparison(summary: Summary, path: Path, title: str, note: str, policy: str) -> None:
    """Write a page that compares policies, and says where `policy` loses."""
    measures = measure(summary)
    if is_compared(measures):
        picture = f'<figure class="picture">{dot_svg([measured_panel(measures)])}</figure>'
        sections = [
            section("All policies", picture + numbers(comparison_table(measures))),
            section("Where we lose", listing(losses_of(measures, summary, policy), "Nowhere.")),
            section("All pairs", numbers(pairs_table(measures))),
            section("All problems", numbers(loss_table(measures, summary))),
        ]
    else:
        sections = [section("Nothing to compare", "<p>Play two policies on two problems.</p>")]
    write_sections(path, title, note, sections)


def write_sections(path: Path, title: str, note: str, sections: list[str]) -> None:
    """Write a page of sections; it loads no other file and needs no script."""
    page = COMPARISON_PAGE.substitute(
        title=escape(title),
        lead=escape(note),
        css=(files("rbmle.experiments") / "page" / "page.css").read_text(encoding="utf-8"),
        body="\n".join(sections),
    )
    write_text(path, page)


def losses_of(measures: Measures, summary: Summary, policy: str) -> list[str]:
    """Return a sentence for each problem on which a policy has more than 1.05 times the best regret."""
    places = [place for place, name in enumerate(measures.policies) if name == policy]
    if not places:
        return [f"{policy_title(policy)} was not played."]
    ratios, regrets = measures.ratios[places[0]], measures.regrets
    worst = [at for at in (-ratios).argsort(kind="stable") if ratios[at] > 1.05]
    lines = []
    for at in worst:
        best = int(np.nanargmin(regrets[:, at]))
        lines.append(
            f"{summary.title(measures.problems[at])}: {policy_title(measures.policies[best])} has "
            f"{regrets[best, at]:,.1f}, {policy_title(policy)} {regrets[places[0], at]:,.1f}, "
            f"{ratios[at]:.2f} times as much."
        )
    return lines


MOST_PANELS = 12  # of the picture at the top
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
    """Write the report of a summary, with published numbers beside ours if there are some.

    `note` is shown above all numbers.
    """
    page = Template(_asset("page.html")).substitute(
        title=escape(title),
        lead=escape(_lead(summary)),
        body=_body(summary, published, note) if summary.cells else EMPTY,
        data=_data(summary),
        css=_vendored_file("uPlot.min.css") + _asset("page.css"),
        js=_plotting() + _asset("chart.js"),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def _body(summary: Summary, published: PaperResults | None, note: str) -> str:
    if published is not None and not any(published.has(p) for p in summary.problems):
        published = None
    beside = published if published is not None and is_comparable(summary, published) else None
    notices = [*([note] if note else []), *_notices(summary, published)]
    return "\n".join(
        [
            *(f'<p class="notice">{escape(text)}</p>' for text in notices),
            section("At a glance", _picture(summary)),
            _side_by_side(
                section("Mean regret", numbers(mean_table(summary, beside))),
                section("Deviation over seeds", numbers(std_table(summary, beside))),
            ),
            section("Regret curves", _charts(summary)),
            _side_by_side(*_comparisons(summary, published)),
            *comparison_sections(summary),
            section("Settings of every policy", _settings(summary)),
            section("Problems", _problems(summary)),
            _side_by_side(
                section("CPU time", _cpu(summary)), section("Versions", _versions(summary))
            ),
        ]
    )


def _side_by_side(*sections: str) -> str:
    return f'<div class="side">\n{chr(10).join(sections)}\n</div>'


def _picture(summary: Summary) -> str:
    """Return the final regrets as dots, for at most MOST_PANELS problems."""
    panels = final_panels(summary)[:MOST_PANELS]
    more = len(summary.problems) - len(panels)
    text = "Mean final regret, with two standard errors. Filled: statistically tied with the best."
    rest = f" {more} more problems are in the tables." if more else ""
    return f'<figure class="picture">{dot_svg(panels)}</figure><p>{text}{rest}</p>'


def _lead(summary: Summary) -> str:
    if not summary.cells:
        return "The folder has no runs."
    datasets = len({problem.dataset for problem in summary.problems})
    seeds = _span(len(set(cell.seeds)) for cell in summary.cells)
    rounds = _span(problem.horizon for problem in summary.problems)
    return (
        f"{_count(summary.runs, 'run')} on {_count(datasets, 'dataset')} by "
        f"{_count(len(summary.policies), 'policy', 'policies')}, with {seeds} "
        f"{'seed' if seeds == '1' else 'seeds'} each and {rounds} {'round' if rounds == '1' else 'rounds'}."
    )


def _notices(summary: Summary, published: PaperResults | None) -> Iterable[str]:
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
                f"Problems that ran for fewer rounds than in the {published.source} are not compared with it: "
                f"{', '.join(shorter)}."
            )


def _comparisons(summary: Summary, published: PaperResults | None) -> Iterable[str]:
    """Yield comparisons: with published numbers where there are some, and with each other elsewhere."""
    claimed = [
        problem
        for problem in summary.problems
        if published is not None
        and published.has(problem)
        and summary.variants(problem, published.policy)
    ]
    others = [p for p in summary.problems if p not in claimed]
    if others:
        yield section("Which policy is best where", listing(standings(summary, others)))
    if published is not None and claimed:
        yield section("Where we lose", _losses(summary, published, claimed))


def _losses(summary: Summary, published: PaperResults, problems: Sequence[Problem]) -> str:
    """Return where other policies beat the proposed one, and where we do not beat published numbers."""
    ours = policy_title(published.policy)
    nowhere = f"Nowhere: {ours} is the best of every column, or within 1 % of it."
    nothing = f"Nothing: no number that can be compared is above the {published.source}'s."
    shown = [
        f"<h3>{ours} against the others</h3>",
        listing(defeats(summary, published.policy, problems), nowhere),
    ]
    if is_comparable(summary, published):
        shown.append(f"<h3>Each policy against the {escape(published.source)}</h3>")
        shown.append(listing(unbeaten(summary, published), nothing))
    return "\n".join(shown)


def _charts(summary: Summary) -> str:
    hint = (
        "<p>Mean over seeds; the best three policies have a band of one standard deviation. Hover over a "
        "line to see its band, or over a round to read all regrets. Click a policy in a legend to hide "
        "it in all charts, or to show it again.</p>"
        '<p><button type="button" id="bands" aria-pressed="false">Bands of all policies</button></p>'
        "<noscript><p>Curves need JavaScript; the tables above hold the final regrets.</p></noscript>"
    )
    charts = "".join(
        '<figure class="chart">'
        f"<figcaption>{escape(summary.title(problem))}</figcaption>"
        '<div class="plot" role="slider" tabindex="0" aria-valuemin="1" '
        f'aria-valuemax="{problem.horizon}" aria-valuenow="{problem.horizon}" '
        f'aria-label="Round of {escape(summary.title(problem))}"></div>'
        '<div class="legend"><p></p><ul></ul></div></figure>'
        for problem in summary.problems
    )
    return f'{hint}<div class="charts">{charts}</div>'


def _settings(summary: Summary) -> str:
    shown = []
    for policy in summary.policies:
        used: dict[str, list[str]] = {}
        for cell in summary.cells:
            if cell.policy == policy:
                used.setdefault(settings_text(cell.settings), []).append(
                    summary.title(cell.problem)
                )
        entries = [
            f"<li>{escape(', '.join(where))}: <code>{escape(settings)}</code></li>"
            for settings, where in used.items()
        ]
        shown.append(
            f"<h3>{escape(policy_title(policy))}</h3><ul class='wide'>{''.join(entries)}</ul>"
        )
    return "\n".join(shown)


def _problems(summary: Summary) -> str:
    rows = []
    for problem in summary.problems:
        details = "; ".join(f"{name}: {_detail(value)}" for name, value in problem.details.items())
        texts = (f"{problem.horizon:,}", problem.preprocessing or "none stated", details or "–")
        rows.append((summary.title(problem), texts))
    return words("What was played.", "Problem", ("Rounds", "Preprocessing", "Data"), rows)


def _detail(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cpu(summary: Summary) -> str:
    rows = []
    for policy in summary.policies:
        cells = [summary.cell(problem, policy) for problem in summary.problems]
        entries = [Entry() if c is None else Entry(text=f"{c.cpu_seconds:.1f}") for c in cells]
        rows.append((policy_title(policy), tuple(entries)))
    columns = tuple(summary.title(problem) for problem in summary.problems)
    caption = "CPU seconds of a trial, mean over seeds."
    return numbers(ReportTable(caption=caption, corner="Policy", columns=columns, rows=tuple(rows)))


def _versions(summary: Summary) -> str:
    by_name: dict[str, set[str]] = {}
    for cell in summary.cells:
        for versions in cell.versions:
            for name, version in versions.items():
                by_name.setdefault(name, set()).add(version)
    rows = [(name, (", ".join(sorted(some)),)) for name, some in by_name.items()]
    return words("What the runs were made with.", "Name", ("Version",), rows)


def _data(summary: Summary) -> str:
    """Return the curves as JSON, escaped so that it cannot end its script element."""
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


def _count(number: int, singular: str, many: str = "") -> str:
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def _span(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers)) or [0]
    return f"{ordered[0]:,}" if len(ordered) == 1 else f"{ordered[0]:,} to {ordered[-1]:,}"


def _plotting() -> str:
    """Return uPlot with its licence, and without the address that its first line has."""
    comment, _, code = _vendored_file("uPlot.iife.min.js").partition("\n")
    version = comment.partition("(")[2].partition(")")[0]
    return f"/*! uPlot {version}\n\n{_vendored_file('uPlot.LICENSE.txt')}*/\n{code}\n"


def _vendored_file(name: str) -> str:
    return (files("rbmle") / "vendored" / name).read_text(encoding="utf-8")


def _asset(name: str) -> str:
    return (files("rbmle.experiments") / "page" / name).read_text(encoding="utf-8")
