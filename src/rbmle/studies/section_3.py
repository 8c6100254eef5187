"""Section 3: maximum likelihood alone stays with a wrong parameter; how fast the bias must grow to cure that.

Where 0.02 is true, the bias must grow to be believed again after bad luck; where 0.01 is true, what is hoped
for is wrong, and the bias must grow slowly to be given up.
"""

from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from rbmle.control import FiniteCE, FiniteRBMLE, closed_loop, simulate
from rbmle.core.files import write_text
from rbmle.experiments.figures import Line, Panel, line_panels
from rbmle.experiments.styles import BLUE, LONG, VERMILION, Style
from rbmle.experiments.tables import Entry, ReportTable, markdown
from rbmle.policies.schedules import Logarithm, Power, Schedule
from rbmle.studies.base import JSONRecord, load_or_measure

NAME, TITLE = (
    "section-3",
    "Closed-loop identification, and how fast α(t) must grow",
)
SEEDS, QUICK_SEEDS = 200, 50
STEPS, QUICK_STEPS = 1_000_000, 100_000
TRUTHS = {0.02: "the best there is", 0.01: "less than hoped for"}
SHOWN = (1, 1_000, 100_000, 1_000_000)  # t of the table
POINTS = 120  # of a line
RANGE = (-4.0, 104.0)  # percent, so that lines at 0 and 100 are seen

GROWTHS: dict[str, Schedule] = {
    "RBMLE, α(t) = 1 + log t": Logarithm(),
    "RBMLE, α(t) = √t": Power(exponent=0.5),
    "RBMLE, α(t) = t": Power(exponent=1.0),  # not o(t): too fast
}
PLAIN = "certainty equivalence"
LEARNERS = (PLAIN, *GROWTHS)
STYLES = {
    0.02: Style(colour=VERMILION, width=2.6),
    0.01: Style(colour=BLUE, dashes=LONG, width=2.0),
}  # by the true θ

Records = dict[tuple[float, str], JSONRecord]  # by the true θ and the title of the learner


def write_table(quick: bool, out: Path, console: Console) -> list[Path]:
    """Play what the folder lacks, write the table in Markdown and the figure, and return the files."""
    seeds, steps = (QUICK_SEEDS, QUICK_STEPS) if quick else (SEEDS, STEPS)
    records: Records = {}
    for truth in TRUTHS:
        for title in LEARNERS:
            settings = {"truth": truth, "learner": title, "seeds": seeds, "steps": steps}
            measure = partial(play, truth, title, seeds, steps)
            records[truth, title] = load_or_measure(out / NAME / "runs", settings, measure)
    return [
        write_text(out / NAME / f"{NAME}.md", markdown(share_table(records, seeds, steps))),
        *line_panels([panel(records, title) for title in LEARNERS], out / NAME / NAME, per_row=4),
    ]


def learner_of(title: str) -> FiniteCE | FiniteRBMLE:
    family = closed_loop()
    if title == PLAIN:
        return FiniteCE(family=family)
    return FiniteRBMLE(family=family, growth=GROWTHS[title])


def play(truth: float, title: str, seeds: int, steps: int) -> JSONRecord:
    """Return the share of seeds whose estimate at t is right, and the mean regret before t."""
    even = np.geomspace(1, steps, POINTS).round().astype(np.int64)
    times = np.unique([*even, *(t for t in SHOWN if t <= steps)])
    learner = learner_of(title)
    mdp, before = learner.family.mdp(truth), (times - 1).tolist()
    runs = [simulate(mdp, learner, before, seed, ask=learner.estimate) for seed in range(seeds)]
    return {
        "times": times.tolist(),
        "shares": np.mean([np.array(run.answers) == truth for run in runs], axis=0).tolist(),
        "regrets": np.mean([run.regrets for run in runs], axis=0).tolist(),
    }


def share_table(records: Records, seeds: int, steps: int) -> ReportTable:
    """Return the share of right estimates, in percent, and the regret at the end."""
    shown = [t for t in SHOWN if t <= steps]

    def entries(record: JSONRecord) -> tuple[Entry, ...]:
        shares = [100 * record["shares"][record["times"].index(t)] for t in shown]
        texts = [f"{share:.1f}" for share in shares] + [f"{record['regrets'][-1]:,.0f}"]
        return tuple(Entry(text=text) for text in texts)

    return ReportTable(
        caption=(
            f"Percent of {seeds} seeds whose estimate at t is the true θ, and mean regret after {steps:,} "
            f"steps. A share has a standard error of at most {100 * 0.5 / seeds**0.5:.1f} percent."
        ),
        corner="True θ, and learner",
        columns=(*(f"t = {t:,}" for t in shown), "regret"),
        rows=tuple(
            (f"{truth}: {title}", entries(record)) for (truth, title), record in records.items()
        ),
    )


def panel(records: Records, title: str) -> Panel:
    """Return the shares over time of one learner, a line for each true parameter."""
    family = closed_loop()
    gains = dict(zip(family.parameters, family.gains, strict=True))
    return Panel(
        title=title.removeprefix("RBMLE, "),
        x_label="t",
        y_label="right estimates, % of seeds" if title == LEARNERS[0] else "",
        lines=tuple(
            Line(
                label=f"true θ = {truth:g}: J* = {gains[truth]:g}, {meaning}",
                style=STYLES[truth],
                x=np.array(records[truth, title]["times"], np.float64),
                y=100 * np.array(records[truth, title]["shares"]),
            )
            for truth, meaning in TRUTHS.items()
        ),
        y=RANGE,
    )
