"""A finite set Θ of MDPs, one of which is the true one, with J*(θ) and an optimal policy of each."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.mdp import MDP
from rbmle.control.planning import solve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """The MDPs of some parameters θ; what a learner needs of them is computed once.

    The likelihood of a parameter is that of transitions alone. Rewards may depend on θ, as in the paper's
    section 3, but are not observed.
    """

    parameters: tuple[float, ...]  # Θ
    mdps: tuple[MDP, ...]
    gains: Float[np.ndarray, " models"] = field(init=False)  # J*(θ)
    policies: Int[np.ndarray, "models states"] = field(init=False)  # optimal for θ
    log_transitions: Float[np.ndarray, "models states actions states"] = field(init=False)

    def __post_init__(self) -> None:
        """Raise ValueError unless there is an MDP for each parameter, all of one shape and with J* > 0."""
        if not self.parameters or len(self.parameters) != len(self.mdps):
            raise ValueError(
                "a family must have one MDP for each parameter, and at least one, "
                f"got {len(self.parameters)} parameters and {len(self.mdps)} MDPs"
            )
        shapes = {mdp.rewards.shape for mdp in self.mdps}
        if len(shapes) > 1:
            raise ValueError(
                f"the MDPs of a family must all have as many states and actions, got {sorted(shapes)}"
            )
        solutions = [solve(mdp) for mdp in self.mdps]
        for parameter, solution in zip(self.parameters, solutions, strict=True):
            if solution.gain <= 0:
                raise ValueError(
                    f"J* must be above 0, since its logarithm is taken, got {solution.gain:g} for the "
                    f"parameter {parameter}; add a constant to all rewards"
                )
        with np.errstate(divide="ignore"):  # −∞ for what is impossible
            log_transitions = np.log(np.array([mdp.transitions for mdp in self.mdps]))
        object.__setattr__(self, "gains", np.array([each.gain for each in solutions]))
        object.__setattr__(self, "policies", np.array([each.policy for each in solutions]))
        object.__setattr__(self, "log_transitions", log_transitions)

    def mdp(self, parameter: float) -> MDP:
        """Return the MDP of a parameter."""
        if parameter not in self.parameters:
            raise KeyError(f"no parameter {parameter}; there are {self.parameters}")
        return self.mdps[self.parameters.index(parameter)]
