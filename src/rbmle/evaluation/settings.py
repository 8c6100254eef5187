"""How a log is judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rbmle.core.errors import SettingError
from rbmle.evaluation.estimators import Estimator
from rbmle.evaluation.survey import Survey

INTERVALS = ("bootstrap", "bernstein", "sequence", "normal")
PROPENSITIES = ("contexts", "arms")
CLIP = 10.0  # c
USUAL = ((0.0, 1.0), (-1.0, 1.0))  # bounds of rewards that need not be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a log is judged."""

    estimators: Sequence[Estimator]
    interval: str = "sequence"
    confidence: float = 0.95
    frozen: float | None = (
        None  # the part of the log that is learned and not judged; None: progressive
    )
    clip: float = CLIP
    rewards: tuple[float, float] | None = None  # the bounds; None: as found, see `bounds_of`
    default_reward: float = 0.0
    propensities: str = "contexts"  # of what those are estimated that a log does not have
    floor: float | None = None  # no action had a smaller probability; None: not known
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise SettingError for what is out of its range."""
        if self.interval not in INTERVALS:
            raise SettingError(
                f"there is no interval {self.interval!r}; there are {', '.join(INTERVALS)}"
            )
        if self.propensities not in PROPENSITIES:
            raise SettingError(
                f"`propensities` must be {' or '.join(PROPENSITIES)}, got {self.propensities!r}"
            )
        if not 0 < self.confidence < 1:
            raise SettingError(f"`confidence` must be between 0 and 1, got {self.confidence}")
        if self.frozen is not None and not 0 <= self.frozen < 1:
            raise SettingError(f"`frozen` must be a part from 0 to below 1, got {self.frozen}")
        if not self.clip > 0:
            raise SettingError(f"`clip` must be above 0, got {self.clip}")
        if self.floor is not None and not 0 < self.floor <= 1:
            raise SettingError(f"`floor` must be above 0 and at most 1, got {self.floor}")
        if self.rewards is not None and not self.rewards[0] < self.rewards[1]:
            raise SettingError(f"`rewards` must be (lowest, highest), got {self.rewards}")


def bounds_of(found: Survey, how: Settings) -> tuple[float, float]:
    """Return what rewards can be: as told, or 0 to 1, or −1 to 1, if all are; else as they were seen."""
    if how.rewards is not None:
        low, high = how.rewards
        if found.lowest < low or found.highest > high:
            raise SettingError(
                f"`rewards` are from {low:g} to {high:g}, but the log has some from {found.lowest:g} to "
                f"{found.highest:g}; give the smallest and the largest there can be"
            )
        return how.rewards
    for low, high in USUAL:
        if low <= found.lowest and found.highest <= high:
            return low, high
    if how.interval in ("bernstein", "sequence"):
        raise SettingError(
            f"rewards are from {found.lowest:g} to {found.highest:g}, and an interval by {how.interval!r} "
            "needs to know what they can be; give --rewards LOWEST,HIGHEST (rewards=(lowest, highest)), or "
            "--interval bootstrap, which needs no bounds and holds for one look"
        )
    return found.lowest, max(found.highest, math.nextafter(found.lowest, math.inf))
