"""Never below the baseline: a policy plays only while what was earned leaves room for it.

Rewards are brought to [0, 1]. In round t the policy proposes an arm, and the baseline has the arm b. With the
share κ the baseline is played whatever was proposed: R_t = κ μ_b + (1 − κ) μ_proposed is the mean reward of the
round, and B_t = μ_b that of the baseline. For the tolerance α the promise is that, with a probability of 1 − δ,

    Σ R_s ≥ (1 − α) Σ B_s    at all times t at once.

Let p be the probability of b given the proposal (1 if it was proposed, else κ), w = 1[b is played]/p, and

    ξ = r − (1 − α) (q + w (r − q)),

whose mean is R_t − (1 − α) B_t for any q that is known before the round. So Σ ξ minus the boundary u of
`rbmle.evaluation.sequences` is a lower bound of the surplus S_t = Σ R_s − (1 − α) Σ B_s, valid at all times, of
what was observed and no model. In a round with the baseline S grows by α μ_b ≥ 0. In one where the policy plays
with the share 1 − κ it falls by 1 − α − κ at most, since R_t ≥ κ B_t. So it may play if

    Σ ξ − u(Σ (ξ − ξ̂)²) − Σ_pending (1 − α − κ_s)⁺ − (1 − α − κ)⁺ ≥ 0,

and otherwise the baseline plays: S_t never falls below 0 unless the sequence fails, which has probability δ.

This is the rule of conservative bandits (Wu et al. 2016; Kazerouni et al. 2017 for linear ones; C-SquareCB and
C-FastCB, arXiv 2412.06165, for any regression). Their bounds trust the model, and ours does not. That costs a
share κ of the baseline in every round, without which Σ B could not be known while the policy plays. The
boundary has the scale 1/κ, so κ begins with 1/2, and falls as soon as the bound with the wider scale leaves
room as well. Each scale has an equal part of δ.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any, cast

import msgspec
import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import EligibilityError, RepeatError, RewardError, SettingError
from rbmle.core.randomness import Purpose, uniform
from rbmle.core.types import ArmId, Decision, Encoding

SHARES = (0.5, 0.25, 0.1)  # κ of the baseline, while the policy may play
OPTIMAL = 100.0  # Σ (ξ − ξ̂)² for which the boundary is as low as it can be
STEP = 1.01  # sums of squares are rounded up by at most this factor, so boundaries can be cached
PRIOR = 8.0  # plays that means begin with
GUESS = 0.5  # their mean


class Guard(msgspec.Struct):
    """The surplus over (1 − α) times the baseline, and how far it can be trusted."""

    tolerance: float  # α
    error: float  # δ
    plays: int = 0
    surplus: float = 0.0  # Σ ξ
    squares: float = 0.0  # Σ (ξ − ξ̂)²
    level: int = 0  # how many of SHARES the plays so far have needed
    baseline_w: float = 0.0  # Σ w
    baseline_wr: float = 0.0
    others: int = 0  # plays of other arms
    others_reward: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("tolerance", self.tolerance), ("error", self.error)):
            if not 0 < value < 1:
                raise SettingError(f"`{name}` must be between 0 and 1, got {value!r}")

    def add(self, chance: float, *, is_baseline: bool, reward: float) -> None:
        """Count a round: the chance of the baseline given the proposal, what was played, and r in [0, 1]."""
        keep = 1 - self.tolerance
        q = (self.baseline_wr + PRIOR * GUESS) / (self.baseline_w + PRIOR)
        m = (self.others_reward + PRIOR * q) / (self.others + PRIOR)
        w = 1 / chance if is_baseline else 0.0
        xi = reward - keep * (q + w * (reward - q))
        expected = chance * q + (1 - chance) * m - keep * q
        self.plays += 1
        self.surplus += xi
        self.squares += (xi - expected) ** 2
        if chance < 1:
            self.level = max(self.level, level_of(chance))
        self.baseline_w += w
        self.baseline_wr += w * reward
        if not is_baseline:
            self.others += 1
            self.others_reward += reward

    def lower_bound(self, level: int = 0) -> float:
        """Return what the surplus is above, at all times at once with a probability of at least 1 − δ.

        With a level it is what the bound would be if a play had needed that level.
        """
        level = max(level, self.level, 1)
        return self.surplus - _boundary(
            self.squares, self.error / len(SHARES), 1 / SHARES[level - 1]
        )

    def loss(self, share: float) -> float:
        """Return by how much the surplus can fall in a round in which the policy proposes another arm."""
        return max(1 - self.tolerance - share, 0.0)

    def rooms(self, pending: float = 0.0) -> list[float]:
        """Return what may be lost with each of SHARES, beside a loss that is pending."""
        return [self.lower_bound(level) - pending for level in range(1, len(SHARES) + 1)]

    def share(self, pending: float = 0.0) -> float:
        """Return the smallest share of the baseline for which there is room; 1: the baseline alone."""
        pairs = zip(SHARES, self.rooms(pending), strict=True)
        return min([share for share, room in pairs if room >= self.loss(share)], default=1.0)


def level_of(chance: float) -> int:
    """Return how many of SHARES a chance of the baseline needs.

    >>> level_of(0.5), level_of(0.3), level_of(0.1)
    (1, 2, 3)
    """
    return next(level for level, share in enumerate(SHARES, 1) if share <= chance)


def _boundary(squares: float, alpha: float, scale: float) -> float:
    step = math.ceil(math.log(squares) / math.log(STEP)) if squares > 1 else 0
    return _boundary_at(step, alpha, scale)


@lru_cache(maxsize=2**14)
def _boundary_at(step: int, alpha: float, scale: float) -> float:
    from rbmle.evaluation.sequences import boundary  # it imports SciPy, which takes a second

    return boundary(STEP**step, alpha, scale, OPTIMAL)


@dataclass(slots=True)
class _Round:
    """A decision whose reward is not counted yet."""

    chance: float  # of the baseline, given the proposal
    is_baseline: bool  # the baseline was played
    loss: float  # that is possible
    reward: float | None = None  # in [0, 1]; None: it has not come


class ConservativeBandit:
    """A bandit that never earns less than (1 − α) of the baseline, with a probability of 1 − δ at all times.

    >>> from rbmle import Bandit
    >>> from rbmle.evaluation import ConservativeBandit
    >>> bandit = Bandit("lin-ucb", arms=["usual", "new"], features=2)
    >>> safe = ConservativeBandit(bandit, baseline="usual", tolerance=0.1, error=0.05)
    >>> decision = safe.decide([1.0, 0.0])  # the baseline, until it has earned some room
    >>> decision.arm, decision.propensity
    ('usual', 1.0)
    >>> safe.learn(decision, reward=1.0)

    Every decision needs its reward, in any order; while one is missing, the worst is assumed of it, and later
    ones do not count. What is promised is of mean rewards: noise can always take what was earned below.
    """

    def __init__(
        self,
        bandit: Bandit,
        *,
        baseline: ArmId | None = None,
        tolerance: float = 0.1,
        error: float = 0.05,
        rewards: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Guard a bandit, which decides and learns as before.

        Parameters
        ----------
        bandit
            Its policy proposes. For exact propensities where that draws random numbers, give the bandit a
            `floor` or `draws`.
        baseline
            The arm that would be played without a bandit; without it, the first eligible arm. `decide` can
            name another one.
        tolerance
            α: which part of the baseline's reward may be lost.
        error
            δ: the probability with which more may be lost.
        rewards
            The smallest and the largest possible reward. Rewards are measured from the smallest.

        """
        self.bandit, self.baseline = bandit, baseline
        self.low, self.high = rewards
        if not -math.inf < self.low < self.high < math.inf:
            raise SettingError(
                f"`rewards` must be two finite numbers, the smaller first, got {rewards}"
            )
        self.guard = Guard(tolerance, error)
        self._pending: OrderedDict[str, _Round] = OrderedDict()  # in the order of decisions
        self._loss = 0.0  # that is pending
        self._lock = Lock()

    def decide(
        self,
        x: Any = None,
        *,
        baseline: ArmId | None = None,
        eligible: Any = None,
        id: str | None = None,
        floor: float | None = None,
    ) -> Decision:
        """Return the arm to play: the policy's if there is room for it, else the baseline.

        The arguments are those of `Bandit.decide`, and the baseline of this decision.
        """
        proposal = self.bandit.decide(x, eligible=eligible, id=id, floor=floor)
        usual = baseline if baseline is not None else self.baseline
        usual = proposal.arms[0] if usual is None else usual
        if usual not in proposal.arms:
            raise EligibilityError(
                f"the baseline {usual!r} is not eligible; it must be one of the arms"
            )
        with self._lock:
            if proposal.id in self._pending:
                raise RepeatError(
                    f"decision {proposal.id!r} was made before, and has no reward yet"
                )
            share = self.guard.share(self._loss)
            chance = 1.0 if proposal.arm == usual else share
            coin = uniform(self.bandit.seed, Purpose.CHOOSE, f"{proposal.id}/baseline")
            is_baseline = coin < chance
            loss = 0.0 if chance == 1 else self.guard.loss(share)
            self._pending[proposal.id] = _Round(chance, is_baseline, loss)
            self._loss += loss
        return self._mix(proposal, x, usual, share, is_baseline=is_baseline)

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn the reward of a decision of this bandit."""
        if not self.low <= reward <= self.high:
            raise RewardError(
                f"the reward is {reward}; it must be from {self.low:g} to {self.high:g}, as `rewards` says"
            )
        with self._lock:
            waiting = self._pending.get(decision.id)
            if waiting is None or waiting.reward is not None:
                raise RepeatError(
                    f"decision {decision.id!r} is not one that waits for its reward; learn each one once, "
                    "with the ConservativeBandit that made it"
                )
            waiting.reward = (reward - self.low) / (self.high - self.low)
            while (
                self._pending and (first := next(iter(self._pending.values()))).reward is not None
            ):
                # In the order of decisions: which rewards come first may depend on what they are.
                self.guard.add(first.chance, is_baseline=first.is_baseline, reward=first.reward)
                self._loss -= first.loss
                self._pending.popitem(last=False)
            if not self._pending:
                self._loss = 0.0  # without what rounding has left
        self.bandit.learn(decision, reward)

    def _mix(
        self, proposal: Decision, x: Any, usual: ArmId, share: float, *, is_baseline: bool
    ) -> Decision:
        """Return the decision that is made of a proposal, with its exact propensities."""
        place = proposal.arms.index(usual)
        chances = proposal.probabilities
        if share == 1:
            chances = np.zeros(len(proposal.arms))
        if chances is not None:
            chances = (1 - share) * chances
            chances[place] += share
        if is_baseline and proposal.arm != usual:
            is_shared = self.bandit.encoding is Encoding.DISJOINT
            row = x if is_shared else _row(x, place)
            context = self.bandit.decide(row, eligible=[usual], id=proposal.id).context
            proposal = replace(proposal, arm=usual, context=context)
        played = proposal.arms.index(proposal.arm)
        return replace(
            proposal,
            probabilities=chances,
            propensity=None if chances is None else float(chances[played]),
        )


def _row(x: Any, place: int) -> Any:
    """Return the context of one arm alone, from those of all."""
    if hasattr(x, "iloc"):
        return x.iloc[[place]]
    return x[[place]] if isinstance(x, np.ndarray) else [cast("Any", x)[place]]
