"""Draw the pictures of docs/evidence from the tables on its pages, so that both say the same.

Run as `python tools/evidence_figures.py`; `--out DIR` writes elsewhere than docs/images.
"""

import argparse
import re
from dataclasses import replace
from pathlib import Path

from rbmle.experiments.figures import DotPanel, DotRow, dot_figure, relative_panel
from rbmle.experiments.styles import styles
from rbmle.experiments.summary import POLICY_TITLES

PAGES = Path(__file__).parents[1] / "docs" / "evidence"
NAMES = {title: name for name, title in POLICY_TITLES.items()}
NOTE = "Dots: means of 10 seeds, with two standard errors. Filled: as good as the best (p ≥ 0.05)."
Table = dict[str, dict[str, str]]  # cells by the title of the row, and by that of the column


def read_table(page: str, heading: str) -> Table:
    """Return the first table whose second column has a heading."""
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|") and heading in line)
    columns = split(lines[start])
    table: Table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        title, *cells = split(line)
        table[title] = dict(zip(columns[1:], cells, strict=True))
    return table


def split(line: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text: str) -> float:
    """Return the first number of a cell."""
    found = re.search(r"\d[\d,.]*", text.replace("**", ""))
    if found is None:
        raise ValueError(f"there is no number in {text!r}")
    return float(found[0].replace(",", ""))


def draw_bakeoff(out: Path) -> None:
    """Draw regret relative to the best of each problem."""
    page = (PAGES / "bakeoff.md").read_text()
    table = read_table(page, "regret / best")
    problems = re.search(r"\| problems \| (\d+):", page)
    assert problems is not None, "the page does not say how many problems there are"
    ratios = {title: number(cells["regret / best"]) for title, cells in table.items()}
    dot_figure([relative_panel(ratios, int(problems[1]))], out / "bakeoff-regret")


def draw_results(out: Path) -> None:
    """Draw the final regrets of Table 1 and of Figures 2 and 3."""
    page = (PAGES / "results.md").read_text()
    table = read_table(page, "Adult")
    names = [NAMES[title] for title in table]
    dot_figure(
        panels_of(table, names, list(table), [*next(iter(table.values()))]), out / "table-1", NOTE
    )
    table = read_table(page, "Mushroom | Shuttle | ν")
    names = [f"neural-rbmle-ga ({name})" for name in ("Gaussian", "Bernoulli", "Mixture")]
    titles = [title.partition(",")[0].capitalize() for title in table]
    panels = panels_of(table, names, titles, ["MNIST", "Mushroom", "Shuttle"])
    dot_figure(panels, out / "figure-2", NOTE)
    table = read_table(page, "Mean final regret on MNIST, 10 seeds")
    names = [f"α(t) = ν t^{n}" for n in ("0", "0.25", "0.5", "1", "2")]
    panels = panels_of(table, names, names, ["Mean final regret on MNIST, 10 seeds"])
    dot_figure([replace(panels[0], title="MNIST")], out / "figure-3", NOTE)


def panels_of(
    table: Table, names: list[str], titles: list[str], columns: list[str]
) -> list[DotPanel]:
    """Return a panel for each column: a dot for each row, filled if the number is bold."""
    looks = styles(names)
    panels = []
    for column in columns:
        rows = []
        for name, title, cells in zip(names, titles, table.values(), strict=True):
            mean, error = cells[column].split("(")[0].split("±")
            rows.append(
                DotRow(
                    title=title,
                    colour=looks[name].colour,
                    value=number(mean),
                    error=number(error),
                    is_filled="**" in mean,
                )
            )
        panels.append(DotPanel(rows=rows, label="mean final regret", title=column, digits=1))
    return panels


def main() -> None:
    """Draw all pictures, and keep the PNG files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAGES.parent / "images")
    out = parser.parse_args().out
    draw_bakeoff(out)
    draw_results(out)
    for name in ("bakeoff-regret", "table-1", "figure-2", "figure-3"):
        (out / f"{name}.pdf").unlink()


if __name__ == "__main__":
    main()
