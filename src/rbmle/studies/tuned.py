"""The constant ν of each policy, tuned as the paper does it: on a grid, on seeds that are not reported."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.datasets.formats import title
from rbmle.environments import Environment
from rbmle.experiments.naming import file_names
from rbmle.policies import POLICIES
from rbmle.policies.specification import policy_with

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
        """Return the data of an environment."""
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
        tried = [float(constant) for constant in self.regrets]
        return self.constant != 0 and self.constant in (min(tried), max(tried))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """ν by (preprocessing, dataset, policy); a policy without an entry keeps its default."""

    choices: dict[str, Choice] = field(default_factory=dict)
    source: str = ""  # where they were read

    def policy(self, name: str, dataset: str, preprocessing: str) -> Any:
        """Return a policy with the constant that was chosen for a dataset."""
        data = Data(preprocessing=preprocessing, name=dataset)
        return policy_with(name, " ".join(self.settings(name, data)))

    def settings(self, name: str, data: Data) -> tuple[str, ...]:
        """Return the setting that was chosen for a policy on some data; none if nothing was."""
        choice = self._choice(name, data)
        if choice is None:
            return ()
        return (f"{choice.setting or CONSTANTS[name]}={choice.constant!r}",)

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
        asked = [(name, each) for name in policies for each in data]
        if not any(self.settings(name, each) for name, each in asked):
            pairs = ", ".join(f"{name} on {each.name}" for name, each in dict.fromkeys(asked))
            raise SettingError(
                f"the constants {self.source} are none of {pairs}; tune those first, by rbmle tune"
            )

    def origin(self, data: Iterable[Data], policies: Iterable[str] = ()) -> str:
        """Return in a sentence where the constants for some data come from."""
        listed = list(dict.fromkeys(data))
        found = {each: self._on(each) for each in listed}
        choices = [choice for some in found.values() for choice in some]
        if not choices:
            return "Constants: the default of each policy, nothing is tuned."
        shown = file_names([each.file for each in listed if each.file])
        without = [shown.get(each.file, each.name) for each in listed if not found[each]]
        left = [
            f"{name} on {shown.get(each.file, each.name)}"
            for each in listed
            for name in dict.fromkeys(policies)
            if found[each] and self._choice(name, each) is None
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
        """Write the choices as JSON, one on a line."""
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
        """Return the choices that ship with the package."""
        return replace(Tuned.read(SHIPPED), source="as shipped with rbmle")

    def _choice(self, name: str, data: Data) -> Choice | None:
        """Return the choice for a policy on some data."""
        keys = (choice_key(data.preprocessing, known, name) for known in data.names)
        return next((self.choices[key] for key in keys if key in self.choices), None)

    def _on(self, data: Data) -> list[Choice]:
        """Return the choices for some data."""
        starts = tuple(choice_key(data.preprocessing, known, "") for known in data.names)
        return [
            choice for key, choice in self.choices.items() if key.rpartition("/")[0] + "/" in starts
        ]


def choice_key(preprocessing: str, dataset: str, policy: str) -> str:
    """Return the name of a choice."""
    return f"{preprocessing or NO_PREPROCESSING}/{dataset}/{policy}"
