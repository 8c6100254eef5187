"""Synthetic problems with a known reward function, as in the NeuralUCB paper's section 7.1."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import Round
from rbmle.environments.noise import GaussianNoise, Noise
from rbmle.environments.reward_functions import FUNCTIONS, RewardFunction, on_sphere


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """A context for each arm, drawn from the unit sphere, and rewards h(x) with noise.

    The seed decides all: contexts, noise, and the hidden parameters of h. So a mean over seeds
    is one over problems too, and problems that differ in h or noise alone have equal contexts.
    """

    function: str  # h, a name of FUNCTIONS
    noise: Noise = field(default_factory=GaussianNoise)
    arms: int = 4  # K, as in the paper
    features: int = 20  # d, as in the paper

    def __post_init__(self) -> None:
        """Raise SettingError for an unknown function, or a number below 1."""
        if self.function not in FUNCTIONS:
            raise SettingError(
                f"there is no reward function {self.function!r}; there are {', '.join(FUNCTIONS)}"
            )
        for name, number in (("arms", self.arms), ("features", self.features)):
            if number < 1 or number != int(number):
                raise SettingError(f"`{name}` must be an integer of at least 1, got {number}")

    @property
    def encoding(self) -> Encoding:
        """Return PER_ARM."""
        return Encoding.PER_ARM

    @property
    def rows(self) -> None:
        """Return None: no round comes again."""
        return

    @property
    def name(self) -> str:
        """Return the function's name, and the noise's if it is not Gaussian."""
        return self.function + self.noise.suffix

    @property
    def settings(self) -> dict[str, Any]:
        """Return all but the seed."""
        return {
            "name": self.name,
            "function": self.function,
            "arms": int(self.arms),
            "features": int(self.features),
            **self.noise.settings,
        }

    def round(self, t: int, seed: int) -> Round:
        """Return the contexts of round t, and a reward for each."""
        rng = generator(seed, Purpose.ENVIRONMENT, t)
        h = _hidden(self.function, self.features, seed)
        contexts = on_sphere(self.arms, self.features, rng)
        means = self.noise.means(h.values(contexts), h.bounds)
        return Round(x=contexts, rewards=self.noise.rewards(means, rng), means=means)


@lru_cache(maxsize=8)
def _hidden(function: str, features: int, seed: int) -> RewardFunction:
    """Return h with the parameters that the seed draws."""
    return FUNCTIONS[function].draw(features, generator(seed, Purpose.ENVIRONMENT, "hidden"))
