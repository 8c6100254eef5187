"""Learners of unknown transition probabilities that plan in epochs: RBMLE, certainty equivalence, PSRL.

In an epoch a policy is kept; then a new plan is made. An epoch ends when some state and action were visited
twice as often as at its start (UCRL2: Jaksch, Ortner and Auer 2010; here with the visit that doubles, there
before the next one), or when it is one step longer than the epoch before (TSDE: Ouyang, Gagrani, Nayyar and
Jain 2017, "Learning unknown Markov decision processes: a Thompson sampling approach"). UCRL2 and KL-UCRL use
the first rule alone.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from rbmle.control.base import Transition, Walk
from rbmle.core.checks import check_positive
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose
from rbmle.engine.markov import DISTANCE, DIVERGENCE, KNOWN, LIKELIHOOD, follow, iterate
from rbmle.policies.schedules import Logarithm, Schedule

MOST_ITERATIONS = 20_000  # of a plan; an unfinished plan is followed nevertheless
PRECISION = 1e-6  # of the gain of a plan, in units of the range of rewards
NEVER = np.iinfo(np.int64).max


def log_likelihood(
    transitions: Float[np.ndarray, "states actions states"],
    counts: Int[np.ndarray, "states actions states"],
) -> float:
    """Return log L(P) = Σ N(s, a, s′) log P(s′ | s, a); −∞ if a transition was seen that P excludes.

    >>> import numpy as np
    >>> round(log_likelihood(np.array([[[0.25, 0.75]]]), np.array([[[1, 2]]])), 4)
    -1.9617
    """
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float((counts[seen] * np.log(transitions[seen])).sum())


def frequencies(
    counts: Int[np.ndarray, "states actions states"],
) -> Float[np.ndarray, "states actions states"]:
    """Return p̂, the P of the largest likelihood: N(s, a, s′)/N(s, a), and uniform where nothing was seen.

    >>> import numpy as np
    >>> frequencies(np.array([[[1, 3], [0, 0]]])).tolist()
    [[[0.25, 0.75], [0.5, 0.5]]]
    """
    visits = counts.sum(axis=2, keepdims=True)
    return np.where(visits > 0, counts / np.maximum(visits, 1), 1 / counts.shape[2])


@dataclass(slots=True, kw_only=True)
class EpochState:
    """Counts of transitions, and the policy of the current epoch."""

    rewards: Float[np.ndarray, "states actions"]  # R, known
    counts: Int[np.ndarray, "states actions states"]  # N(s, a, s′)
    visits: Int[np.ndarray, "states actions"]  # N(s, a)
    limits: Int[np.ndarray, "states actions"]  # of visits, at which the epoch ends
    values: Float[np.ndarray, " states"]  # h of the last plan, from which the next one starts
    policy: Int[np.ndarray, " states"]
    gain: float  # of the last plan
    round: int = 0
    begun: int = 0  # the round in which the epoch began
    deadline: int = 0  # the round in which it ends at the latest

    @staticmethod
    def before(rewards: Float[np.ndarray, "states actions"]) -> "EpochState":
        """Return the state before any transition and any plan."""
        states, actions = rewards.shape
        return EpochState(
            rewards=np.array(rewards, np.float64),
            counts=np.zeros((states, actions, states), np.int64),
            visits=np.zeros((states, actions), np.int64),
            limits=np.ones((states, actions), np.int64),
            values=np.zeros(states),
            policy=np.zeros(states, np.int64),
            gain=float(rewards.max()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochLearner(ABC):
    """Base class for learners that follow one policy in each epoch; subclasses differ in the plan."""

    @abstractmethod
    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> EpochState:
        """Return the state before any transition, with a first plan."""
        state = EpochState.before(rewards)
        self.replan(state, rng)
        return state

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        """Return the action of the policy of this epoch."""
        return int(state.policy[place])

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        """Count a transition, and make a new plan if the epoch is over."""
        state.counts[seen] += 1
        state.visits[seen[:2]] += 1
        state.round += 1
        if state.visits[seen[:2]] >= state.limits[seen[:2]] or state.round >= state.deadline:
            self.replan(state, rng)

    def advance(self, state: EpochState, walk: Walk, end: int) -> None:
        """Follow the policy of each epoch until the walk has taken `end` steps."""
        while walk.steps < end:
            before = walk.steps
            stop = min(end, before + state.deadline - state.round)
            walk.regret, is_over = follow(
                walk.cumulative,
                walk.gaps,
                state.policy,
                state.limits,
                stop,
                walk.key,
                walk.regret,
                walk.place,
                state.counts,
                state.visits,
            )
            state.round += walk.steps - before
            if is_over or state.round >= state.deadline:
                self.replan(state, walk.stream(Purpose.UPDATE))


def plan(
    state: EpochState,
    kind: int,
    p: Float[np.ndarray, "states actions states"],
    slack: Float[np.ndarray, "states actions"],
    precision: float = PRECISION,
) -> None:
    """Begin an epoch: plan by value iteration of this kind, starting from the values of the last plan."""
    R = state.rewards
    tolerance = precision * float(np.ptp(R))
    gain, _ = iterate(kind, p, R, slack, tolerance, MOST_ITERATIONS, state.values, state.policy)
    state.gain = float(gain)
    state.limits = state.visits + np.maximum(state.visits, 1)
    length = state.round - state.begun
    state.begun, state.deadline = state.round, state.round + length + 1


def plan_as_known(state: EpochState, p: Float[np.ndarray, "states actions states"]) -> None:
    """Plan as if p were the true transition probabilities."""
    plan(state, KNOWN, p, np.zeros_like(state.rewards))


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularRBMLE(EpochLearner):
    """max_{π,P} Σ_s μ(s) { R(s, π(s)) − N(s, π(s)) · J₀/α(t) · KL(p̂(· | s, π(s)) ‖ P(· | s, π(s))) }.

    μ is how often the chain of π and P is in each state, J₀ and h₀ are gain and values of the plan before.
    Up to a constant, log { J^α L(P) } = α log J(π, P) − Σ_{s,a} N KL(p̂ ‖ P). Two things are changed: log J is
    its tangent at J₀, and the loss of a state is weighted by how often the chain is there, where the likelihood
    weights all states equally. The result is an MDP, solved by the iteration
    h(s) ← max_a { R(s, a) + max_q { q·h − N J₀/α · KL(p̂ ‖ q) } }. docs/explanation/control.md has more.

    α(t) = ν · growth(t) · J₀/σ, with σ the span of h₀ but at most S times the range of rewards; so one ν serves
    rewards and chains of any scale. Unless it is scaled, α(t) = ν · growth(t).
    """

    bias: float = 2.0  # ν, tuned on seeds that are not reported
    growth: Schedule = field(default_factory=Logarithm)
    is_scaled: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.bias < float("inf"):
            raise SettingError(
                f"`bias` must be a finite number above 0, got {self.bias}; TabularCE has none"
            )

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        growth = self.bias * self.growth(state.round + 1)
        slack = state.visits * self._unit(state) / growth
        plan(state, LIKELIHOOD, frequencies(state.counts), slack)

    def _unit(self, state: EpochState) -> float:
        """Return J₀/α(t) · ν · growth(t): σ, or J₀ where α(t) is not scaled."""
        low, high = float(state.rewards.min()), float(state.rewards.max())
        if self.is_scaled:
            return float(min(np.ptp(state.values), len(state.values) * (high - low)))
        if not (low >= 0 and high > 0):
            raise ValueError(
                "unscaled RBMLE needs rewards of 0 or more, and one above 0, since it takes the logarithm "
                f"of J; got rewards from {low:g} to {high:g}; add a constant to all of them"
            )
        return max(state.gain, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularCE(EpochLearner):
    """Certainty equivalence, the baseline: an optimal policy for p̂(s′ | s, a) = N(s, a, s′)/N(s, a).

    p̂ is uniform where nothing was seen.
    """

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        plan_as_known(state, frequencies(state.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class PSRL(EpochLearner):
    """An optimal policy for P(· | s, a) ~ Dirichlet(c + N(s, a, ·)), drawn once in each epoch.

    The paper has episodes of a fixed length; here there is one endless episode, divided into UCRL2's epochs.

    Osband, Russo, Van Roy 2013, "(More) efficient reinforcement learning via posterior sampling".
    """

    prior: float = 1.0  # c, of each next state

    def __post_init__(self) -> None:
        if not 0 < self.prior < float("inf"):
            raise SettingError(f"`prior` must be a finite number above 0, got {self.prior}")

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        drawn = rng.standard_gamma(self.prior + state.counts)
        plan_as_known(state, drawn / drawn.sum(axis=2, keepdims=True))


def check_confidence(failure: float, width: float) -> None:
    """Raise SettingError unless 0 < failure < 1 and the width is a finite number above 0."""
    if not 0 < failure < 1:
        raise SettingError(f"`failure` must be a probability between 0 and 1, got {failure}")
    check_positive("width", width)


def plan_within(state: EpochState, kind: int, radius: Float[np.ndarray, "states actions"]) -> None:
    """Plan to 1/√t for the best MDP within a radius of p̂; the epoch ends by visits alone."""
    t = state.round + 1
    plan(state, kind, frequencies(state.counts), radius, precision=1 / t**0.5)
    state.deadline = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class UCRL2(EpochLearner):
    """An optimal policy for the best MDP with ‖p(· | s, a) − p̂(· | s, a)‖₁ ≤ √(14 S log(2 A t/δ) / N(s, a)).

    Rewards are known, so only transitions have a confidence set. `width` multiplies its radius; it is 1 in the
    paper.

    Jaksch, Ortner, Auer 2010, "Near-optimal regret bounds for reinforcement learning".
    """

    failure: float = 0.05  # δ
    width: float = 1.0  # of the confidence set; below 1 no bound is claimed

    def __post_init__(self) -> None:
        check_confidence(self.failure, self.width)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        (states, actions), t = state.rewards.shape, state.round + 1
        logarithm = math.log(2 * actions * t / self.failure)
        radius = np.sqrt(14 * states * logarithm / np.maximum(state.visits, 1))  # Eq. (4) there
        plan_within(state, DISTANCE, self.width * radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class KLUCRL(EpochLearner):
    """An optimal policy for the best MDP with KL(p̂(· | s, a) ‖ p(· | s, a)) ≤ C/N(s, a).

    C = S {B + log(B + 1/log t) [1 + 1/(B + 1/log t)]} with B = log(2e S² A log t/δ), as in the theorem of the
    paper. There t is the horizon, which must be known; here it is the step, and at least 2. Where nothing was
    seen, C/N is infinite and any p is possible. Rewards are known, so only transitions have a confidence set.
    With `width` w the bound is wC/N: the theorem has w = 1, which is far wider than necessary.

    Filippi, Cappé, Garivier 2010, "Optimism in reinforcement learning and Kullback-Leibler divergence": UCRL2
    with Kullback and Leibler's divergence instead of the L1 distance.
    """

    failure: float = 0.05  # δ
    width: float = 1.0  # of the confidence set; below 1 no bound is claimed

    def __post_init__(self) -> None:
        check_confidence(self.failure, self.width)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        states, actions = state.rewards.shape
        C = self.width * self.constant(states, actions, state.round + 1)
        radius = np.full(state.visits.shape, np.inf)
        np.divide(C, state.visits, out=radius, where=state.visits > 0)
        plan_within(state, DIVERGENCE, radius)

    def constant(self, states: int, actions: int, t: int) -> float:
        """Return C, by which N(s, a) KL is bounded.

        >>> round(KLUCRL().constant(states=6, actions=2, t=1000), 1)
        81.1
        """
        logarithm = math.log(max(t, 2))
        B = math.log(2 * math.e * states**2 * actions * logarithm / self.failure)
        x = B + 1 / logarithm
        return states * (B + math.log(x) * (1 + 1 / x))
