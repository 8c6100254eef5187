"""GLM-TS: Thompson sampling by Laplace's approximation, as Chapelle and Li (2011, "An empirical evaluation of
Thompson sampling") have it for logistic regression, with the whole of H in the place of its diagonal.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from rbmle.models.generalised_linear import GLM
from rbmle.policies.linear_sampling import LinearSampling


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMTS(LinearSampling):
    """Index θ̃ᵀx with θ̃ drawn from N(θ̂, ν² H⁻¹), one draw for each block and round."""

    model: GLM = field(default_factory=GLM)
    exploration: float = 0.1  # ν

    title: ClassVar[str] = "GLM-TS"
