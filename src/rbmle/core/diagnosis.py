"""Statistics that a bandit keeps of rewards, features and predictions, and what they say is wrong."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rbmle.core.events import is_logged
from rbmle.core.offers import Arms
from rbmle.core.policy import Policy, Predicts, has
from rbmle.core.types import ArmId, Contexts, Decision

logger = logging.getLogger("rbmle.diagnosis")

HALVED = 500  # rewards after which older predictions count half
HALVED_DECISIONS = 4_000  # of which few are about a rarely played arm
CHECKED = 500  # rewards after which a bandit looks for what is clearly wrong
SCORED = 4  # every 4th prediction is compared with its reward
LOOKED = 16  # the features of every 16th reward are looked at
FEWEST = 200  # rewards, before which nothing is said of predictions and arms
FEWEST_SCORED = 50
FEWEST_OF_ARM = 20
FEWEST_LOOKED = 20
MOST_FEATURES = 4_096  # features of wider contexts, such as hashed ones, are not looked at
SIGMAS = 3.0  # standard errors from which on a difference is significant
LEAST_CHANCE = 1e-3  # of every arm, for a decision to be used in estimates for other arms
STARVED = 10  # rewards per arm on average; an arm with at most one by then is starved
WILD = 1_000.0  # times as wide as another feature
FAR = 10.0  # a placeholder is this many times as far from 0 as other values
# Numbers that often stand for a missing value.
PLACEHOLDERS = frozenset(s * n for n in (999.0, 9999.0, 99999.0, 999999.0) for s in (1, -1))

COUNT, BORN, WEIGHT, PAID, SQUARES, SQUARES_PAID, SQUARES_PAID_2 = range(7)  # columns of `arms`
PREDICTED = ("scored", "loss", "mean_loss", "excess", "excess_squares")
DECIDED = ("decided", "drawn", "paid", "paid_squares")
NONZERO, LEAST, MOST, ODD, SIZE = range(5)  # columns of `features`


@dataclass(slots=True, kw_only=True)
class Observed:
    """Sums over rewards, decisions, predictions and features; old decisions and predictions count less."""

    rounds: int = 0  # rewards
    total: float = 0.0  # of rewards
    least: float = 0.0
    most: float = 0.0
    odd: int = 0  # placeholders among them
    odd_value: float = 0.0  # the last of these
    scored: float = 0.0  # predictions
    loss: float = 0.0  # squared error of predictions
    mean_loss: float = 0.0  # squared error of the running mean of rewards
    excess: float = 0.0  # of `loss` over `mean_loss`
    excess_squares: float = 0.0
    decided: float = 0.0  # rewards of own decisions
    paid: float = 0.0
    paid_squares: float = 0.0
    drawn: float = 0.0  # those in which every arm had a chance
    looked: int = 0  # contexts whose features were looked at
    told: int = 0  # kinds that were logged, as bits
    found: int = 0  # kinds that were found at the last check
    found_before: int = 0  # and at the one before
    arms: Float[np.ndarray, "arms 7"] = field(default_factory=lambda: np.zeros((0, 7)))
    features: Float[np.ndarray, "features 5"] = field(default_factory=lambda: np.zeros((0, 5)))

    def add(
        self,
        contexts: Contexts,
        i: int,
        reward: float,
        decision: Decision | None = None,
        predict: Callable[[Contexts], float] | None = None,
    ) -> None:
        """Note the reward of a context, before it is learned."""
        n = self.rounds
        block = int(contexts.rows.blocks[i])
        self._make_room(block)
        if predict is not None and n % SCORED == 0 and n >= FEWEST // 4:
            self._score(reward, predict(contexts))
        self.least = reward if n == 0 or reward < self.least else self.least
        self.most = reward if n == 0 or reward > self.most else self.most
        if reward in PLACEHOLDERS:
            self.odd, self.odd_value = self.odd + 1, reward
        self.total += reward
        self.arms[block, COUNT] += 1
        if decision is not None:
            self._weigh(reward, self.arms[block], decision)
        if n % LOOKED == 0 and contexts.features <= MOST_FEATURES:
            self._look(contexts, i)
        self.rounds = n + 1
        if self.rounds % HALVED == 0:
            self._halve(PREDICTED)
        if self.rounds % HALVED_DECISIONS == 0:
            self._halve(DECIDED)
            self.arms[:, WEIGHT:] /= 2

    def add_arm(self, block: int) -> None:
        """Note that an arm may be played from now on."""
        self._make_room(block)
        self.arms[block, BORN] = self.rounds

    def _make_room(self, block: int) -> None:
        if (short := block + 1 - len(self.arms)) > 0:
            more = np.zeros((max(short, len(self.arms)), 7))
            self.arms = np.concatenate([self.arms, more])

    def _score(self, reward: float, expected: float) -> None:
        """Compare the error of a prediction with that of the mean of all rewards."""
        mean = self.total / self.rounds
        loss, usual = (reward - expected) ** 2, (reward - mean) ** 2
        self.scored += 1
        self.loss += loss
        self.mean_loss += usual
        self.excess += loss - usual
        self.excess_squares += (loss - usual) ** 2

    def _weigh(self, reward: float, arm: np.ndarray, decision: Decision) -> None:
        """Note the reward of an own decision, in proportion to 1 / its propensity where arms were drawn."""
        chances, weight = decision.probabilities, 1.0
        if chances is not None and decision.propensity and chances.min() >= LEAST_CHANCE:
            weight = 1.0 / decision.propensity
            self.drawn += 1
        self.decided += 1
        self.paid += reward
        self.paid_squares += reward * reward
        square = weight * weight
        arm[WEIGHT:] += (weight, weight * reward, square, square * reward, square * reward * reward)

    def _look(self, contexts: Contexts, i: int) -> None:
        """Note the features of a context."""
        if len(self.features) != contexts.features:
            self.features = np.zeros((contexts.features, 5))
        rows, F = contexts.rows, self.features
        entries = slice(rows.starts[i], rows.starts[i] + rows.lengths[i])
        at, values = rows.indices[entries], np.asarray(rows.values[entries], np.float64)
        is_first = F[at, NONZERO] == 0
        F[at, LEAST] = np.where(is_first, values, np.minimum(F[at, LEAST], values))
        F[at, MOST] = np.where(is_first, values, np.maximum(F[at, MOST], values))
        is_odd = np.isin(np.abs(values), (999.0, 9999.0, 99999.0, 999999.0))
        F[at, ODD] += is_odd
        F[at, SIZE] += np.where(is_odd, 0.0, np.abs(values))
        F[at, NONZERO] += values != 0
        self.looked += 1

    def _halve(self, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(self, name, getattr(self, name) / 2)

    def tell(self, arms: Arms | None) -> None:
        """Log each kind of serious finding once; one that may be chance, after three checks in a row."""
        serious = {
            KINDS.index(finding.kind): finding
            for finding in findings(self, arms)
            if finding.is_serious
        }
        for place, finding in serious.items():
            bit = 1 << place
            is_sure = not finding.is_chance or self.found & self.found_before & bit
            if is_sure and not self.told & bit:
                self.told |= bit
                if is_logged():
                    logger.warning("after %s rewards: %s", f"{self.rounds:,}", finding.text)
        self.found, self.found_before = sum(1 << place for place in serious), self.found


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that looks wrong."""

    kind: str  # one of KINDS
    text: str  # with numbers, and what to do
    is_serious: bool = True  # it is logged as well, once
    is_chance: bool = False  # it rests on noisy numbers, and may be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The health of a bandit: its numbers and what looks wrong; `str` is for people.

    >>> print(Diagnosis(rounds=0))
    0 rewards learned; the best fixed arm is not known (it takes a `floor` such as 0.05); nothing looks wrong
    """

    rounds: int  # rewards that were learned
    reward: float | None = None  # the mean reward of recent decisions
    best_arm: ArmId | None = None  # the fixed arm that would have paid most recently, if known
    best_arm_reward: float | None = None  # and its mean reward
    explained: float | None = (
        None  # share of the variance of recent rewards that predictions explain
    )
    findings: tuple[Finding, ...] = ()

    @property
    def is_well(self) -> bool:
        """Return whether nothing looks wrong."""
        return not self.findings

    def __str__(self) -> str:
        parts = [f"{self.rounds:,} rewards learned"]
        if self.reward is not None:
            parts.append(f"mean reward {self.reward:.4g} lately")
        if self.best_arm_reward is None:
            parts.append("the best fixed arm is not known (it takes a `floor` such as 0.05)")
        else:
            parts.append(f"always {self.best_arm!r} would have had {self.best_arm_reward:.4g}")
        if self.explained is not None:
            share = f"{self.explained:.1%}".replace("-", "−")
            parts.append(f"predictions explained {share} of the variance of rewards")
        if self.is_well:
            parts.append("nothing looks wrong")
        lines = [
            f"{'warning' if finding.is_serious else 'note'}: {finding.text}"
            for finding in self.findings
        ]
        return "\n".join(["; ".join(parts), *lines])


def diagnosis_of(observed: Observed, arms: Arms | None) -> Diagnosis:
    """Return the diagnosis that follows from the sums."""
    best = _best_arm(observed, arms)
    enough = observed.scored >= FEWEST_SCORED and observed.mean_loss > 0
    return Diagnosis(
        rounds=observed.rounds,
        reward=observed.paid / observed.decided if observed.decided else None,
        best_arm=None if best is None else best.arm,
        best_arm_reward=None if best is None else best.reward,
        explained=1 - observed.loss / observed.mean_loss if enough else None,
        findings=tuple(findings(observed, arms)),
    )


def findings(observed: Observed, arms: Arms | None) -> Iterator[Finding]:
    """Yield all that looks wrong."""
    if observed.rounds >= FEWEST // 2 and observed.least == observed.most:
        yield Finding(
            kind="equal rewards",
            text=f"all {observed.rounds:,} rewards are {observed.least:g}, so there is nothing to learn; check "
            "what is passed as `reward`",
        )
    typical = abs(observed.total - observed.odd * observed.odd_value) / max(
        observed.rounds - observed.odd, 1
    )
    if 0 < observed.odd <= observed.rounds / 2 and abs(observed.odd_value) > FAR * typical:
        yield Finding(
            kind="placeholder rewards",
            text=f"{observed.odd:,} rewards are {observed.odd_value:g}, which looks like a mark for missing "
            "values; leave such rounds out",
        )
    yield from _feature_findings(observed)
    if observed.scored >= FEWEST_SCORED and observed.mean_loss > 0:
        error = _error(observed.scored, observed.excess, observed.excess_squares)
        if (
            observed.excess / observed.scored > SIGMAS * error
            and observed.loss > 1.01 * observed.mean_loss
        ):
            ratio = observed.loss / observed.mean_loss
            yield Finding(
                kind="bad predictions",
                text=f"predictions have {ratio:.3g} times the squared error of the mean of all rewards, so "
                "contexts mislead the model; compare with a linear policy, and check rewards and features",
                is_chance=True,
            )
    best = _best_arm(observed, arms)
    if best is not None and observed.rounds >= FEWEST:
        mean = observed.paid / observed.decided
        error = math.hypot(
            best.error, _error(observed.decided, observed.paid, observed.paid_squares)
        )
        if best.reward - mean > SIGMAS * error:
            yield Finding(
                kind="below a fixed arm",
                text=f"decisions paid {mean:.4g} on average lately, and always playing {best.arm!r} would have "
                f"paid about {best.reward:.4g}; use another policy, or less exploration",
                is_chance=True,
            )
    if arms is not None and (starved := _starved_arms(observed, arms)):
        yield Finding(
            kind="starved arms",
            text=f"{_list_arms(starved)} had at most one reward in {observed.rounds:,}; a `floor` such as 0.05 "
            "tries every arm occasionally",
            is_serious=False,
        )


KINDS = (
    "equal rewards",
    "placeholder rewards",
    "placeholder features",
    "constant features",
    "wild scales",
    "bad predictions",
    "below a fixed arm",
    "starved arms",
)


def _feature_findings(observed: Observed) -> Iterator[Finding]:
    F, looked = observed.features, observed.looked
    if looked < FEWEST_LOOKED or not len(F):
        return
    filled = F[:, NONZERO]
    # A value that is not always there is 0 elsewhere.
    least = np.where(filled < looked, np.minimum(F[:, LEAST], 0.0), F[:, LEAST])
    most = np.where(filled < looked, np.maximum(F[:, MOST], 0.0), F[:, MOST])
    odd = F[:, ODD]
    typical = F[:, SIZE] / np.maximum(filled - odd, 1)
    is_odd = (odd > 0) & (odd <= filled / 2) & (np.maximum(most, -least) > FAR * typical)
    if is_odd.any():
        yield Finding(
            kind="placeholder features",
            text=f"{_places(is_odd)} are sometimes 999, −9999 or the like, which looks like a mark for "
            "missing values; give 0 or the mean instead, and a flag",
        )
    is_constant = least == most
    is_empty = is_constant & (most == 0)
    if (is_constant & ~is_empty).sum() > 1 or (is_empty.any() and filled.mean() > looked / 2):
        shown = is_constant if filled.mean() > looked / 2 else is_constant & ~is_empty
        yield Finding(
            kind="constant features",
            text=f"{_places(shown)} never change, so they carry no information; check that they are filled in",
            is_serious=False,
        )
    spread = np.where(is_constant | is_odd, np.nan, most - least)
    if (~np.isnan(spread)).sum() > 1 and np.nanmax(spread) > WILD * np.nanmin(spread):
        wide, narrow = int(np.nanargmax(spread)), int(np.nanargmin(spread))
        yield Finding(
            kind="wild scales",
            text=f"feature {wide} is from {least[wide]:.4g} to {most[wide]:.4g}, feature {narrow} from "
            f"{least[narrow]:.4g} to {most[narrow]:.4g}; bring features to one scale, about −1 to 1",
        )


class _Best(NamedTuple):
    arm: ArmId
    reward: float
    error: float  # standard


def _best_arm(observed: Observed, arms: Arms | None) -> _Best | None:
    """Return the arm that would have paid most if it had always been played; None if that is not known.

    Every arm must have had a chance in each decision: then weighting the rewards of an arm by 1 / propensity
    gives a (self-normalised) estimate over all contexts. A policy that never draws plays an arm only where it
    seems good; the mean of those rewards does not estimate what the arm would pay elsewhere, and would often
    raise an alarm about a good policy.
    """
    if arms is None or observed.decided < FEWEST or observed.drawn < 0.99 * observed.decided:
        return None
    best: _Best | None = None
    for id in arms.active:
        block = arms.block(id)
        if block >= len(observed.arms):
            continue
        weight, paid, squares, squares_paid, squares_paid_2 = observed.arms[block, WEIGHT:].tolist()
        if (
            squares <= 0 or weight * weight / squares < FEWEST_OF_ARM
        ):  # the effective number of rewards
            continue
        reward = paid / weight
        variance = squares_paid_2 - 2 * reward * squares_paid + reward**2 * squares
        error = math.sqrt(max(variance, 0.0)) / weight
        if best is None or reward - error > best.reward - best.error:
            best = _Best(id, reward, error)
    return best


def _starved_arms(observed: Observed, arms: Arms) -> list[ArmId]:
    """Return the arms that had at most one reward, though there was time for more."""
    starved = []
    for id in arms.active:
        row = (
            observed.arms[block] if (block := arms.block(id)) < len(observed.arms) else np.zeros(7)
        )
        if row[COUNT] <= 1 and observed.rounds - row[BORN] >= STARVED * len(arms.ids):
            starved.append(id)
    return starved


def expected_reward(policy: Policy[Any], state: Any) -> Callable[[Contexts], float] | None:
    """Return a function that predicts the reward of a context; None if the policy predicts nothing."""
    if not has(policy, Predicts):
        return None
    likelihood = getattr(getattr(policy, "model", None), "likelihood", None)
    mean = getattr(likelihood, "mean", float)  # b′; the identity for a squared loss
    return lambda contexts: float(mean(float(policy.predict(state, contexts)[0])))


def _error(n: float, total: float, squares: float) -> float:
    return math.sqrt(max(squares / n - (total / n) ** 2, 0.0) / n)


def _list_arms(ids: Sequence[ArmId]) -> str:
    shown = ", ".join(map(repr, ids[:5])) + (f" and {len(ids) - 5:,} more" if len(ids) > 5 else "")
    return f"arm{'s' if len(ids) > 1 else ''} {shown}"


def _places(mask: np.ndarray) -> str:
    places = np.flatnonzero(mask)
    shown = ", ".join(map(str, places[:5]))
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    return f"feature{'s' if len(places) > 1 else ''} {shown}{more}"
