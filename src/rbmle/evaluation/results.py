"""What an evaluation returns, and what can go wrong with it."""

from dataclasses import asdict, dataclass
from typing import Any

from rbmle.core.errors import RBMLEError


class LogFileError(RBMLEError, ValueError):
    """A log that cannot be found or read, or that has an invalid row."""


class EvaluationWarning(UserWarning):
    """A number that should not be trusted as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a policy would have earned a round, by one estimator."""

    policy: str
    estimator: str
    value: float | None  # None: the log does not determine it
    low: float | None  # None: this estimator has no such interval
    high: float | None
    effective_sample_size: float
    n: int  # rounds that were judged
    interval: str
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All estimates, and warnings about them."""

    estimates: list[Estimate]
    warnings: list[str]
    rounds: int  # of the log, including those that were only learned
    mean: float  # reward of the log

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """Return the estimate of (policy, estimator)."""
        for estimate in self.estimates:
            if (estimate.policy, estimate.estimator) == key:
                return estimate
        known = ", ".join(f"{estimate.policy} {estimate.estimator}" for estimate in self.estimates)
        raise KeyError(f"there is no estimate of {key}; there are {known}")
