"""Results by seed, in small files, and the tables in the documentation that are made of them.

`rbmle reproduce` writes a file of results beside its tables, and `rbmle tables` puts such files into
docs/seeds and writes the tables between marks in the pages of docs, such as

    <!-- results: table-1 beside -->
    <!-- results: end -->

The first word is the name of a file in docs/seeds, the second one of VIEWS.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.experiments.measures import measure
from rbmle.experiments.summary import Summary, policy_title, summarise
from rbmle.experiments.tables import (
    Entry,
    ReportTable,
    comparison_table,
    markdown,
    mean_table,
    pairs_table,
    std_table,
)
from rbmle.experiments.trial import Run, parse_description
from rbmle.studies import riverswim
from rbmle.studies.base import ENDING, PAPER, write_results
from rbmle.studies.everyday import Shares, family_table, policy_table

FOLDER = "seeds"  # of the documentation
ROUNDS = (
    100,
    200,
    300,
    400,
    600,
    1000,
    2000,
    5000,
    10_000,
)  # at which regrets are kept, and at the end
MARK = re.compile(
    r"(<!-- results: (?P<file>[\w.-]+) (?P<view>[\w-]+) -->\n)(?P<table>.*?)(<!-- results: end -->)",
    re.DOTALL,
)
JSONResults = dict[str, Any]


def write_trials(summary: Summary, path: Path, note: str) -> Path:
    """Write the regret of each trial at some rounds, and what it was played with."""
    problems: list[JSONResults] = []
    policies: list[JSONResults] = []
    rows: list[Any] = []
    for cell in summary.cells:
        problem = {
            "name": cell.problem.dataset,
            "preprocessing": cell.problem.preprocessing,
            "horizon": cell.problem.horizon,
            "details": cell.problem.details,
        }
        policy = {
            "name": cell.policy,
            "settings": cell.settings,
            "code": cell.code.settings,
            "versions": cell.versions[0],
        }
        for listed, new in ((problems, problem), (policies, policy)):
            if new not in listed:
                listed.append(new)
        at = _rounds(cell.problem.horizon)
        for seed, regrets in zip(cell.seeds, cell.regrets, strict=True):
            shown = [float(f"{regrets[t - 1]:.8g}") for t in at]
            seconds = float(f"{cell.cpu_seconds:.4g}")  # the mean of the cell
            rows.append([policies.index(policy), problems.index(problem), seed, seconds, shown])
    return write_results(
        path, {"note": note, "problems": problems, "policies": policies}, {"trials": rows}
    )


def read_trials(results: JSONResults) -> Summary:
    """Return the summary of trials that `write_trials` wrote; between its rounds, regrets are not known.

    They count as if all of a stretch came in its last round.
    """
    runs = []
    for number, (policy, problem, seed, seconds, shown) in enumerate(results["trials"]):
        played, world = results["policies"][policy], results["problems"][problem]
        regrets = np.zeros(world["horizon"])
        regrets[np.array(_rounds(world["horizon"])) - 1] = np.diff(shown, prepend=0.0)
        environment = {k: world[k] for k in ("name", "preprocessing")} | world["details"]
        if isinstance(changes := environment.get("changes"), str):  # of an older version
            environment["changes"] = json.loads(changes)
        settings = played["settings"]
        if isinstance(settings, str):  # of an older version
            settings = parse_description(settings)
        runs.append(
            Run(
                id=str(number),
                settings={
                    "policy": played["name"],
                    "settings": settings,
                    "environment": environment,
                    "seed": seed,
                    "code": played["code"],
                },
                regrets=regrets,
                cpu_seconds=seconds,
                wall_seconds=seconds,
                versions=played["versions"],
            )
        )
    return summarise(runs)


def rounds_table(summary: Summary) -> ReportTable:
    """Return a row for each policy on each problem, and the mean regret after some rounds."""
    longest = max(cell.problem.horizon for cell in summary.cells)
    columns = _rounds(longest)

    def entries(cell: Any) -> tuple[Entry, ...]:
        known = {t: cell.at(t)[0] for t in columns if t in _rounds(cell.problem.horizon)}
        return tuple(Entry(text=f"{known[t]:.1f}") if t in known else Entry() for t in columns)

    return ReportTable(
        caption="Mean regret after so many rounds.",
        corner="Mean regret after",
        columns=("seeds", *(f"{t:,}" for t in columns)),
        rows=tuple(
            (
                f"{summary.title(cell.problem)}, {policy_title(cell.policy)}",
                (Entry(text=str(len(cell.seeds))), *entries(cell)),
            )
            for cell in summary.cells
        ),
    )


VIEWS: dict[str, Callable[[JSONResults], ReportTable]] = {
    "mean": lambda found: mean_table(read_trials(found)),
    "beside": lambda found: mean_table(read_trials(found), PAPER),
    "at-10000": lambda found: mean_table(read_trials(found), rounds=10_000),
    "std": lambda found: std_table(read_trials(found)),
    "rounds": lambda found: rounds_table(read_trials(found)),
    "comparison": lambda found: comparison_table(measure(read_trials(found))),
    "pairs": lambda found: pairs_table(measure(read_trials(found))),
    "riverswim": riverswim.published_regrets,
    "riverswim-tuning": riverswim.published_tuning,
    "policies": lambda found: policy_table(Shares(**found)),
    "families": lambda found: family_table(Shares(**found)),
}


def take(files: Sequence[Path], docs: Path) -> list[Path]:
    """Copy files of results into the documentation, and return where they are.

    Shares of everyday rewards replace those of the same policies; the other policies keep theirs.
    """
    taken = []
    for file in files:
        if not file.name.endswith(ENDING) or not file.is_file():
            raise SettingError(
                f"{file} has no results by seed; give a file that ends in {ENDING}, which rbmle reproduce wrote"
            )
        place = docs / FOLDER / f"{file.name.removesuffix(ENDING)}.json"
        text = file.read_text()
        if place.is_file() and "families" in (newer := json.loads(text)):
            text = Shares(**json.loads(place.read_text())).replaced(Shares(**newer)).text
        taken.append(write_text(place, text))
    return taken


def render_page(text: str, docs: Path) -> str:
    """Return a page with each marked table as the results by seed have it."""

    def table(mark: re.Match[str]) -> str:
        path = docs / FOLDER / f"{mark['file']}.json"
        if not path.is_file() or mark["view"] not in VIEWS:
            raise SettingError(
                f"there is no table {mark['file']} {mark['view']}: {path} must be a file, and the view one of "
                f"{', '.join(VIEWS)}"
            )
        made = markdown(VIEWS[mark["view"]](json.loads(path.read_text())))
        return f"{mark[1]}{made}{mark[5]}"

    return MARK.sub(table, text)


def find_outdated(docs: Path) -> dict[Path, str]:
    """Return the pages whose marked tables are not what the results by seed give, as they should be."""
    pages = {path: path.read_text() for path in sorted(docs.rglob("*.md"))}
    made = {path: render_page(text, docs) for path, text in pages.items()}
    return {path: text for path, text in made.items() if text != pages[path]}


def _rounds(horizon: int) -> list[int]:
    return [*(t for t in ROUNDS if t < horizon), horizon]
