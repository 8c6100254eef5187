"""Learning which parameter of a finite set is the true one: certainty equivalence and RBMLE.

Section 3 of the NeuralRBMLE paper compares the two on `closed_loop`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.base import Transition, Walk
from rbmle.control.mdp import MDP, solve
from rbmle.core.checks import check_not_negative
from rbmle.engine.markov import follow_likeliest, identify
from rbmle.policies.schedules import Power, Schedule

PARAMETERS = (0.01, 0.02, 0.03)  # Θ
TRUTH = 0.02
BLIND, TELLING = 0, 1
BLIND_REWARD, GOOD_REWARD, BAD_REWARD = 1.0, 1.1, 0.9
CACHED_SCHEDULES = 1024  # stretches of α(t); the runs of a study share them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """A finite set Θ of MDPs, one of which is the true one, with J*(θ) and an optimal policy of each.

    The likelihood of a parameter is that of transitions alone. Rewards may depend on θ, as in the paper's
    section 3, but are not observed.
    """

    parameters: tuple[float, ...]  # Θ
    mdps: tuple[MDP, ...]
    gains: Float[np.ndarray, " models"] = field(init=False)  # J*(θ)
    policies: Int[np.ndarray, "models states"] = field(init=False)  # optimal for θ
    log_transitions: Float[np.ndarray, "models states actions states"] = field(init=False)

    def __post_init__(self) -> None:
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
        with np.errstate(divide="ignore"):  # −∞ for impossible transitions
            log_transitions = np.log(np.array([mdp.transitions for mdp in self.mdps]))
        object.__setattr__(self, "gains", np.array([s.gain for s in solutions]))
        object.__setattr__(self, "policies", np.array([s.policy for s in solutions]))
        object.__setattr__(self, "log_transitions", log_transitions)

    def mdp(self, parameter: float) -> MDP:
        """Return the MDP of a parameter."""
        if parameter not in self.parameters:
            raise KeyError(f"no parameter {parameter}; there are {self.parameters}")
        return self.mdps[self.parameters.index(parameter)]


def closed_loop() -> Family:
    """Return the example in which maximum likelihood alone ends at a wrong parameter, and the bias helps.

    Two states, which action 0 changes with probability ½, and action 1 with ½ − θ. Action 0 pays 1; action 1
    pays 1.1 if θ = 0.02, and else 0.9. So J* is 1.1 for 0.02 and 1 for the others, whose best action never
    shows which parameter is the true one: under certainty equivalence only the transitions of the closed loop
    are identified, those of the actions that are taken (Borkar and Varaiya 1979, "Adaptive control of Markov
    chains, I: finite parameter set").

    >>> closed_loop().gains.round(12).tolist()
    [1.0, 1.1, 1.0]
    """
    return Family(parameters=PARAMETERS, mdps=tuple(_make_mdp(theta) for theta in PARAMETERS))


def _make_mdp(theta: float) -> MDP:
    P, R = np.empty((2, 2, 2)), np.empty((2, 2))
    for action, change in ((BLIND, 0.5), (TELLING, 0.5 - theta)):
        P[:, action] = [[1 - change, change], [change, 1 - change]]
    R[:, BLIND] = BLIND_REWARD
    R[:, TELLING] = GOOD_REWARD if theta == TRUTH else BAD_REWARD
    return MDP(transitions=P, rewards=R)


@dataclass(slots=True, kw_only=True)
class FiniteState:
    """The log-likelihood of each parameter, and of how many transitions it is."""

    log_likelihoods: Float[np.ndarray, " models"]
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteLearner(ABC):
    """Base class for learners of a `Family`: θ_t = argmax_θ { log L(θ) + α(t) log J*(θ) }.

    The action is that of an optimal policy for θ_t. Nothing is approximated: all of Θ is tried in each step.
    """

    family: Family

    @abstractmethod
    def alphas(self, first: int, last: int) -> Float[np.ndarray, " steps"]:
        """Return α(t) for t = first, …, last − 1."""

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> FiniteState:
        """Return the state before any transition."""
        shape = self.family.mdps[0].rewards.shape
        if rewards.shape != shape:
            raise ValueError(
                f"`rewards` must have the shape (states, actions) of the family, {shape}, got {rewards.shape}"
            )
        return FiniteState(log_likelihoods=np.zeros(len(self.family.parameters)))

    def estimate(self, state: FiniteState) -> float:
        """Return θ_t; of equals, the first."""
        return self.family.parameters[self._place_of_estimate(state)]

    def act(self, state: FiniteState, place: int, rng: np.random.Generator) -> int:
        """Return the best action for θ_t."""
        return int(self.family.policies[self._place_of_estimate(state), place])

    def update(self, state: FiniteState, seen: Transition, rng: np.random.Generator) -> None:
        """Add log P(s′ | s, a; θ) to the log-likelihood of each θ."""
        log_p = self.family.log_transitions
        state.log_likelihoods += log_p[:, seen.state, seen.action, seen.successor]
        state.round += 1

    def advance(self, state: FiniteState, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        first, family = state.round + 1, self.family
        alphas = self.alphas(first, first + end - walk.steps)
        walk.regret = follow_likeliest(
            walk.cumulative,
            walk.gaps,
            family.log_transitions,
            np.log(family.gains),
            family.policies,
            alphas,
            walk.key,
            walk.regret,
            walk.place,
            state.log_likelihoods,
        )
        state.round += len(alphas)

    def _place_of_estimate(self, state: FiniteState) -> int:
        t = state.round + 1
        (alpha,) = self.alphas(t, t + 1)
        return int(identify(state.log_likelihoods, np.log(self.family.gains), float(alpha)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteCE(FiniteLearner):
    """θ_t = argmax_θ Π_i p(s_i, s_{i+1}, a_i; θ), and the action of an optimal policy for θ_t.

    It can end at a wrong θ whose policy never shows that it is wrong (Borkar and Varaiya 1979).

    Mandl 1974, "Estimation and control in Markov chains".
    """

    def alphas(self, first: int, last: int) -> Float[np.ndarray, " steps"]:
        """Return zeros: there is no bias."""
        return np.zeros(last - first)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteRBMLE(FiniteLearner):
    """θ_t = argmax_θ J*(θ)^α(t) Π_i p(s_i, s_{i+1}, a_i; θ), with α(t) = ν · growth(t).

    The action is that of an optimal policy for θ_t, as in section 3 of the NeuralRBMLE paper.

    Kumar and Becker 1982, "A new family of optimal adaptive controllers for Markov chains".
    """

    bias: float = 1.0  # ν
    growth: Schedule = field(default_factory=Power)  # α(t) → ∞ and α(t) = o(t)

    def __post_init__(self) -> None:
        check_not_negative("bias", self.bias)

    def alphas(self, first: int, last: int) -> Float[np.ndarray, " steps"]:
        """Return α(t) for t = first, …, last − 1."""
        growths = _evaluate_schedule(self.growth, first, last)  # type: ignore[arg-type]  # frozen values
        return self.bias * growths


@lru_cache(maxsize=CACHED_SCHEDULES)
def _evaluate_schedule(growth: Schedule, first: int, last: int) -> Float[np.ndarray, " steps"]:
    return np.array([growth(t) for t in range(first, last)])
