"""What a study is: the policies and constants of the paper, a plan, and the trials that it makes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.datasets.user_file import title
from rbmle.environments import Classification, Environment
from rbmle.experiments.code import own_code, versions
from rbmle.experiments.report import write_report
from rbmle.experiments.summary import Summary, file_names
from rbmle.experiments.tables import PaperResults, ReportTable
from rbmle.experiments.trial import Trial
from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.network import Network
from rbmle.models.regression import Regression, Replay, printed_model
from rbmle.policies import POLICIES, LinRBMLE, NeuralRBMLEGA
from rbmle.policies.registry import parse_policy
from rbmle.policies.schedules import Power

GRID = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # the paper's, with the decades it leaves out
FIRST_SEED = 1000  # of tuning; reported seeds begin at 0
NO_PREPROCESSING = "none"  # of a synthetic problem
SHIPPED = Path(__file__).parent / "tuned.json"
FIELDS = ("bias", "exploration", "epsilon")  # how policies call the constant that is tuned


def constant_of(kind: type[Any]) -> str | None:
    """Return the setting of a policy that is tuned, or None if it has none of the usual ones."""
    names = [f.name for f in fields(kind)]
    return next((name for name in FIELDS if name in names), None)


CONSTANTS = {name: key for name, kind in POLICIES.items() if (key := constant_of(kind))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What a constant is tuned on."""

    preprocessing: str
    name: str
    file: str = ""  # of data that have no name in the registry

    @staticmethod
    def of(world: Environment) -> "Data":
        stated = world.settings
        return Data(
            preprocessing=str(stated.get("preprocessing") or NO_PREPROCESSING),
            name=str(stated["name"]),
            file=str(stated.get("file") or ""),
        )

    @property
    def names(self) -> list[str]:
        """Return the names by which a choice may know the data; of a file, the longest end first."""
        path = Path(self.file)
        parts = (*path.parent.parts, title(path)) if self.file else (self.name,)
        return ["/".join(parts[place:]).lstrip("/") for place in range(len(parts))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The constant of the smallest regret on a grid, and how it was found."""

    constant: float
    regrets: dict[str, float]  # by constant: the final regret, mean over seeds
    seeds: list[int]
    rounds: int
    versions: dict[str, str]
    setting: str = ""  # that was tuned; empty for the policy's usual one
    counts: dict[str, int] = field(default_factory=dict)  # of seeds, by constant

    @property
    def is_at_the_edge(self) -> bool:
        """Return whether a better constant may lie beyond the grid; nothing lies below 0, which is greedy."""
        constants = [float(constant) for constant in self.regrets]
        return self.constant != 0 and self.constant in (min(constants), max(constants))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """ν by (preprocessing, dataset, policy); a policy without an entry keeps its default."""

    choices: dict[str, Choice] = field(default_factory=dict)
    source: str = ""  # where they were read

    def policy(self, name: str, dataset: str, preprocessing: str) -> Any:
        """Return a policy with the constant that was chosen for a dataset."""
        data = Data(preprocessing=preprocessing, name=dataset)
        return parse_policy(name).policy(self.settings(name, data))

    def settings(self, name: str, data: Data) -> dict[str, float]:
        """Return the setting that was chosen for a policy on some data, and its value; none if nothing was."""
        choice = self._choice(name, data)
        return {} if choice is None else {choice.setting or CONSTANTS[name]: choice.constant}

    def constant(self, name: str, data: Data) -> float | None:
        """Return the constant that was chosen for a policy, or a contender of a study, on some data."""
        choice = self._choice(name, data)
        return None if choice is None else choice.constant

    def regret(self, name: str, data: Data) -> float:
        """Return the mean regret of what was chosen for a contender of a study; infinity if nothing was."""
        choice = self._choice(name, data)
        return float("inf") if choice is None else choice.regrets[f"{choice.constant:g}"]

    def check(self, data: Iterable[Data], policies: Iterable[str]) -> None:
        """Raise SettingError if nothing was tuned of what is asked for."""
        asked = [(name, place) for name in policies for place in data]
        if not any(self.settings(name, place) for name, place in asked):
            pairs = ", ".join(f"{name} on {place.name}" for name, place in dict.fromkeys(asked))
            raise SettingError(
                f"the constants {self.source} are none of {pairs}; tune those first, by rbmle tune"
            )

    def origin(self, data: Iterable[Data], policies: Iterable[str] = ()) -> str:
        """Return in a sentence where the constants for some data come from."""
        listed = list(dict.fromkeys(data))
        chosen = {place: self._on(place) for place in listed}
        choices = [choice for some in chosen.values() for choice in some]
        if not choices:
            return "Constants: the default of each policy, nothing is tuned."
        shown = file_names([place.file for place in listed if place.file])
        without = [shown.get(place.file, place.name) for place in listed if not chosen[place]]
        left = [
            f"{name} on {shown.get(place.file, place.name)}"
            for place in listed
            for name in dict.fromkeys(policies)
            if chosen[place] and self._choice(name, place) is None
        ]
        defaults = [f"; on {', '.join(without)} the default of each policy"] if without else []
        defaults += [f"; not tuned: {', '.join(left)}"] if left else []
        seeds = sorted({len(choice.seeds) for choice in choices})
        rounds = sorted({choice.rounds for choice in choices})
        return (
            f"Constants: {self.source}, chosen on {' or '.join(map(str, seeds))} unreported "
            f"seed{'s' * (seeds != [1])} and {' or '.join(f'{n:,}' for n in rounds)} rounds"
            f"{''.join(defaults)}."
        )

    def write(self, path: Path) -> None:
        lines = [
            f" {json.dumps(key)}: {json.dumps(asdict(choice))}"
            for key, choice in sorted(self.choices.items())
        ]
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")

    @staticmethod
    def read(path: Path) -> "Tuned":
        """Return the choices in a file that `write` wrote."""
        try:
            choices = {
                str(k): Choice(**choice) for k, choice in json.loads(path.read_text()).items()
            }
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SettingError(
                f"{path} has no tuned constants ({error}); give a file that rbmle tune wrote"
            ) from None
        return Tuned(choices=choices, source=f"from {path.name}")

    @staticmethod
    def shipped() -> "Tuned":
        return replace(Tuned.read(SHIPPED), source="as shipped with rbmle")

    def _choice(self, name: str, data: Data) -> Choice | None:
        keys = (choice_key(data.preprocessing, known, name) for known in data.names)
        return next((self.choices[key] for key in keys if key in self.choices), None)

    def _on(self, data: Data) -> list[Choice]:
        starts = tuple(choice_key(data.preprocessing, known, "") for known in data.names)
        return [
            choice for key, choice in self.choices.items() if key.rpartition("/")[0] + "/" in starts
        ]


def choice_key(preprocessing: str, dataset: str, policy: str) -> str:
    return f"{preprocessing or NO_PREPROCESSING}/{dataset}/{policy}"


DATASETS = ("adult", "covertype", "magic", "mnist", "mushroom", "shuttle")

# Rounds of a trial: "T = 15000 … except that we set T = 8000 in the experiments of Mushroom".
HORIZONS = dict.fromkeys(DATASETS, 15_000) | {"mushroom": 8_000}


def _by_dataset(*numbers: float) -> dict[str, float]:
    return dict(zip(DATASETS, numbers, strict=True))


# Mean of the final cumulative regret, 10 seeds.
TABLE_1 = {
    "neural-rbmle-ga": _by_dataset(3125.2, 4328.1, 3342.9, 1557.8, 313.1, 335.2),
    "neural-rbmle-pc": _by_dataset(3200.6, 4824.9, 3630.2, 2197.7, 580.4, 817.7),
    "neural-ucb": _by_dataset(3154.9, 4697.7, 3555.2, 2079.5, 583.8, 555.0),
    "neural-ts": _by_dataset(3179.0, 4813.3, 3567.1, 2585.7, 594.5, 577.7),
    "deep-fpl": _by_dataset(3174.9, 5207.3, 3559.2, 4473.0, 600.1, 1622.9),
    "bootstrapped-nn": _by_dataset(3351.4, 5265.3, 3929.7, 6437.1, 805.1, 1323.9),
    "lin-rbmle": _by_dataset(3121.9, 4929.8, 3885.0, 11851.9, 656.0, 3193.7),
}

# Standard deviation of the final cumulative regret; the paper does not say by which divisor.
TABLE_2 = {
    "neural-rbmle-ga": _by_dataset(28.05, 50.97, 32.91, 29.80, 19.60, 11.50),
    "neural-rbmle-pc": _by_dataset(115.96, 88.91, 137.96, 82.28, 57.91, 48.37),
    "neural-ucb": _by_dataset(42.21, 62.67, 97.44, 86.48, 40.74, 79.00),
    "neural-ts": _by_dataset(36.67, 87.34, 125.69, 179.94, 44.46, 75.92),
    "deep-fpl": _by_dataset(39.58, 536.48, 93.77, 1255.68, 43.25, 824.98),
    "bootstrapped-nn": _by_dataset(133.52, 126.23, 55.25, 630.02, 64.31, 311.51),
    "lin-rbmle": _by_dataset(24.97, 99.99, 27.20, 279.36, 20.23, 71.27),
}

# Seconds of a round on Covertype, and of them those that Z⁻¹ takes; None where there is no Z⁻¹.
TABLE_3: dict[str, dict[str, float | None]] = {
    "neural-rbmle-ga": {"t_step": 1.6688, "t_Z": None},
    "neural-ucb": {"t_step": 9.9027, "t_Z": 9.6974},
    "neural-ts": {"t_step": 9.7390, "t_Z": 9.5406},
}

OURS = "neural-rbmle-ga"  # the policy that the paper proposes
PAPER = PaperResults(source="paper", means=TABLE_1, stds=TABLE_2, horizons=HORIZONS, policy=OURS)


PAPER_POLICIES = tuple(TABLE_1)
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
RATES = (0.1, 0.4)  # η; with preprocessing `standard` it is chosen as ν is, the first elsewhere
# With the paper's J; it never forgets.
LEARNER = Regression(training=Replay(steps=100, rate=RATES[0]), alarm=0.0, is_standardised=False)
LEARNERS = {"paper": replace(LEARNER, network=Network(start="standard"), ridge=0.001)}
ASCENT = ArmAscent(steps=16, rate=0.25, reach=2.0)  # of GA with preprocessing `paper`


def as_studied(policy: Any, preprocessing: str) -> Any:
    """Return a policy with the learner, the index and the form of α(t) for which ν was tuned."""
    match policy:
        case LinRBMLE():
            policy = replace(policy, growth=Power(exponent=0.5))
        case NeuralRBMLEGA():
            policy = replace(policy, is_bounded=False, linear=None)
            if preprocessing == "paper":
                growth = Power(exponent=0.25)
                policy = replace(policy, growth=growth, is_scaled=False, ascent=ASCENT)
    if isinstance(policy.model, Regression):
        return replace(policy, model=LEARNERS.get(preprocessing, LEARNER))
    return replace(policy, model=replace(policy.model, alarm=0.0, is_standardised=False))


def as_printed(policy: Any, *, is_warm: bool = False) -> Any:
    """Return a policy with the learner of the paper, and α(t) = ν√t.

    Read literally, a network ascends ℓ_λ from θ₀ in each round; with `is_warm` it ascends ℓ_λ/t from θ̂.
    """
    if not isinstance(policy.model, Regression):
        model = replace(policy.model, alarm=0.0, is_standardised=False)
        return replace(policy, model=model, growth=Power(exponent=0.5))
    model = printed_model(objective="mean", warm=True) if is_warm else printed_model()
    policy = replace(policy, model=model)
    if isinstance(policy, NeuralRBMLEGA):
        return replace(policy, is_scaled=False, is_bounded=False, linear=None)
    return policy


def rates(policy: Any, preprocessing: str) -> tuple[float, ...]:
    """Return the rates that a policy is tuned with: several for a network that has a constant."""
    is_tuned = isinstance(policy.model, Regression) and constant_of(type(policy)) is not None
    return RATES if is_tuned and preprocessing == "standard" else RATES[:1]


def at_rate(policy: Any, rate: float) -> Any:
    """Return a policy whose network takes steps of another length."""
    training = replace(policy.model.training, rate=rate)
    return replace(policy, model=replace(policy.model, training=training))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A policy of a study; several may be of one class, each with a constant of its own."""

    name: str  # in tables and figures
    key: str  # in tuned.json
    dataset: str
    policy: Any
    values: tuple[float, ...] = GRID  # that the constant is tuned on

    @property
    def constant(self) -> str | None:
        return constant_of(type(self.policy))

    def with_constant(self, value: float) -> "Contender":
        assert self.constant is not None
        return replace(self, policy=replace(self.policy, **{self.constant: value}))


PAIRED = "paired"  # the preprocessing of policies as printed
WARM = "warm"  # how networks are named that ascend ℓ_λ/t from θ̂
SEEDS = 10
QUICK_DATASETS = ("adult", "magic", "mushroom", "shuttle")  # those that ship with the package
QUICK_SEEDS, QUICK_ROUNDS = 2, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a study is to be run."""

    quick: bool = False  # fewer seeds and rounds, from shipped data
    preprocessing: str = "standard"
    data_dir: Path | None = None
    tuned: Tuned = field(default_factory=Tuned.shipped)
    is_faithful: bool = False  # policies as printed, see `printed_model`
    is_warm: bool = False  # printed networks ascend ℓ_λ/t from θ̂, not ℓ_λ from θ₀
    policies: str = ""  # with commas between; empty: all of the study
    only: tuple[str, ...] = ()  # datasets; none: all of the study
    count: int = 0  # seeds; 0: as many as usual
    rounds: int = 0  # of a trial, at most; 0: as many as usual

    @property
    def datasets(self) -> tuple[str, ...]:
        return QUICK_DATASETS if self.quick else DATASETS

    @property
    def seeds(self) -> range:
        return range(self.count or (QUICK_SEEDS if self.quick else SEEDS))

    def horizon(self, dataset: str) -> int:
        usual = QUICK_ROUNDS if self.quick else HORIZONS[dataset]
        return min(self.rounds or usual, usual)

    def available(self, datasets: tuple[str, ...]) -> tuple[str, ...]:
        """Return some datasets; if quick, digits instead of MNIST, and no Covertype, which do not ship."""
        if not self.quick:
            return datasets
        return tuple(
            "digits" if name == "mnist" else name for name in datasets if name != "covertype"
        )

    def world(self, dataset: str) -> Classification:
        return Classification(
            dataset=dataset, preprocessing=self.preprocessing, data_dir=self.data_dir
        )

    def select(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those of the policies and datasets that were asked for, or raise SettingError."""
        names = [name.strip() for name in self.policies.split(",") if name.strip()]
        for wanted, known in (
            (names, [name for contender in contenders for name in (contender.name, contender.key)]),
            (self.only, [contender.dataset for contender in contenders]),
        ):
            if strange := [name for name in wanted if name not in known]:
                listed = ", ".join(dict.fromkeys(known))
                raise SettingError(f"this study has no {strange[0]!r}; it has {listed}")
        return [
            contender
            for contender in contenders
            if not (names and {contender.name, contender.key}.isdisjoint(names))
            and contender.dataset in (self.only or [contender.dataset])
        ]

    def apply_tuning(self, contender: Contender) -> Contender:
        """Return a contender with the constant that was chosen for it; without one it is as it was."""
        value = self.tuned.constant(contender.key, self._data(contender.dataset))
        return contender if value is None else contender.with_constant(value)

    def trials(self, contenders: Sequence[Contender]) -> list[Trial]:
        return [
            Trial(
                policy=contender.policy,
                name=contender.name,
                environment=self.world(contender.dataset),
                horizon=self.horizon(contender.dataset),
                seed=seed,
            )
            for contender in self.select(contenders)
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

    def tuned_contenders(self, datasets: tuple[str, ...]) -> list[Contender]:
        """Return all seven policies on some datasets, each with the constant and the rate that were chosen."""
        by_policy: dict[tuple[str, str], list[Contender]] = {}
        for contender in self.candidates(datasets):
            by_policy.setdefault((contender.dataset, contender.name), []).append(contender)
        return [min(rated, key=self._tuned_regret) for rated in by_policy.values()]

    def candidates(self, datasets: tuple[str, ...]) -> list[Contender]:
        """Return the same with every rate that they are tuned with, and the constant that was chosen for it."""
        return [
            self.apply_tuning(
                Contender(
                    name=self._contender_name(name, policy),
                    key=self._contender_name(name, policy)
                    if rate == RATES[0]
                    else f"{name} (rate {rate:g})",
                    dataset=dataset,
                    policy=policy if rate == RATES[0] else at_rate(policy, rate),
                    values=PRINTED_GRID if self.is_faithful else GRIDS.get(name, GRID),
                )
            )
            for dataset in datasets
            for name in PAPER_POLICIES
            for policy in [self.policy(name, dataset)]
            for rate in rates(policy, self.preprocessing)
        ]

    def policy(self, name: str, dataset: str) -> Any:
        """Return a policy as the paper has it, with its tuned constant."""
        policy = self.tuned.policy(name, dataset, self.preprocessing)
        if self.is_faithful:
            return as_printed(policy, is_warm=self.is_warm)
        return as_studied(policy, self.preprocessing)

    def _contender_name(self, name: str, policy: Any) -> str:
        """Return a policy's name, with the reading of the paper if that is not the literal one."""
        is_read_otherwise = self.is_warm and isinstance(policy.model, Regression)
        return f"{name} ({WARM})" if is_read_otherwise else name

    def _tuned_regret(self, contender: Contender) -> float:
        return self.tuned.regret(contender.key, self._data(contender.dataset))

    def _data(self, dataset: str) -> Data:
        return Data(preprocessing=self.preprocessing, name=dataset)


def paper_page(summary: Summary, path: Path, title: str, note: str) -> None:
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
    # Writes the results by seed with a note, if that is not the regret of each trial.
    write_seeds: Callable[[Summary, Path, str], Path] | None = None
    is_of_the_paper: bool = True  # the others have a folder of their own, and are not among `all`
    is_narrowed: bool = False  # takes --dataset and --rounds, as those of the paper do
    contenders: Callable[[Plan], list[Contender]] | None = None  # to tune; None: there is nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A study that has no trials of policies, and measures for itself."""

    title: str
    # Measures, quickly if the first is True, writes files, and returns them.
    write: Callable[[bool, Path, Console], list[Path]]


def add_note(table: ReportTable, note: str) -> ReportTable:
    return replace(table, caption=f"{table.caption} {note}")


MEASURED_FOLDERS = ("classical", "control")  # folders that studies measure, and no trial plays
JSONRecord = dict[str, Any]  # JSON
ENDING = "-seeds.json"  # of results by seed


def load_or_measure(
    folder: Path, settings: JSONRecord, measure: Callable[[], JSONRecord]
) -> JSONRecord:
    """Return what the folder has for these settings, versions and code; measure it if there is nothing."""
    content = {
        "settings": settings,
        "versions": versions(),
        "code": own_code(*MEASURED_FOLDERS).settings,
    }
    text = json.dumps(content, sort_keys=True)
    path = folder / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json"
    try:
        return dict(json.loads(path.read_text())["measured"])
    except (OSError, ValueError, KeyError, TypeError):  # missing or damaged
        measured = measure()
    write_text(path, json.dumps(content | {"measured": measured}, indent=1) + "\n")
    return measured


def write_results(path: Path, head: JSONRecord, lists: dict[str, list[Any]]) -> Path:
    """Write results as JSON: first what they are, then lists with one entry a line."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, entries in lists.items():
        inner = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        lines.append(f" {json.dumps(key)}: [\n{inner}\n ]")
    return write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
