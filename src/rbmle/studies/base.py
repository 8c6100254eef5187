"""What a study is: the trials of one table or figure, and how they are shown."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rbmle.environments import Classification
from rbmle.experiments.report import write_report
from rbmle.experiments.report_table import ReportTable
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.models.regression import Regression
from rbmle.models.training import Replay
from rbmle.policies.schedules import Power
from rbmle.studies.published import DATASETS, HORIZONS, PAPER
from rbmle.studies.tuned import Data, Tuned

POLICIES = (
    "neural-rbmle-ga",
    "neural-rbmle-pc",
    "neural-ucb",
    "neural-ts",
    "deep-fpl",
    "bootstrapped-nn",
    "lin-rbmle",
)
SEEDS = 10
QUICK_DATASETS = ("adult", "magic", "mushroom", "shuttle")  # those that ship with the package
QUICK_SEEDS, QUICK_ROUNDS = 2, 1000
TRAINING = Replay(steps=100, rate=0.1)  # the paper's J, and the rate for which constants were tuned


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a study is to be run."""

    quick: bool = False  # fewer seeds and rounds, from shipped data
    preprocessing: str = "standard"
    data_dir: Path | None = None
    tuned: Tuned = field(default_factory=Tuned.shipped)
    policies: str = ""  # of the bake-off, with commas between; empty: all, and their rivals
    count: int = 0  # seeds of the bake-off; 0: as many as usual

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the datasets of the paper, or those that ship."""
        return QUICK_DATASETS if self.quick else DATASETS

    @property
    def seeds(self) -> range:
        """Return the seeds that are reported."""
        return range(QUICK_SEEDS if self.quick else SEEDS)

    def horizon(self, dataset: str) -> int:
        """Return the rounds of a trial."""
        return QUICK_ROUNDS if self.quick else HORIZONS[dataset]

    def image(self) -> str:
        """Return MNIST, or in its place the digits that ship."""
        return "digits" if self.quick else "mnist"

    def trial(self, policy: Any, name: str, dataset: str, seed: int) -> Trial:
        """Return the trial of a policy on a dataset."""
        world = Classification(
            dataset=dataset, preprocessing=self.preprocessing, data_dir=self.data_dir
        )
        horizon = self.horizon(dataset)
        return Trial(policy=policy, name=name, environment=world, horizon=horizon, seed=seed)

    def note(self, summary: Summary) -> str:
        """Return how much was played, and where the constants come from."""
        rounds = sorted({problem.horizon for problem in summary.problems})
        data = [
            Data(preprocessing=self.preprocessing, name=problem.dataset)
            for problem in summary.problems
        ]
        return (
            f"{len(self.seeds)} seeds, {' or '.join(f'{n:,}' for n in rounds)} rounds. "
            f"{self.tuned.origin(data)}"
        )

    def compared(self, datasets: tuple[str, ...]) -> list[Trial]:
        """Return the trials of all seven policies on some datasets, each with its tuned constant."""
        return [
            self.trial(self.policy(name, dataset), name, dataset, seed)
            for dataset in datasets
            for name in POLICIES
            for seed in self.seeds
        ]

    def policy(self, name: str, dataset: str) -> Any:
        """Return a policy as the paper has it, with its tuned constant: J is 100, and it never forgets."""
        policy = self.tuned.policy(name, dataset, self.preprocessing)
        match name:  # the form of α(t) for which ν was tuned
            case "lin-rbmle":
                policy = replace(policy, growth=Power(exponent=0.5))
            case "neural-rbmle-ga" if self.preprocessing == "paper":
                policy = replace(policy, growth=Power(exponent=0.25), is_scaled=False)
        model = replace(policy.model, alarm=0.0)
        if isinstance(model, Regression):
            model = replace(model, training=TRAINING)
        return replace(policy, model=model)


def paper_page(summary: Summary, path: Path, title: str, note: str) -> None:
    """Write a report with the published numbers beside ours."""
    write_report(summary, path, published=PAPER, title=title, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One table or figure, of the paper or of our own."""

    name: str
    title: str
    trials: Callable[[Plan], list[Trial]]
    render: Callable[[Summary, Path, str], list[Path]]  # writes files with a note, and returns them
    page: Callable[[Summary, Path, str, str], None] = paper_page  # with a title and a note
    note: Callable[[Plan, Summary], str] = Plan.note
    skipped: Callable[[Plan], list[str]] = lambda _: []  # a line for all that cannot be played
    is_of_the_paper: bool = True  # the others have a folder of their own, and are not among `all`


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A study that has no trials of policies, and measures for itself."""

    title: str
    # Measures, quickly if the first is True, writes files, and returns them.
    write: Callable[[bool, Path, Console], list[Path]]


def noted(table: ReportTable, note: str) -> ReportTable:
    """Return a table with a note at the end of its caption."""
    return replace(table, caption=f"{table.caption} {note}")
