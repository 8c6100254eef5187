"""Everyday problems: noisy clicks, purchases in euros, ratings, costs, and rewards far from zero.

The datasets of the bake-off have labels without noise. Most rewards that users log are different: most are 0,
amounts have heavy tails, and contexts explain a small part of the variance. A family draws a problem for each
seed. Expected rewards are known exactly, so a policy can be scored by the share of the gap between uniform
play and the oracle that it closes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import LoggedRounds, Round
from rbmle.environments.everyday_families import DEVELOPMENT, REPORTED, EverydayFamily, Play, Rounds

FAMILIES: dict[str, EverydayFamily] = DEVELOPMENT | REPORTED
BLOCK = 250  # rounds that are drawn at a time


class Baselines(NamedTuple):
    """The total expected regret over some rounds of two policies that do not learn."""

    uniform: float  # of uniform play
    fixed: float  # of the arm, or list of arms, that is best on average over these rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyday:
    """A problem of a family; the seed draws its hidden parameters, contexts and rewards.

    >>> world = Everyday(family="clicks")
    >>> world.arms, world.features, world.delay
    (12, 17, 50)
    >>> bool(0 < world.round(0, seed=0).means.min() < 0.3)
    True
    >>> Everyday(family="clicks", late=0).delay
    0
    """

    family: str  # a name of FAMILIES
    late: int | None = None  # rounds after which a reward is known; None: as many as in the family
    rows: ClassVar = None  # no round comes again

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise SettingError(no_such("everyday family", self.family, FAMILIES))
        if self.late is not None and self.late < 0:
            raise SettingError(f"`late` must be at least 0 rounds, got {self.late}")

    @property
    def name(self) -> str:
        return f"everyday-{self.family}"

    @property
    def arms(self) -> int:
        return FAMILIES[self.family].arms

    @property
    def features(self) -> int:
        return FAMILIES[self.family].features

    @property
    def encoding(self) -> Encoding:
        return FAMILIES[self.family].encoding

    @property
    def delay(self) -> int:
        return FAMILIES[self.family].delay if self.late is None else self.late

    @property
    def shown(self) -> int:
        return FAMILIES[self.family].shown

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "family": self.family,
            "arms": self.arms,
            "features": self.features,
            "delay": self.delay,
        }

    def round(self, t: int, seed: int) -> Round:
        X, rewards, means = _block(self.family, seed, t // BLOCK)
        at = t % BLOCK
        return Round(x=X[at], rewards=rewards[at], means=means[at])

    def log(self, seed: int) -> LoggedRounds | None:
        """Return the rounds that are learned before the first; None if there are none.

        The arms were drawn at random; in the share `logging` of the rounds, an old rule with a rough idea of
        the best arm chose instead.
        """
        family = FAMILIES[self.family]
        if not family.logged:
            return None
        rng = generator(seed, Purpose.ENVIRONMENT, f"{self.family}/log")
        X, rewards, means = _rounds(self.family, seed, np.zeros(family.logged, np.int64), rng)
        ruled = (means + means.std() * rng.normal(size=means.shape[1])).argmax(axis=1)
        drawn = rng.integers(self.arms, size=len(X))
        arms = np.where(rng.random(len(X)) < family.logging, ruled, drawn)
        return LoggedRounds(X=X, arms=arms, rewards=rewards[np.arange(len(X)), arms])

    def baselines(self, rounds: int, seed: int) -> Baselines:
        """Return the expected regret of uniform play and of the best fixed arm over the first rounds."""
        blocks = (_block(self.family, seed, block)[2] for block in range(-(-rounds // BLOCK)))
        means = np.concatenate(list(blocks))[:rounds]
        best = np.sort(means, axis=1)[:, -self.shown :].sum()
        arms = np.sort(means.sum(axis=0))[-self.shown :]
        return Baselines(
            float(best - self.shown * means.mean(axis=1).sum()), float(best - arms.sum())
        )


EVERYDAY: dict[str, Everyday] = {
    world.name: world for world in (Everyday(family=family) for family in FAMILIES)
}


def gap_closed(regret: float, uniform: float) -> float:
    """Return the share of the gap between uniform play and the oracle that a policy closes.

    Both regrets are of the same rounds: that of the policy, and the expected one of uniform play.

    >>> gap_closed(regret=30.0, uniform=120.0)
    0.75
    """
    return 1.0 - regret / uniform


@lru_cache(maxsize=16)
def _problem(family: str, seed: int) -> Play:
    arms, features, draw, *_ = FAMILIES[family]
    return draw(arms, features - 1, generator(seed, Purpose.ENVIRONMENT, f"{family}/hidden"))


@lru_cache(maxsize=16)
def _block(family: str, seed: int, block: int) -> Rounds:
    """Return a block of rounds, which are drawn together; the arrays are shared and read-only."""
    t = np.arange(block * BLOCK, (block + 1) * BLOCK)
    rounds = _rounds(family, seed, t, generator(seed, Purpose.ENVIRONMENT, f"{family}/{block}"))
    for part in rounds:
        part.setflags(write=False)
    return rounds


def _rounds(family: str, seed: int, t: np.ndarray, rng: np.random.Generator) -> Rounds:
    """Draw rounds, and append the constant feature to their contexts."""
    X, rewards, means = _problem(family, seed)(t, rng)
    return np.concatenate([X, np.ones((*X.shape[:-1], 1))], axis=-1), rewards, means
