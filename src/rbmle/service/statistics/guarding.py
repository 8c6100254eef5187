"""Conservative mode: what the policy may still play, by what was earned (see `evaluation.conservative`).

Front ends decide before a play is in the log, so the learner grants room in advance. A grant says for how
many plays there is room after all plays of the log up to a record, with the worst assumed of those whose
reward is not final. Each front end may use an eighth of it, so that up to eight may decide at the same time;
it counts its costly plays, and each play in the log has its number, so a newer grant says which ones it knows.
"""

import math

import msgspec

from rbmle.evaluation.conservative import SHARES, Guard, level_of
from rbmle.service.log.records import Decided, Guarded, GuardRule, Play

PARTS = 8  # of a grant, one for each front end
REMEMBERED = 64  # front ends whose numbers are remembered; those of a restart are new


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """How many plays there is room for after a record, by share of the baseline."""

    rule: GuardRule
    plays: list[int]
    fronts: dict[str, int]  # the last number of each front end that is counted

    def share(self, front: str, number: int) -> float:
        """Return the smallest share of the baseline for the next play of a front end; 1: only the baseline."""
        unknown = number - self.fronts.get(front, 0)
        pairs = zip(SHARES, self.plays, strict=True)
        return min([share for share, plays in pairs if plays // PARTS > unknown], default=1.0)


class GuardReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of conservative mode."""

    plays: int  # that are counted
    surplus: float  # what they earned above (1 − α) of the baseline, estimated; rewards count from 0 to 1
    low: float  # what the surplus is above, at all times with a probability of 1 − δ
    pending: float  # what plays without a final reward may cost at most
    share: float  # of the baseline in the next play; 1: the policy does not play


class GuardBook(msgspec.Struct, kw_only=True):
    """The plays of conservative mode since its settings changed: a part of the fold."""

    rule: GuardRule
    guard: Guard
    pending: list[int] = msgspec.field(default_factory=lambda: [0] * len(SHARES))  # by share
    fronts: dict[str, int] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(rule: GuardRule) -> "GuardBook":
        return GuardBook(rule=rule, guard=Guard(rule.tolerance, rule.error))

    def decide(self, decided: Decided, guarded: Guarded) -> None:
        """Assume the worst of a play that may cost something, until it is settled."""
        for play in decided.plays:
            if guarded.is_costly(play):
                self.pending[level_of(guarded.share) - 1] += 1
        self.fronts.pop(guarded.front, None)
        self.fronts[guarded.front] = guarded.number
        while len(self.fronts) > REMEMBERED:
            del self.fronts[next(iter(self.fronts))]

    def settle(self, play: Play, guarded: Guarded, reward: float) -> None:
        is_costly = guarded.is_costly(play)
        if is_costly:
            self.pending[level_of(guarded.share) - 1] -= 1
        part = (reward - self.rule.low) / (self.rule.high - self.rule.low)
        self.guard.add(
            guarded.share if is_costly else 1.0,
            is_baseline=play.chosen == play.baseline,
            reward=min(max(part, 0.0), 1.0),
        )

    @property
    def pending_loss(self) -> float:
        """Return what pending plays may cost at most; those that a reset dropped stay among them."""
        return sum(
            self.guard.loss(share) * count
            for share, count in zip(SHARES, self.pending, strict=True)
        )

    def grant(self) -> Grant:
        # Each play counts as one with the smallest share, whichever it gets.
        loss = max(self.guard.loss(SHARES[-1]), 1e-9)
        rooms = self.guard.rooms(self.pending_loss)
        plays = [max(math.floor(room / loss), 0) for room in rooms]
        return Grant(rule=self.rule, plays=plays, fronts=dict(self.fronts))

    def report(self) -> GuardReport:
        return GuardReport(
            plays=self.guard.plays,
            surplus=self.guard.surplus,
            low=self.guard.lower_bound(),
            pending=self.pending_loss,
            share=self.grant().share("", 0),
        )
