"""LinTS (Agrawal, Goyal 2013, "Thompson sampling for contextual bandits with linear payoffs")."""

from dataclasses import dataclass, field

from rbmle.models.ridge import Ridge
from rbmle.policies.linear_sampling import LinearSampling


@dataclass(frozen=True, slots=True, kw_only=True)
class LinTS(LinearSampling):
    """Index θ̃ᵀx with θ̃ drawn from N(θ̂, ν² V⁻¹), one draw for each block and round."""

    model: Ridge = field(default_factory=Ridge)
    exploration: float = 0.2  # ν
