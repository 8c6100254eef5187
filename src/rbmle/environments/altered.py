"""Alterations of a problem: noisy, rare, shifted or drifting rewards."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import (
    Environment,
    Round,
    delay_of,
    load_data,
    notice_of,
    shown_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of rewards, in this order.

    1. From round `end` on, arm a has the rewards that arm a + 1 had before round `begin`, and the last arm
       those of the first; in between, a round is changed with a probability that rises from 0 to 1.
    2. A mean μ in [0, 1] becomes a reward of 1 with probability wrong + (right − wrong) μ, else 0.
    3. r becomes scale · r + offset.
    """

    begin: int | None = None  # None: nothing drifts
    end: int | None = None  # None: all at once
    right: float = 1.0
    wrong: float = 0.0
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.right <= 1 and 0 <= self.wrong <= 1):
            raise SettingError(
                "`right` and `wrong` must be probabilities, between 0 and 1, "
                f"got right={self.right} and wrong={self.wrong}"
            )
        if self.end is not None and (self.begin is None or self.end < self.begin):
            raise SettingError(
                f"`end` must not be before `begin`, got begin={self.begin} and end={self.end}"
            )


# By the suffix of a problem's name.
ALTERATIONS: dict[str, Change] = {
    "noise": Change(right=0.8, wrong=0.2),  # a fifth of the rewards flipped
    "rare": Change(right=0.1, wrong=0.02),
    "shift": Change(scale=10.0, offset=-5.0),
    "switch": Change(begin=2000),
    "drift": Change(begin=1000, end=3000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """A problem with the contexts of another, and changed rewards; regret uses the changed means."""

    world: Environment
    change: Change
    suffix: str = "+altered"  # of the name

    @property
    def arms(self) -> int:
        return self.world.arms

    @property
    def features(self) -> int:
        return self.world.features

    @property
    def encoding(self) -> Encoding:
        return self.world.encoding

    @property
    def delay(self) -> int:
        return delay_of(self.world)

    @property
    def shown(self) -> int:
        return shown_of(self.world)

    @property
    def rows(self) -> int | None:
        return self.world.rows

    @property
    def notice(self) -> str:
        return notice_of(self.world)

    def load_data(self) -> "Altered":
        return replace(self, world=load_data(self.world))

    @property
    def settings(self) -> dict[str, Any]:
        settings = dict(self.world.settings)
        changes = [*settings.pop("changes", []), asdict(self.change)]
        return {**settings, "name": settings["name"] + self.suffix, "changes": changes}

    def round(self, t: int, seed: int) -> Round:
        offer, change = self.world.round(t, seed), self.change
        rewards, means = offer.rewards, offer.means
        if change.begin is not None:
            rounds = max((change.end or 0) - change.begin, 0) + 1
            if self._stream("drift", t, seed).random() < (t - change.begin + 1) / rounds:
                rewards, means = np.roll(rewards, -1), np.roll(means, -1)
        if (change.right, change.wrong) != (1, 0):
            means = change.wrong + (change.right - change.wrong) * means
            chances = self._stream("reward", t, seed).random(len(means))
            rewards = (chances < means).astype(np.float64)
        return replace(
            offer,
            rewards=change.scale * rewards + change.offset,
            means=change.scale * means + change.offset,
        )

    def _stream(self, what: str, t: int, seed: int) -> np.random.Generator:
        return generator(seed, Purpose.ENVIRONMENT, f"{what}{self.suffix}/{t}")
