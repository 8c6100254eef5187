"""What an evaluation tells."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a policy would have earned a round, by one estimator."""

    policy: str
    estimator: str
    value: float | None  # None: the log does not tell
    low: float | None  # None: this estimator has no such interval
    high: float | None
    effective_sample_size: float
    n: int  # rounds that were judged
    interval: str
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, which JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All estimates, and what must be known of them."""

    estimates: list[Estimate]
    warnings: list[str]
    rounds: int  # of the log, those that were only learned among them
    mean: float  # reward of the log

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """Return the estimate of (policy, estimator)."""
        for one in self.estimates:
            if (one.policy, one.estimator) == key:
                return one
        known = ", ".join(f"{one.policy} {one.estimator}" for one in self.estimates)
        raise KeyError(f"there is no estimate of {key}; there are {known}")
