"""Runs, summarised: for each problem and policy the mean and the deviation over its runs."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from rbmle.datasets import DATASETS
from rbmle.datasets.user_file import title
from rbmle.experiments.code import Code
from rbmle.experiments.trial import CLASS, FILE, Run
from rbmle.policies import POLICIES
from rbmle.policies.registry import title_of

Key = TypeVar("Key", bound=Hashable)
CODE_LABEL = "code"


def file_names(files: Iterable[str], parts: int = 1) -> dict[str, str]:
    """Return for each path its shortest end that no other has, of at least so many parts.

    >>> file_names(["/x/a/data.csv", "/x/b/data.csv", "/x/b/more.csv"])
    {'/x/a/data.csv': 'a/data', '/x/b/data.csv': 'b/data', '/x/b/more.csv': 'more'}
    """
    paths = {file: Path(file) for file in dict.fromkeys(files)}
    bare = {file: (*path.parent.parts, title(path)) for file, path in paths.items()}
    whole = {file: path.parts for file, path in paths.items()}
    return {
        file: _end(file, bare, parts) or _end(file, whole, parts) or file.lstrip("/")
        for file in paths
    }


def _end(file: str, paths: Mapping[str, Sequence[str]], least: int) -> str:
    """Return the shortest end of a path that no other has, or nothing."""
    parts = paths[file]
    for count in range(least, len(parts) + 1):
        if all(other[-count:] != parts[-count:] for name, other in paths.items() if name != file):
            return "/".join(parts[-count:]).lstrip("/")
    return ""


def labels(policies: Mapping[Key, tuple[Any, str]]) -> dict[Key, str]:
    """Return for each policy, given by its settings and its code, how it differs from the others.

    >>> first, second = ({"class": "P", "a": 1, "b": {"class": "P", "c": c}} for c in (2, 3))
    >>> labels({1: (first, ""), 2: (second, "")})
    {1: 'b.c=2', 2: 'b.c=3'}
    """
    flat = {
        key: dict(_flatten(settings)) | {CODE_LABEL: code}
        for key, (settings, code) in policies.items()
    }
    paths = list(dict.fromkeys(path for values in flat.values() for path in values))
    varied = [path for path in paths if len({values.get(path) for values in flat.values()}) > 1]
    whole = [path for path in varied if not any(path.startswith(f"{up}.") for up in varied)]
    for chosen in (whole, varied):
        named = {
            key: ", ".join(_label(path, values[path]) for path in chosen if path in values)
            for key, values in flat.items()
        }
        if len(set(named.values())) == len(named):
            return named
    return {
        key: f"{settings_text(settings)}, code {code}" for key, (settings, code) in policies.items()
    }


def _label(path: str, value: str) -> str:
    return f"code {value}" if path == CODE_LABEL else f"{path}={value}"


def _flatten(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(settings, dict):
        yield path or CLASS, settings.get(CLASS, "")
        for name, value in settings.items():
            if name != CLASS:
                yield from _flatten(value, f"{path}.{name}" if path else name)
    else:
        yield path or "settings", _python_text(settings) if path else str(settings)


def settings_text(settings: Any) -> str:
    """Return the settings of a policy as Python writes them.

    >>> settings_text({"class": "LinUCB", "exploration": 0.5, "model": {"class": "Ridge"}})
    'LinUCB(exploration=0.5, model=Ridge())'
    """
    return settings if isinstance(settings, str) else _python_text(settings)


def _python_text(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{name}={_python_text(part)}" for name, part in value.items() if name != CLASS]
        return f"{value.get(CLASS, '')}({', '.join(parts)})"
    if isinstance(value, list):
        items = ", ".join(map(_python_text, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return repr(value)


Variant = tuple[
    str, str, Code
]  # a policy's name, a key of its settings, and the code that played it
POINTS = 300  # of a curve that is drawn
VARIANT_START = " ("  # between a policy's name and what tells it from others of that name
SHORT = 12  # characters of a detail in a title: enough of a digest to tell it from another

# How names are shown; the order is that of the registry and of the catalog, which are those of the paper.
POLICY_TITLES = {name: title_of(kind) for name, kind in POLICIES.items()}
DATASET_TITLES = {name: source.label for name, source in DATASETS.items() if source.label}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What runs must share to be averaged."""

    dataset: str
    preprocessing: str  # empty if the environment states none
    horizon: int
    details: dict[str, Any] = field(
        default_factory=dict, hash=False
    )  # what else is stated, as JSON
    file: str = field(default="", compare=False)  # where the data were read, if in a file


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
    policy: str  # its name, with what tells it from others of that name
    seeds: tuple[int, ...]  # one for each run
    ids: tuple[str, ...]  # one for each run
    settings: Any  # of the policy, as JSON
    code: Code
    versions: tuple[dict[str, str], ...]  # the different ones
    cpu_seconds: float  # of a run, in the mean
    regrets: Float[np.ndarray, "runs rounds"] = field(repr=False)  # cumulative

    @property
    def whole(self) -> Curve:
        std = self.regrets.std(axis=0, ddof=1) if len(self.regrets) > 1 else None
        rounds = np.arange(1, self.problem.horizon + 1)
        return Curve(rounds=rounds, mean=self.regrets.mean(axis=0), std=std)

    @property
    def curve(self) -> Curve:
        """Return the curve at no more than 300 rounds, the first and the last among them."""
        horizon, whole = self.problem.horizon, self.whole
        kept = np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(int))
        std = None if whole.std is None else whole.std[kept]
        return Curve(rounds=whole.rounds[kept], mean=whole.mean[kept], std=std)

    @property
    def mean(self) -> float:
        return float(self.regrets[:, -1].mean())

    @property
    def std(self) -> float | None:
        """Return the deviation of the final regret with divisor n − 1; None for one run."""
        return self.at(self.problem.horizon)[1]

    def at(self, rounds: int) -> tuple[float, float | None]:
        """Return mean and deviation of the regret after some rounds."""
        if not 1 <= rounds <= self.problem.horizon:
            raise ValueError(
                f"{self.policy} on {self.problem.dataset} was played for {self.problem.horizon} "
                f"rounds; its regret after {rounds} is not known, ask for one from 1 on"
            )
        there = self.regrets[:, rounds - 1]
        return float(there.mean()), float(there.std(ddof=1)) if len(there) > 1 else None


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
        return tuple(
            sorted(
                {cell.policy for cell in self.cells},
                key=lambda policy: (_policy_place(policy), policy),
            )
        )

    @property
    def runs(self) -> int:
        return sum(len(cell.seeds) for cell in self.cells)

    def cell(self, problem: Problem, policy: str) -> Cell | None:
        """Return the cell of a policy on a problem; None if it has no run."""
        for cell in self.cells:
            if (cell.problem, cell.policy) == (problem, policy):
                return cell
        return None

    def variants(self, problem: Problem, policy: str) -> list[Cell]:
        """Return the cells of a policy on a problem, whatever its settings and code."""
        on = [cell for cell in self.cells if cell.problem == problem]
        return [cell for cell in on if cell.policy.partition(VARIANT_START)[0] == policy]

    def name(self, problem: Problem) -> str:
        """Return the dataset's name; of files that share it, the ends of their paths that do not."""
        same = [other.file for other in self.problems if other.dataset == problem.dataset]
        return (
            file_names(same)[problem.file]
            if len(set(same)) > 1 and problem.file
            else problem.dataset
        )

    def title(self, problem: Problem) -> str:
        """Return the dataset's title, with what tells it from other problems on that dataset."""
        name = self.name(problem)
        same = [other for other in self.problems if self.name(other) == name]
        details = []
        if len({other.preprocessing for other in same}) > 1:
            details.append(problem.preprocessing or "no preprocessing stated")
        if len({other.horizon for other in same}) > 1:
            details.append(f"T = {problem.horizon:,}")
        alike = (problem.preprocessing, problem.horizon)
        twins = [other for other in same if (other.preprocessing, other.horizon) == alike]
        for key, value in problem.details.items():
            if any(other.details.get(key) != value for other in twins):
                details.append(f"{key} {_text(value)[:SHORT]}")
        shown = DATASET_TITLES.get(name, name)
        return f"{shown} ({', '.join(details)})" if details else shown


def policy_title(policy: str) -> str:
    """Return how a policy is called in tables; what tells it from others of its name stays."""
    name, opening, details = policy.partition(VARIANT_START)
    return POLICY_TITLES.get(name, name) + opening + details


def summarise(runs: Iterable[Run]) -> Summary:
    """Return the summary of runs. A run that comes twice counts once.

    Runs that differ in their environment or horizon, in the settings of their policy, or in the code
    that made them, are never averaged.
    """
    groups: dict[tuple[Problem, Variant], dict[tuple[str, int], Run]] = {}
    for run in runs:
        if len(run.regrets):
            settings = json.dumps(run.settings.get("settings", ""), sort_keys=True)
            variant = (run.policy, settings, run.code)
            groups.setdefault((_problem(run), variant), {})[run.id, run.seed] = run
    rows = _rows(groups)
    places = sorted(
        groups, key=lambda key: (_problem_place(key[0]), _policy_place(rows[key[1]]), rows[key[1]])
    )
    return Summary(
        cells=tuple(
            _cell(problem, rows[variant], list(groups[problem, variant].values()))
            for problem, variant in places
        )
    )


def _rows(keys: Iterable[tuple[Problem, Variant]]) -> dict[Variant, str]:
    """Return the name of each variant's row: the policy's, if no problem has two variants of it."""
    listed = list(keys)
    on = Counter((problem, variant[0]) for problem, variant in listed)
    several = {policy for (_, policy), count in on.items() if count > 1}
    variants = dict.fromkeys(variant for _, variant in listed)
    rows = {variant: variant[0] for variant in variants}
    for policy in several:
        same = {v: (json.loads(v[1]), v[2].title) for v in variants if v[0] == policy}
        rows |= {v: f"{policy}{VARIANT_START}{label})" for v, label in labels(same).items()}
    return rows


def _cell(problem: Problem, row: str, runs: list[Run]) -> Cell:
    runs = sorted(runs, key=lambda run: (run.seed, run.id))
    versions = {json.dumps(run.versions, sort_keys=True): run.versions for run in runs}
    return Cell(
        problem=problem,
        policy=row,
        seeds=tuple(run.seed for run in runs),
        ids=tuple(run.id for run in runs),
        settings=runs[0].settings.get("settings", ""),
        code=runs[0].code,
        versions=tuple(versions[key] for key in sorted(versions)),
        cpu_seconds=float(np.mean([run.cpu_seconds for run in runs])),
        regrets=np.array([np.cumsum(run.regrets, dtype=np.float64) for run in runs]),
    )


def _problem(run: Run) -> Problem:
    """Return the problem of a run; its horizon is the number of rounds really played."""
    stated = dict(run.settings["environment"])
    return Problem(
        dataset=str(stated.pop("name")),
        preprocessing=_text(stated.pop("preprocessing", "")),
        horizon=len(run.regrets),
        file=_text(stated.pop(FILE, "")),
        details={name: stated[name] for name in sorted(stated) if _text(stated[name])},
    )


def _text(value: Any) -> str:
    """Return a setting as text; nothing if it states nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True)


def _place_in(name: str, titles: dict[str, str]) -> tuple[int, str]:
    return (list(titles).index(name) if name in titles else len(titles), name)


def _policy_place(policy: str) -> tuple[int, str]:
    return _place_in(policy.partition(VARIANT_START)[0], POLICY_TITLES)


def _problem_place(problem: Problem) -> tuple[Any, ...]:
    place = _place_in(problem.dataset, DATASET_TITLES)
    details = tuple((name, _text(value)) for name, value in problem.details.items())
    return (place, problem.file, problem.preprocessing, problem.horizon, details)
