"""What a study is: the trials of one table or figure, and how they are shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rbmle.core.errors import SettingError
from rbmle.environments import Classification
from rbmle.experiments.report import write_report
from rbmle.experiments.report_table import ReportTable
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.network import Network
from rbmle.models.printed import printed_model
from rbmle.models.regression import Regression
from rbmle.models.training import Replay
from rbmle.policies import NeuralRBMLEGA
from rbmle.policies.schedules import Power
from rbmle.studies.contender import Contender
from rbmle.studies.published import DATASETS, HORIZONS, PAPER
from rbmle.studies.tuned import GRID, Data, Tuned, constant_of

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
# Of ν, around what was best for each policy, down to greedy play; the others have GRID.
GRIDS = {
    "neural-rbmle-ga": (0.1, 0.03, 0.01, 0.0),
    "neural-rbmle-pc": (1e-3, 1e-4, 1e-5, 0.0),
    "neural-ucb": (0.1, 0.03, 0.01, 0.0),
    "neural-ts": (0.1, 0.03, 0.01, 0.0),
    "deep-fpl": (1.0, 0.1, 0.01, 0.0),
    "lin-rbmle": (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0),  # as many as ν and η of a network
}
PRINTED_GRID = (1.0, 1e-1, 1e-3, 1e-5)  # of ν, in the appendix
PAIRED = "paired"  # the preprocessing of policies as printed
RATES = (0.1, 0.4)  # η; with preprocessing `standard` it is chosen as ν is, the first elsewhere
TRAINING = Replay(steps=100, rate=RATES[0])  # with the paper's J
# By preprocessing, the learner for which constants were tuned; it never forgets.
LEARNER = Regression(training=TRAINING, alarm=0.0)
LEARNERS = {"paper": replace(LEARNER, network=Network(start="standard"), ridge=0.001)}
ASCENT = ArmAscent(steps=16, rate=0.25, reach=2.0)  # of GA with preprocessing `paper`


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a study is to be run."""

    quick: bool = False  # fewer seeds and rounds, from shipped data
    preprocessing: str = "standard"
    data_dir: Path | None = None
    tuned: Tuned = field(default_factory=Tuned.shipped)
    is_faithful: bool = False  # policies as printed, see `printed_model`
    policies: str = ""  # with commas between; empty: all of the study
    only: tuple[str, ...] = ()  # datasets; none: all of the study
    count: int = 0  # seeds; 0: as many as usual
    rounds: int = 0  # of a trial, at most; 0: as many as usual

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the datasets of the paper, or those that ship."""
        return QUICK_DATASETS if self.quick else DATASETS

    @property
    def seeds(self) -> range:
        """Return the seeds that are reported."""
        return range(self.count or (QUICK_SEEDS if self.quick else SEEDS))

    def horizon(self, dataset: str) -> int:
        """Return the rounds of a trial."""
        usual = QUICK_ROUNDS if self.quick else HORIZONS[dataset]
        return min(self.rounds or usual, usual)

    def image(self) -> str:
        """Return MNIST, or in its place the digits that ship."""
        return "digits" if self.quick else "mnist"

    def world(self, dataset: str) -> Classification:
        """Return the problem of a dataset."""
        return Classification(
            dataset=dataset, preprocessing=self.preprocessing, data_dir=self.data_dir
        )

    def chosen(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those of the policies and datasets that were asked for, or raise SettingError."""
        names = [name.strip() for name in self.policies.split(",") if name.strip()]
        for given, known in (
            (names, [name for each in contenders for name in (each.name, each.key)]),
            (self.only, [each.dataset for each in contenders]),
        ):
            if strange := [name for name in given if name not in known]:
                listed = ", ".join(dict.fromkeys(known))
                raise SettingError(f"this study has no {strange[0]!r}; it has {listed}")
        return [
            each
            for each in contenders
            if not (names and {each.name, each.key}.isdisjoint(names))
            and each.dataset in (self.only or [each.dataset])
        ]

    def tuned_to(self, contender: Contender) -> Contender:
        """Return a contender with the constant that was chosen for it; without one it is as it was."""
        value = self.tuned.constant(contender.key, self._data(contender.dataset))
        return contender if value is None else contender.with_constant(value)

    def trials(self, contenders: Sequence[Contender]) -> list[Trial]:
        """Return the trials of what was asked for, one for each seed."""
        return [
            Trial(
                policy=each.policy,
                name=each.name,
                environment=self.world(each.dataset),
                horizon=self.horizon(each.dataset),
                seed=seed,
            )
            for each in self.chosen(contenders)
            for seed in self.seeds
        ]

    def note(self, summary: Summary) -> str:
        """Return how much was played, and where the constants come from."""
        rounds = sorted({problem.horizon for problem in summary.problems})
        data = [self._data(problem.dataset) for problem in summary.problems]
        return (
            f"{len(self.seeds)} seeds, {' or '.join(f'{n:,}' for n in rounds)} rounds. "
            f"{self.tuned.origin(data)}"
        )

    def compared(self, datasets: tuple[str, ...]) -> list[Contender]:
        """Return all seven policies on some datasets, each with the constant and the rate that were chosen."""
        by_policy: dict[tuple[str, str], list[Contender]] = {}
        for each in self.tried(datasets):
            by_policy.setdefault((each.dataset, each.name), []).append(each)
        return [min(rated, key=self._tuned_regret) for rated in by_policy.values()]

    def tried(self, datasets: tuple[str, ...]) -> list[Contender]:
        """Return the same with every rate that they are tuned with, and the constant that was chosen for it."""
        return [
            self.tuned_to(
                Contender(
                    name=name,
                    key=name if rate == RATES[0] else f"{name} (rate {rate:g})",
                    dataset=dataset,
                    policy=policy if rate == RATES[0] else _at_rate(policy, rate),
                    values=PRINTED_GRID if self.is_faithful else GRIDS.get(name, GRID),
                )
            )
            for dataset in datasets
            for name in POLICIES
            for policy in [self.policy(name, dataset)]
            for rate in self._rates(policy)
        ]

    def _rates(self, policy: Any) -> tuple[float, ...]:
        """Return the rates that a policy is tuned with: several for a network that has a constant."""
        is_tuned = isinstance(policy.model, Regression) and constant_of(type(policy)) is not None
        return RATES if is_tuned and self.preprocessing == "standard" else RATES[:1]

    def _tuned_regret(self, contender: Contender) -> float:
        """Return the regret by which the constant of a contender was chosen; infinity if none was."""
        return self.tuned.regret(contender.key, self._data(contender.dataset))

    def _data(self, dataset: str) -> Data:
        """Return a dataset as constants know it."""
        return Data(preprocessing=self.preprocessing, name=dataset)

    def policy(self, name: str, dataset: str) -> Any:
        """Return a policy as the paper has it, with its tuned constant: J is 100, and it never forgets."""
        policy = self.tuned.policy(name, dataset, self.preprocessing)
        if self.is_faithful:
            return _as_printed(policy)
        match name:  # the index and the form of α(t) for which ν was tuned
            case "lin-rbmle":
                policy = replace(policy, growth=Power(exponent=0.5))
            case "neural-rbmle-ga":
                policy = replace(policy, is_bounded=False)
                if self.preprocessing == "paper":
                    growth = Power(exponent=0.25)
                    policy = replace(policy, growth=growth, is_scaled=False, ascent=ASCENT)
        if isinstance(policy.model, Regression):
            return replace(policy, model=LEARNERS.get(self.preprocessing, LEARNER))
        return replace(policy, model=replace(policy.model, alarm=0.0))


def _at_rate(policy: Any, rate: float) -> Any:
    """Return a policy whose network takes steps of another length."""
    training = replace(policy.model.training, rate=rate)
    return replace(policy, model=replace(policy.model, training=training))


def _as_printed(policy: Any) -> Any:
    """Return a policy with the learner of the paper, and α(t) = ν√t."""
    if not isinstance(policy.model, Regression):
        model = replace(policy.model, alarm=0.0)
        return replace(policy, model=model, growth=Power(exponent=0.5))
    policy = replace(policy, model=printed_model())
    if isinstance(policy, NeuralRBMLEGA):
        return replace(policy, is_scaled=False, is_bounded=False)
    return policy


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
    contenders: Callable[[Plan], list[Contender]] | None = None  # to tune; None: there is nothing


def paper_study(
    name: str,
    title: str,
    contenders: Callable[[Plan], list[Contender]],
    render: Callable[[Summary, Path, str], list[Path]],
    tried: Callable[[Plan], list[Contender]] | None = None,
) -> Study:
    """Return a study of the paper, whose trials are those of its contenders; they, or `tried`, can be tuned."""
    return Study(
        name=name,
        title=title,
        trials=lambda plan: plan.trials(contenders(plan)),
        render=render,
        contenders=tried or contenders,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A study that has no trials of policies, and measures for itself."""

    title: str
    # Measures, quickly if the first is True, writes files, and returns them.
    write: Callable[[bool, Path, Console], list[Path]]


def noted(table: ReportTable, note: str) -> ReportTable:
    """Return a table with a note at the end of its caption."""
    return replace(table, caption=f"{table.caption} {note}")
