"""Which events are learned before they are settled, and what a reward counts that comes after that.

An event takes its turn, in the order of decisions: it is learned with its reward if one has come, else with
the default reward d. A reward r that comes later is an observation of its own (a fake negative and then a
positive, as in Ktena et al. 2019), with

    y = d + (1 + q) (r − d),    q the part of all plays that get a reward.

So the mean is right: of n like plays let q n get the reward r, l n of them late; the (1 + l) n observations
sum to n d + (q − l) n (r − d) + l n (1 + q) (r − d) = (1 + l) n (d + q (r − d)). Plays that are rewarded with
another probability p are drawn towards the others, by (1 + q)/(1 + p) at most, and keep their order.

What has no reward yet but will get one counts too little. It would count too much if it had to wait for
long: a model that knows nothing of a new action goes on to try it. So one event waits for ten learned.
"""

import msgspec

PART = 10  # of the events learned, one in so many may wait
MOST = 2_000  # events that may wait


class Foresight(msgspec.Struct):
    """The events that wait for their turn, and what is known of rewards; a part of the checkpoint."""

    waiting: list[int] = msgspec.field(default_factory=list)  # the seqs of their decisions
    learned: int = 0  # events that the model has learned in their turn
    plays: int = 0  # of events that have taken a turn, or wait for it
    rewarded: int = 0  # of these, those that have got a reward

    def due(self, seq: int) -> list[int]:
        """Return whose turn it is once the decision `seq` waits too; nothing changes."""
        count = self._over
        return [*self.waiting, seq] if count > len(self.waiting) else self.waiting[:count]

    def enter(self, seq: int, plays: int) -> None:
        """Let a decision wait, and those go whose turn it is."""
        count = self._over
        self.waiting.append(seq)
        del self.waiting[:count]
        self.plays += plays

    @property
    def _over(self) -> int:
        """Return how many too many would wait with one more."""
        return max(0, len(self.waiting) + 1 - min(self.learned // PART, MOST))

    def late(self, reward: float, default: float) -> float:
        """Return y, what a reward counts whose event was learned with the default.

        >>> Foresight(plays=4, rewarded=1).late(1.0, 0.0)
        1.25
        """
        part = min(1.0, self.rewarded / self.plays) if self.plays else 0.0
        return default + (1.0 + part) * (reward - default)

    def begin_anew(self) -> None:
        """Take it that the model has learned nothing."""
        self.learned = 0
