"""Summaries of runs: for each problem and policy, the mean and the deviation over its runs."""

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
    """Return the shortest unique end of each path, of at least `parts` parts.

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
    """Return the shortest unique end of a path; empty if there is none."""
    parts = paths[file]
    for count in range(least, len(parts) + 1):
        if all(other[-count:] != parts[-count:] for name, other in paths.items() if name != file):
            return "/".join(parts[-count:]).lstrip("/")
    return ""


def labels(policies: Mapping[Key, tuple[Any, str]]) -> dict[Key, str]:
    """Return a label for each policy, given its settings and code, that says how it differs from the others.

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
    """Return the settings of a policy as a Python expression.

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
]  # a policy's name, its settings as text, and the code that played it
POINTS = 300  # of a drawn curve
VARIANT_START = " ("  # between a policy's name and the label of its variant
SHORT = 12  # characters of a detail in a title, enough to distinguish digests

# Titles of names, in the order of the registry and of the catalog, which is that of the paper.
# Policies that are variants of what their papers describe; docs/reference/policies.md says how.
VARIANTS_OF_PAPERS = ("ee-net", "fg-ts", "glm-ucb", "npr")
VARIANT_MARK, VARIANT_NOTE = "†", "† A variant of what its paper describes."
POLICY_TITLES = {
    name: f"{title_of(kind)} {VARIANT_MARK}" if name in VARIANTS_OF_PAPERS else title_of(kind)
    for name, kind in POLICIES.items()
}
DATASET_TITLES = {name: source.label for name, source in DATASETS.items() if source.label}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem; runs on it may be averaged."""

    dataset: str
    preprocessing: str  # empty if the environment has none
    horizon: int
    details: dict[str, Any] = field(default_factory=dict, hash=False)  # other settings, as JSON
    file: str = field(default="", compare=False)  # path of the data, if they are a user's file


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Cumulative regret after some of the rounds; std is None for a single run."""

    rounds: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    std: Float[np.ndarray, " points"] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """The runs of a policy on a problem."""

    problem: Problem
    policy: str  # its name, and the label of its variant if there are several
    seeds: tuple[int, ...]  # one for each run
    ids: tuple[str, ...]  # one for each run
    settings: Any  # of the policy, as JSON
    code: Code
    versions: tuple[dict[str, str], ...]  # the different ones
    cpu_seconds: float  # of a run, on average
    regrets: Float[np.ndarray, "runs rounds"] = field(repr=False)  # cumulative

    @property
    def whole(self) -> Curve:
        std = self.regrets.std(axis=0, ddof=1) if len(self.regrets) > 1 else None
        rounds = np.arange(1, self.problem.horizon + 1)
        return Curve(rounds=rounds, mean=self.regrets.mean(axis=0), std=std)

    @property
    def curve(self) -> Curve:
        """The curve at no more than 300 rounds, including the first and the last."""
        horizon, whole = self.problem.horizon, self.whole
        kept = np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(int))
        std = None if whole.std is None else whole.std[kept]
        return Curve(rounds=whole.rounds[kept], mean=whole.mean[kept], std=std)

    @property
    def mean(self) -> float:
        return float(self.regrets[:, -1].mean())

    @property
    def std(self) -> float | None:
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
    """Cells, grouped by problem, with policies in the paper's order."""

    cells: tuple[Cell, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems: datasets in the paper's order, then others by name."""
        return tuple(dict.fromkeys(cell.problem for cell in self.cells))

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies in the paper's order, then others by name."""
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
        """Return the dataset's name; for files of one name, the end of the path that distinguishes them."""
        same = [other.file for other in self.problems if other.dataset == problem.dataset]
        return (
            file_names(same)[problem.file]
            if len(set(same)) > 1 and problem.file
            else problem.dataset
        )

    def title(self, problem: Problem) -> str:
        """Return the dataset's title, with the details that distinguish problems on that dataset."""
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
    """Return the title of a policy in tables, with the label of its variant."""
    name, opening, details = policy.partition(VARIANT_START)
    return POLICY_TITLES.get(name, name) + opening + details


def summarise(runs: Iterable[Run]) -> Summary:
    """Summarise runs; duplicates count once.

    Runs are averaged only if they have the same environment, horizon, settings of the policy, and code.
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
    """Return the problem of a run; its horizon is the number of rounds that were played."""
    stated = dict(run.settings["environment"])
    return Problem(
        dataset=str(stated.pop("name")),
        preprocessing=_text(stated.pop("preprocessing", "")),
        horizon=len(run.regrets),
        file=_text(stated.pop(FILE, "")),
        details={name: stated[name] for name in sorted(stated) if _text(stated[name])},
    )


def _text(value: Any) -> str:
    """Return a setting as text; empty for None."""
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
