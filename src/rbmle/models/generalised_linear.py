"""Generalised linear models, one for each block: E[r | x] = b′(θᵀx)."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from jaxtyping import Float

from rbmle.core.hints import Settings
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.compiled import scalar
from rbmle.engine.generalised_linear import diagonal_generalised_update, generalised_update
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood
from rbmle.likelihoods.base import rewards_of
from rbmle.models.ridge import Form, Ridge, RidgeState


@dataclass(frozen=True, slots=True, kw_only=True)
class GLM(Settings):
    """θ̂ and H = λI + Σ_s b″(θ̂_sᵀx_s) x_s x_sᵀ, so that ℓ_λ(θ) ≈ ℓ_λ(θ̂) − ½ ‖θ − θ̂‖²_H.

    An observation is fitted once, with this quadratic form in the place of all before it: θ̂ becomes the maximum
    of both, and the curvature there is added to H. With the Gaussian likelihood that is ridge regression. With
    others it is close to a fit to the whole history, at a cost that does not grow: docs/differences.md.
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    ridge: float = 1.0  # λ
    alarm: float = 40.0  # S above which all is forgotten, see docs/drift.md; 0: never
    precision: Form = "full"  # H, or of its inverse the diagonal alone, as for `Ridge`
    is_standardised: bool = True  # with the Gaussian likelihood, as for `Ridge`

    def __post_init__(self) -> None:
        """Raise SettingError for a ridge that is not positive, an alarm below 0 or an unknown precision."""
        _ = self.linear

    @property
    def linear(self) -> Ridge:
        """Return the model that has its state in common with this one."""
        return Ridge(
            ridge=self.ridge,
            alarm=self.alarm,
            precision=self.precision,
            is_standardised=self.is_standardised and isinstance(self.likelihood, Gaussian),
        )

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.linear.is_standardised

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and H = λI."""
        return self.linear.init(blocks, features, rng)

    def estimates(self, state: RidgeState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return θ̂ᵀx and ‖x‖²_{H⁻¹} for every context."""
        return self.linear.estimates(state, contexts)

    def draws(
        self,
        state: RidgeState,
        contexts: Contexts,
        deviation: float,  # ν
        count: int,
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "draws arms"]:
        """Return θ̃ᵀx for every context, with one θ̃ ~ N(θ̂, ν² H⁻¹) for each block and draw."""
        return self.linear.draws(state, contexts, deviation, count, rng)

    def predict(self, state: RidgeState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀx for every context; the expected reward is b′(θ̂ᵀx)."""
        return self.linear.predict(state, contexts)

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        """Learn from each reward; all of them are fitted."""
        if isinstance(self.likelihood, Gaussian):
            self.linear.update_all(state, batch)
            return
        mean = scalar(self.likelihood.mean)
        linear = self.linear
        update = diagonal_generalised_update if linear.is_diagonal else generalised_update
        linear.learn(state, batch, partial(update, mean))

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.linear.grow(state, blocks, rng)

    def frozen(self, state: RidgeState) -> RidgeState:
        """Return a copy."""
        return self.linear.frozen(state)
