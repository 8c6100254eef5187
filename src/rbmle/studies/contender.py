"""What a study compares: a policy with its constant, on a dataset."""

from dataclasses import dataclass, replace
from typing import Any

from rbmle.studies.tuned import GRID, constant_of


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
        """Return the setting that is tuned; None if there is none."""
        return constant_of(type(self.policy))

    def with_constant(self, value: float) -> "Contender":
        """Return it with another constant."""
        assert self.constant is not None
        return replace(self, policy=replace(self.policy, **{self.constant: value}))
