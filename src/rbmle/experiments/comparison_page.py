"""The page of a comparison over many problems: tables and ranks, without a curve of every problem."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from rbmle.core.files import write_text
from rbmle.experiments.comparison import (
    comparison_table,
    is_compared,
    loss_table,
    pairs_table,
    policy_ranks,
)
from rbmle.experiments.figures import rank_svg
from rbmle.experiments.markup import listing, numbers, section
from rbmle.experiments.measures import Measures, measure
from rbmle.experiments.summary import Summary, policy_title
from rbmle.experiments.tables import OURS

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
$css
.ranks { background: white; overflow-x: auto; }
.ranks svg { display: block; max-width: 100%; height: auto; margin: auto; }
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
    """Return the section of a report that compares policies over all problems; none if there is nothing."""
    measures = measure(summary)
    if not is_compared(measures):
        return []
    tables = numbers(comparison_table(measures)) + numbers(pairs_table(measures))
    return [section("All problems together", tables)]


def write_comparison(summary: Summary, path: Path, title: str, note: str) -> None:
    """Write the page of a summary; it asks for nothing else, and needs no script."""
    measures = measure(summary)
    if is_compared(measures):
        ranks = policy_ranks(measures)
        caption = (
            "Mean rank by regret, the best at the left. Policies that a bar joins are not told apart by "
            f"Nemenyi's test at 5 %; Friedman's test of all being equal has p = {ranks.p:.2g}."
        )
        picture = f'<figure class="ranks">{rank_svg(ranks)}</figure><p>{escape(caption)}</p>'
        sections = [
            section("All policies", numbers(comparison_table(measures))),
            section("Ranks", picture),
            section("Where we lose", listing(losses_of(measures, summary), "Nowhere.")),
            section("All pairs", numbers(pairs_table(measures))),
            section("All problems", numbers(loss_table(measures, summary))),
        ]
    else:
        sections = [section("Nothing to compare", "<p>Play two policies on two problems.</p>")]
    write_sections(path, title, note, sections)


def write_sections(path: Path, title: str, note: str, sections: list[str]) -> None:
    """Write a page of sections; it asks for nothing else, and needs no script."""
    page = PAGE.substitute(
        title=escape(title),
        lead=escape(note),
        css=(files("rbmle.experiments") / "page" / "page.css").read_text(encoding="utf-8"),
        body="\n".join(sections),
    )
    write_text(path, page)


def losses_of(measures: Measures, summary: Summary, policy: str = OURS) -> list[str]:
    """Return a sentence for each problem on which a policy has over 1.05 times the best regret."""
    found = [place for place, name in enumerate(measures.policies) if name == policy]
    if not found:
        return [f"{policy_title(policy)} was not played."]
    ratios, regrets = measures.ratios[found[0]], measures.regrets
    worst = [at for at in (-ratios).argsort(kind="stable") if ratios[at] > 1.05]
    lines = []
    for at in worst:
        best = int(np.nanargmin(regrets[:, at]))
        lines.append(
            f"{summary.title(measures.problems[at])}: {policy_title(measures.policies[best])} has "
            f"{regrets[best, at]:,.1f}, {policy_title(policy)} {regrets[found[0], at]:,.1f}, "
            f"{ratios[at]:.2f} times as much."
        )
    return lines
