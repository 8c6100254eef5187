"""How a study is to be run: its policies and datasets, seeds, rounds and constants."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.environments import Classification
from rbmle.experiments.summary import Summary
from rbmle.experiments.trial import Trial
from rbmle.models.regression import Regression
from rbmle.studies.contender import Contender
from rbmle.studies.paper_policies import (
    GRIDS,
    POLICIES,
    PRINTED_GRID,
    RATES,
    as_printed,
    as_studied,
    at_rate,
    rates,
)
from rbmle.studies.published import DATASETS, HORIZONS
from rbmle.studies.tuned import GRID, Data, Tuned

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
                    name=self._named(name, policy),
                    key=self._named(name, policy)
                    if rate == RATES[0]
                    else f"{name} (rate {rate:g})",
                    dataset=dataset,
                    policy=policy if rate == RATES[0] else at_rate(policy, rate),
                    values=PRINTED_GRID if self.is_faithful else GRIDS.get(name, GRID),
                )
            )
            for dataset in datasets
            for name in POLICIES
            for policy in [self.policy(name, dataset)]
            for rate in rates(policy, self.preprocessing)
        ]

    def policy(self, name: str, dataset: str) -> Any:
        """Return a policy as the paper has it, with its tuned constant."""
        policy = self.tuned.policy(name, dataset, self.preprocessing)
        if self.is_faithful:
            return as_printed(policy, is_warm=self.is_warm)
        return as_studied(policy, self.preprocessing)

    def _named(self, name: str, policy: Any) -> str:
        """Return a policy's name, with the reading of the paper if that is not the literal one."""
        is_read_otherwise = self.is_warm and isinstance(policy.model, Regression)
        return f"{name} ({WARM})" if is_read_otherwise else name

    def _tuned_regret(self, contender: Contender) -> float:
        """Return the regret by which the constant of a contender was chosen; infinity if none was."""
        return self.tuned.regret(contender.key, self._data(contender.dataset))

    def _data(self, dataset: str) -> Data:
        """Return a dataset as constants know it."""
        return Data(preprocessing=self.preprocessing, name=dataset)
