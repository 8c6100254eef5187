"""Runs, summarised: for each problem and policy the mean and the deviation over its runs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.experiments.trial import Run

POINTS = 300  # of a curve that is drawn
SHORT = 12  # characters of a detail in a title: enough of a digest to tell it from another

# How names are shown; the order is that of the paper's tables.
POLICY_TITLES = {
    "neural-rbmle-ga": "NeuralRBMLE-GA",
    "neural-rbmle-pc": "NeuralRBMLE-PC",
    "neural-ucb": "NeuralUCB",
    "neural-ts": "NeuralTS",
    "deep-fpl": "DeepFPL",
    "bootstrapped-nn": "BootstrappedNN",
    "lin-rbmle": "LinRBMLE",
    "lin-ucb": "LinUCB",
    "lin-ts": "LinTS",
    "epsilon-greedy": "EpsilonGreedy",
    "uniform": "Uniform",
}
DATASET_TITLES = {
    "adult": "Adult",
    "covertype": "Covertype",
    "magic": "MagicTelescope",
    "mnist": "MNIST",
    "mushroom": "Mushroom",
    "shuttle": "Shuttle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What runs must share to be averaged."""

    dataset: str
    preprocessing: str  # empty if the environment states none
    horizon: int
    details: tuple[tuple[str, str], ...] = ()  # what else the environment states, by name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Cumulative regret after some of the rounds; std is None if there is one run only."""

    rounds: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    std: Float[np.ndarray, " points"] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """A policy on a problem: what its runs have in the mean, and how far they differ."""

    problem: Problem
    policy: str
    seeds: tuple[int, ...]  # one for each run
    settings: tuple[str, ...]  # the different ones; more than one should not be averaged
    versions: tuple[dict[str, str], ...]  # the different ones
    cpu_seconds: float  # of a run, in the mean
    whole: Curve  # after every round

    @property
    def curve(self) -> Curve:
        """Return the curve at no more than 300 rounds, the first and the last among them."""
        horizon = self.problem.horizon
        kept = np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(int))
        std = None if self.whole.std is None else self.whole.std[kept]
        return Curve(rounds=self.whole.rounds[kept], mean=self.whole.mean[kept], std=std)

    @property
    def mean(self) -> float:
        """Return the mean of the final regret."""
        return float(self.whole.mean[-1])

    @property
    def std(self) -> float | None:
        """Return the deviation of the final regret with divisor n − 1; None for one run."""
        return None if self.whole.std is None else float(self.whole.std[-1])

    def at(self, rounds: int) -> tuple[float, float | None]:
        """Return mean and deviation of the regret after some rounds."""
        if not 1 <= rounds <= self.problem.horizon:
            raise ValueError(
                f"{self.policy} on {self.problem.dataset} was played for {self.problem.horizon} "
                f"rounds; its regret after {rounds} is not known, ask for one from 1 on"
            )
        std = self.whole.std
        return float(self.whole.mean[rounds - 1]), None if std is None else float(std[rounds - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Cells, those of a problem together, policies in the paper's order."""

    cells: tuple[Cell, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems: datasets in the paper's order, then others by name."""
        return tuple(dict.fromkeys(cell.problem for cell in self.cells))

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies in the paper's order, then others by name."""
        return tuple(sorted({cell.policy for cell in self.cells}, key=_policy_place))

    @property
    def runs(self) -> int:
        """Return how many runs are summarised."""
        return sum(len(cell.seeds) for cell in self.cells)

    def cell(self, problem: Problem, policy: str) -> Cell | None:
        """Return the cell of a policy on a problem; None if it has no run."""
        for cell in self.cells:
            if (cell.problem, cell.policy) == (problem, policy):
                return cell
        return None

    def title(self, problem: Problem) -> str:
        """Return the dataset's title, with what tells it from other problems on that dataset."""
        same = [other for other in self.problems if other.dataset == problem.dataset]
        apart = []
        if len({other.preprocessing for other in same}) > 1:
            apart.append(problem.preprocessing or "no preprocessing stated")
        if len({other.horizon for other in same}) > 1:
            apart.append(f"T = {problem.horizon:,}")
        alike = (problem.preprocessing, problem.horizon)
        twins = [other for other in same if (other.preprocessing, other.horizon) == alike]
        for detail, value in problem.details:
            if any((detail, value) not in other.details for other in twins):
                apart.append(f"{detail} {value[:SHORT]}")
        name = DATASET_TITLES.get(problem.dataset, problem.dataset)
        return f"{name} ({', '.join(apart)})" if apart else name


def policy_title(policy: str) -> str:
    """Return how a policy is called in tables."""
    return POLICY_TITLES.get(policy, policy)


def summarise(runs: Iterable[Run]) -> Summary:
    """Return the summary of runs. A run that comes twice counts once.

    Runs that differ in their environment or horizon are never averaged.
    """
    groups: dict[tuple[Problem, str], dict[tuple[str, int], Run]] = {}
    for run in runs:
        if len(run.regrets):
            key = (_problem(run), run.policy)
            groups.setdefault(key, {})[run.id, run.seed] = run
    places = sorted(groups, key=lambda key: (_problem_place(key[0]), _policy_place(key[1])))
    return Summary(cells=tuple(_cell(*key, runs=list(groups[key].values())) for key in places))


def _cell(problem: Problem, policy: str, runs: list[Run]) -> Cell:
    """Return the cell of runs that may be averaged."""
    runs = sorted(runs, key=lambda run: (run.seed, run.id))
    regrets = np.array([np.cumsum(run.regrets, dtype=np.float64) for run in runs])
    versions = {json.dumps(run.versions, sort_keys=True): run.versions for run in runs}
    return Cell(
        problem=problem,
        policy=policy,
        seeds=tuple(run.seed for run in runs),
        settings=tuple(sorted({str(run.settings.get("settings", "")) for run in runs})),
        versions=tuple(versions[key] for key in sorted(versions)),
        cpu_seconds=float(np.mean([run.cpu_seconds for run in runs])),
        whole=Curve(
            rounds=np.arange(1, problem.horizon + 1),
            mean=regrets.mean(axis=0),
            std=regrets.std(axis=0, ddof=1) if len(runs) > 1 else None,
        ),
    )


def _problem(run: Run) -> Problem:
    """Return the problem of a run; its horizon is the number of rounds really played."""
    stated = {name: _text(value) for name, value in run.settings["environment"].items()}
    return Problem(
        dataset=stated.pop("name"),
        preprocessing=stated.pop("preprocessing", ""),
        horizon=len(run.regrets),
        details=tuple(sorted((name, value) for name, value in stated.items() if value)),
    )


def _text(value: Any) -> str:
    """Return a setting as text; nothing if it states nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True)


def _place(name: str, titles: dict[str, str]) -> tuple[int, str]:
    """Return what sorts a name: known ones as listed, then the others by name."""
    return (list(titles).index(name) if name in titles else len(titles), name)


def _policy_place(policy: str) -> tuple[int, str]:
    """Return what sorts a policy."""
    return _place(policy, POLICY_TITLES)


def _problem_place(problem: Problem) -> tuple[Any, ...]:
    """Return what sorts a problem."""
    place = _place(problem.dataset, DATASET_TITLES)
    return (place, problem.preprocessing, problem.horizon, problem.details)
