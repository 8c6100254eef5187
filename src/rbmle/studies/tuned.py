"""The constant ν of each policy, tuned as the paper does it: on a grid, on seeds that are not reported."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.experiments.summary import Summary
from rbmle.policies import POLICIES

GRID = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # the paper's, with the decades it leaves out
FIRST_SEED = 1000  # of tuning; reported seeds begin at 0
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
class Tuned:
    """ν by (preprocessing, dataset, policy); a policy without an entry keeps its default."""

    constants: dict[str, float] = field(default_factory=dict)

    def policy(self, name: str, dataset: str, preprocessing: str) -> Any:
        """Return a policy with the constant that was chosen for a dataset."""
        policy = POLICIES[name]()
        constant = self.constants.get(_key(preprocessing, dataset, name))
        return policy if constant is None else with_constant(name, policy, constant)

    def with_best(self, summary: Summary) -> "Tuned":
        """Return these, and the best of a grid in a summary whose policies are `name@constant`."""
        best: dict[str, tuple[float, float]] = {}
        for cell in summary.cells:
            name, _, constant = cell.policy.partition("@")
            key = _key(cell.problem.preprocessing, cell.problem.dataset, name)
            found = (cell.mean, float(constant))
            best[key] = min(best.get(key, found), found)
        return Tuned(
            constants=self.constants | {key: constant for key, (_, constant) in best.items()}
        )

    def write(self, path: Path) -> None:
        """Write the constants as JSON."""
        write_text(path, json.dumps(dict(sorted(self.constants.items())), indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> "Tuned":
        """Return the constants in a file that `write` wrote."""
        try:
            constants = json.loads(path.read_text())
            return Tuned(constants={str(key): float(value) for key, value in constants.items()})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SettingError(
                f"{path} has no tuned constants ({error}); give a file that rbmle tune wrote"
            ) from None


def with_constant(name: str, policy: Any, constant: float) -> Any:
    """Return a policy with its constant changed."""
    return replace(policy, **{CONSTANTS[name]: constant})


def grid(names: Iterable[str]) -> list[tuple[str, str, Any]]:
    """Return (policy, policy@constant, value) for each policy that has a constant and each of the grid."""
    return [
        (name, f"{name}@{constant:g}", with_constant(name, POLICIES[name](), constant))
        for name in names
        if name in CONSTANTS
        for constant in GRID
    ]


def _key(preprocessing: str, dataset: str, policy: str) -> str:
    return f"{preprocessing}/{dataset}/{policy}"
