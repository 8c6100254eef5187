"""The constant ν of each policy, tuned as the paper does it: on a grid, on seeds that are not reported."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.policies import POLICIES

GRID = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # the paper's, with the decades it leaves out
FIRST_SEED = 1000  # of tuning; reported seeds begin at 0
SHIPPED = Path(__file__).parent / "tuned.json"
CONSTANTS = {
    "neural-rbmle-ga": "bias",
    "neural-rbmle-pc": "bias",
    "neural-ucb": "exploration",
    "neural-ts": "exploration",
    "deep-fpl": "exploration",
    "lin-rbmle": "bias",
    "lin-ucb": "exploration",
    "lin-ts": "exploration",
    "epsilon-greedy": "epsilon",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The constant of the smallest regret on a grid, and how it was found."""

    constant: float
    regrets: dict[str, float]  # by constant: the final regret, mean over seeds
    seeds: list[int]
    rounds: int
    versions: dict[str, str]

    @property
    def is_at_the_edge(self) -> bool:
        """Return whether a better constant may lie beyond the grid."""
        tried = [float(constant) for constant in self.regrets]
        return self.constant in (min(tried), max(tried))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """ν by (preprocessing, dataset, policy); a policy without an entry keeps its default."""

    choices: dict[str, Choice] = field(default_factory=dict)
    source: str = ""  # where they were read

    def policy(self, name: str, dataset: str, preprocessing: str) -> Any:
        """Return a policy with the constant that was chosen for a dataset."""
        policy = POLICIES[name]()
        choice = self.choices.get(choice_key(preprocessing, dataset, name))
        return policy if choice is None else with_constant(name, policy, choice.constant)

    def origin(self, preprocessing: str, datasets: Iterable[str]) -> str:
        """Return in a sentence where the constants for some datasets come from."""
        names = list(dict.fromkeys(datasets))
        found = {name: self._on(preprocessing, name) for name in names}
        choices = [choice for some in found.values() for choice in some]
        if not choices:
            return "Constants: the default of each policy, nothing is tuned."
        without = [name for name in names if not found[name]]
        seeds = sorted({len(choice.seeds) for choice in choices})
        rounds = sorted({choice.rounds for choice in choices})
        return (
            f"Constants: {self.source}, chosen on {' or '.join(map(str, seeds))} unreported "
            f"seed{'s' * (seeds != [1])} and {' or '.join(f'{n:,}' for n in rounds)} rounds"
            + (f"; on {', '.join(without)} the default of each policy." if without else ".")
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

    def _on(self, preprocessing: str, dataset: str) -> list[Choice]:
        """Return the choices for a dataset."""
        start = choice_key(preprocessing, dataset, "")
        return [choice for key, choice in self.choices.items() if key.startswith(start)]


def choice_key(preprocessing: str, dataset: str, policy: str) -> str:
    """Return the name of a choice."""
    return f"{preprocessing}/{dataset}/{policy}"


def with_constant(name: str, policy: Any, constant: float) -> Any:
    """Return a policy with its constant changed."""
    return replace(policy, **{CONSTANTS[name]: constant})
