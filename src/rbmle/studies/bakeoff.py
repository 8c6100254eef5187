"""The bake-off: all policies and their rivals, at their defaults, on as many problems as there are.

After Bietti, Agarwal and Langford (2021), "A contextual bandit bake-off".
"""

from functools import cache, partial
from pathlib import Path

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.datasets import DatasetError
from rbmle.environments import Classification, Environment, alter
from rbmle.experiments.figures import dot_figure, measured_panel
from rbmle.experiments.measures import measure
from rbmle.experiments.report import write_comparison
from rbmle.experiments.summary import Summary
from rbmle.experiments.tables import (
    comparison_table,
    is_compared,
    latex,
    loss_table,
    markdown,
    pairs_table,
)
from rbmle.experiments.trial import Trial
from rbmle.policies import POLICIES, REFERENCES
from rbmle.policies.registry import RIVALS, Specification, parse_policies, parse_policy
from rbmle.studies.base import OURS, Plan, Study, add_note

_PMLB = """
banana cmc coil2000 connect-4 dna fars flare german kddcup led24 led7 letter mfeat-factors
mfeat-morphological mfeat-zernike mofn-3-7-10 page-blocks pendigits ring satimage segmentation
splice tic-tac-toe titanic vehicle waveform-21 waveform-40 wine-quality-red wine-quality-white
xd6
"""
PMLB = tuple(_PMLB.split())
SHIPPED = ("digits", "adult", "magic", "mushroom", "shuttle")
DATASETS = (*SHIPPED, "covertype", "mnist", *(f"pmlb:{name}" for name in PMLB))
VARIANTS: tuple[tuple[str, ...], ...] = ((), ("noise",), ("rare",))
QUADRATIC = "interactions=quadratic"
LEFT_OUT = ("mabwiser:linucb",)  # the linear policies of rbmle stand for it
SLOW_RIVAL, MOST_FEATURES = (
    "vw:cover",
    300,
)  # with products of more features, a round takes 34 to 221 ms
ROUNDS, SEEDS = 3000, 2
QUICK_ROUNDS, QUICK_SEEDS = 150, 1


def trials(plan: Plan) -> list[Trial]:
    """Return all rivals on all problems that are there, those of a dataset together."""
    specs = parse_policies(plan.policies)[0] if plan.policies else rivals()[0]
    problems, _ = worlds(plan.quick, plan.preprocessing, plan.data_dir)
    rounds, usual = (QUICK_ROUNDS, QUICK_SEEDS) if plan.quick else (ROUNDS, SEEDS)
    return [
        Trial(
            policy=spec.policy(),
            name=f"{spec.name} (quadratic)" if _is_quadratic(spec) else spec.name,
            environment=world,
            horizon=min(rounds, world.rows or rounds),
            seed=seed,
        )
        for world in problems
        for spec in specs
        if not (spec.name == SLOW_RIVAL and _is_quadratic(spec) and world.features > MOST_FEATURES)
        for seed in range(plan.count or usual)
    ]


def skipped(plan: Plan) -> list[str]:
    """Return a line for each rival and each dataset that is not there."""
    absent = [] if plan.policies else rivals()[1]
    return [*absent, *worlds(plan.quick, plan.preprocessing, plan.data_dir)[1]]


@cache
def rivals() -> tuple[list[Specification], list[str]]:
    """Return the policies that can be played, and a line for each that cannot."""
    products = [f"{name}:{QUADRATIC}" for name in RIVALS if name.startswith("vw:")]
    policies, notes = [parse_policy(name) for name in POLICIES if name not in REFERENCES], []
    for text in (*(name for name in RIVALS if name not in LEFT_OUT), *products):
        try:
            policies.append(parse_policy(text))
        except SettingError as error:
            notes.append(f"Skipped {text}: {error}.")
    return policies, notes


@cache
def worlds(
    is_quick: bool, preprocessing: str, data_dir: Path | None
) -> tuple[list[Environment], list[str]]:
    """Return the problems whose data can be had, and a line for each dataset that cannot."""
    problems: list[Environment] = []
    notes = []
    for name in SHIPPED if is_quick else DATASETS:
        world = Classification(dataset=name, preprocessing=preprocessing, data_dir=data_dir)
        try:
            world.rows  # noqa: B018  # the data are read
        except DatasetError as error:
            notes.append(f"Skipped {name}: {error}.")
        else:
            problems += [alter(world, changes) for changes in VARIANTS]
    return problems, notes


def _is_quadratic(spec: Specification) -> bool:
    return spec.settings == (QUADRATIC,)


def note(plan: Plan, summary: Summary) -> str:
    seeds = sorted({seed for cell in summary.cells for seed in cell.seeds})
    rounds = sorted({problem.horizon for problem in summary.problems})
    span = f"{rounds[0]:,} to {rounds[-1]:,}" if len(rounds) > 1 else f"{rounds[0]:,}"
    return (
        f"{summary.runs:,} trials on {len(summary.problems)} problems, seeds "
        f"{', '.join(map(str, seeds))}, {span} rounds, "
        f"{'settings as given' if plan.policies else 'the default settings of every policy'}."
    )


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Write all tables in Markdown, the first in LaTeX too, and the picture."""
    measures = measure(summary)
    if not is_compared(measures):
        return []
    table = add_note(comparison_table(measures), note)
    return [
        write_text(out / "bakeoff.md", markdown(table)),
        write_text(out / "bakeoff.tex", latex(table)),
        write_text(out / "bakeoff-pairs.md", markdown(pairs_table(measures))),
        write_text(out / "bakeoff-losses.md", markdown(loss_table(measures, summary))),
        *dot_figure([measured_panel(measures)], out / "bakeoff-regret"),
    ]


BAKEOFF = Study(
    name="bakeoff",
    title="Policies and rivals on many problems",
    trials=trials,
    render=render,
    is_of_the_paper=False,
    skipped=skipped,
    note=note,
    page=partial(write_comparison, policy=OURS),
)
