"""Learning which parameter of a finite set is the true one: what the learners of a `Family` share."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from rbmle.control.base import Transition
from rbmle.control.family import Family
from rbmle.control.walk import Walk
from rbmle.engine.markov_chain import follow_likeliest, identify
from rbmle.policies.schedules import Schedule

KEPT = 1024  # stretches of α(t) that are kept; runs of a study share them


@dataclass(slots=True, kw_only=True)
class FiniteState:
    """The log-likelihood of each parameter, and how many transitions it is of."""

    log_likelihoods: Float[np.ndarray, " models"]
    round: int = 0


def begin(family: Family, rewards: Float[np.ndarray, "states actions"]) -> FiniteState:
    """Return the state before any transition."""
    shape = family.mdps[0].rewards.shape
    if rewards.shape != shape:
        raise ValueError(
            f"`rewards` must have the shape (states, actions) of the family, {shape}, got {rewards.shape}"
        )
    return FiniteState(log_likelihoods=np.zeros(len(family.parameters)))


def place_of_estimate(family: Family, state: FiniteState, alpha: float) -> int:
    """Return the place of argmax_θ { log L(θ) + α log J*(θ) }, the first of equals."""
    return int(identify(state.log_likelihoods, np.log(family.gains), alpha))


def learn(family: Family, state: FiniteState, seen: Transition) -> None:
    """Add log P(s′ | s, a; θ) to the log-likelihood of each θ."""
    state.log_likelihoods += family.log_transitions[:, seen.state, seen.action, seen.successor]
    state.round += 1


def advance(
    family: Family, state: FiniteState, walk: Walk, alphas: Float[np.ndarray, " steps"]
) -> None:
    """Take as many steps as there are α(t)."""
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


def alphas(bias: float, growth: Schedule, first: int, last: int) -> Float[np.ndarray, " steps"]:
    """Return α(t) = bias · growth(t) for t = first, …, last − 1."""
    return bias * _values(growth, first, last)  # type: ignore[arg-type]  # schedules are frozen values


@lru_cache(maxsize=KEPT)
def _values(growth: Schedule, first: int, last: int) -> Float[np.ndarray, " steps"]:
    """Return growth(t) for t = first, …, last − 1."""
    return np.array([growth(t) for t in range(first, last)])
