"""Shadow policies: they learn from the service's log, and are judged on what it has played.

A process with a low priority follows the log. Once the reward of a play is final, each shadow says with which
probabilities π it would have played, exploring as the service does, and then learns. With the logged
probabilities p, the weight w = π(a)/p(a) and the sums of `statistics.lift`, the difference of a shadow from
what was played has an interval that is valid at all times. All shadows are looked at together, so each of K
has 1/K of the 5 % by which some interval may be wrong.

A shadow is promoted as it is, with all that it has learned. Nothing but its promotion is in the log, and after
a restart the log is read again.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing.connection import Connection

import numpy as np

from rbmle.core.choosing import shares
from rbmle.core.errors import FeatureError
from rbmle.core.events import without_logging
from rbmle.evaluation.sums import SMALLEST
from rbmle.service.exports.evaluator import NICE, STOP_SECONDS
from rbmle.service.learner.fold import Budget
from rbmle.service.learner.joining import Joiner, Listener, Settled
from rbmle.service.log import LogWatcher, open_log
from rbmle.service.log.base import (
    DuplicateRequest,
    Log,
    LogChanged,
    LogUnavailable,
    Stored,
    origin_of,
)
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    OPERATOR,
    SHARED_ALIKE,
    Imported,
    Modelled,
    Play,
    PromotionAsked,
    Record,
    Reset,
    row_of,
)
from rbmle.service.model.report import ShadowReport
from rbmle.service.model.settings import (
    ModelSettings,
    WrittenSettings,
    offer_of,
    parse_shadow,
    save_bytes,
    settings_of,
)
from rbmle.service.settings import LearningMode, Promotion, ServiceConfiguration
from rbmle.service.statistics.estimates import FEWEST, Weight, probability
from rbmle.service.statistics.lift import LiftSums, Means
from rbmle.service.statistics.lift_intervals import CONFIDENCE, lower_bound

BATCH = 256  # records that are read at a time
LOOK_SECONDS = 0.5
REPORT_SECONDS = 1.0


class Shadow:
    """A policy that learns from every final reward, after it was judged on it."""

    def __init__(self, name: str, model: ModelSettings) -> None:
        self.name, self.model = name, model
        self.bandit = model.start()
        self._budget = Budget(prefers_joined=False)
        self.begin(0)

    def begin(self, seq: int) -> None:
        """Judge decisions after a record, as another model decides them."""
        self.sums, self._means, self._after = LiftSums(), Means(), seq

    def take(
        self, settled: Sequence[Settled], configuration: ServiceConfiguration, now: int
    ) -> None:
        """Be judged on plays that settled together, by what was known before, and learn them."""
        judged = [slot for slot in settled if slot.stored.seq > self._after and _is_judged(slot)]
        self._judge(judged, configuration)
        learned = [slot for slot in settled if _is_learned(slot)]
        if not learned:
            return
        joined = [slot.is_joined for slot in learned]
        is_fitted = np.array(self._budget.select(joined, now, self.model.fits_per_second))
        plays = [(slot.decided, slot.play) for slot in learned]
        contexts = self.model.chosen_contexts(plays, self.bandit)
        rewards = np.array([slot.reward for slot in learned])
        with without_logging():
            self.bandit.learn_all(
                contexts, rewards, is_fitted=is_fitted, times=[now] * len(learned)
            )

    def _judge(self, settled: Sequence[Settled], configuration: ServiceConfiguration) -> None:
        if not settled:
            return
        offers = [
            offer_of(
                slot.decided.context,
                slot.play.features,
                [slot.decided.actions[place] for place in slot.play.eligible],
            )
            for slot in settled
        ]
        floor = configuration.exploration
        sharpness = self.model.sharpness_of(self.bandit) if floor > 0 else 0.0
        contexts = self.model.contexts(offers, self.bandit)
        names = [f"{slot.stored.row.event}/{slot.play.slot}" for slot in settled]
        sizes = [len(slot.play.eligible) for slot in settled]
        choices = self.bandit.choose_many(contexts, sizes, names, floor, sharpness)
        for slot, choice in zip(settled, choices, strict=True):
            chances = choice.probabilities
            if chances is None:
                (chances,) = shares(choice.indices[None])
            self.sums.add(weigh(slot.play, chances), slot.reward, self._means)

    def report(self, tail: float, since: int, *, is_behind: bool) -> ShadowReport:
        """Return what it would have earned; `tail` is the error of each end of its interval."""
        sums = self.sums
        is_known = sums.plays >= FEWEST and not sums.beyond
        ends = (
            (lower_bound(sums, -1.0, 1.0, tail), -lower_bound(sums, 1.0, -1.0, tail))
            if is_known
            else (None, None)
        )
        plays = max(sums.plays, 1)
        return ShadowReport(
            policy=self.name,
            plays=sums.plays,
            since=since,
            reward=sums.other / plays if is_known else None,
            played=sums.reward / plays if is_known else None,
            low=ends[0],
            high=ends[1],
            is_behind=is_behind,
        )


def weigh(play: Play, chances: np.ndarray) -> Weight | None:
    """Return the weight of a play, and the largest it could have had; None if that has no bound.

    >>> play = Play(eligible=[0, 1], probabilities=[0.75, 0.25], chosen=0)
    >>> weigh(play, np.array([0.375, 0.625]))
    Weight(weight=0.5, largest=2.5)
    >>> weigh(Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0), np.array([0.4, 0.6])) is None
    True
    """
    logged = np.array(play.probabilities)
    if (chances[logged < SMALLEST] > 0).any():
        return None
    ratios = chances / np.maximum(logged, SMALLEST)
    chance = float(chances[play.eligible.index(play.chosen)])
    return Weight(chance / probability(play, play.chosen), float(ratios.max()))


def _is_judged(slot: Settled) -> bool:
    """Return whether the policy of the service decided a play, by probabilities that are known."""
    decided, play = slot.decided, slot.play
    is_known = decided.digest != SHARED_ALIKE or len(play.eligible) <= 2
    return is_known and play.preferred is None and _is_learned(slot)


def _is_learned(slot: Settled) -> bool:
    return slot.decided.mode != LearningMode.LOGGING_ONLY and not slot.decided.is_held


class Shadows(Listener):
    """All shadows of a log, from its beginning."""

    def __init__(self, log: Log, written: WrittenSettings) -> None:
        assert written.model is not None
        assert written.configuration is not None
        self.written, self._log = written, log
        self.names = written.configuration.shadows
        self.shadows = [
            Shadow(name, written.model.with_policy(parse_shadow(name))) for name in self.names
        ]
        self._joiner = Joiner(log=log, listener=self, skips=log.extent().deleted)
        self._origin = origin_of(log)
        self.seq, self.is_behind = 0, True
        self._since = 0
        self._asked: list[tuple[int, PromotionAsked]] = []

    def follow(self) -> None:
        """Take in a batch of new records at most; raise LogChanged if others were erased or deleted."""
        if origin_of(self._log) != self._origin:
            raise LogChanged("records of events were erased")
        records = list(self._log.read(self._joiner.seq, BATCH))
        for stored in records:
            record = self._joiner.advance(stored)
            self._joiner.join(stored, record)
            self._note(stored, record)
        self.seq = self._joiner.seq
        self.is_behind = self._log.last() > self.seq + BATCH  # under traffic, a few are always new

    def _note(self, stored: Stored, record: Record) -> None:
        match record:
            case Modelled() | Imported() | Reset():
                self._since = stored.row.time
                self._asked.clear()  # it was done, or is about another comparison
                for shadow in self.shadows:
                    shadow.begin(stored.seq)
            case PromotionAsked():
                self._asked.append((stored.seq, record))
            case _:
                pass

    def settle_all(self, settled: Sequence[Settled]) -> None:
        with suppress(FeatureError):
            for shadow in self.shadows:
                shadow.take(settled, self._joiner.configuration, self._joiner.time)

    def reports(self) -> list[ShadowReport]:
        tail = (1 - CONFIDENCE) / 2 / max(len(self.shadows), 1)
        return [
            shadow.report(tail, self._since, is_behind=self.is_behind) for shadow in self.shadows
        ]

    def promote(self) -> str | None:
        """Promote a shadow that an operator chose, or automatically one that is surely better.

        Return its name; None if none is promoted.
        """
        if self.is_behind:
            return None
        asked, self._asked = self._asked, []
        for seq, asking in asked:
            for shadow in self.shadows:
                if shadow.name == asking.policy and self._write(shadow, f"promoted:{seq}"):
                    return shadow.name
        if self._joiner.configuration.promotion is not Promotion.AUTOMATIC:
            return None
        assert self.written.model is not None
        better = [
            (report.low, shadow)
            for report, shadow in zip(self.reports(), self.shadows, strict=True)
            if (report.low or 0.0) > 0 and shadow.model.policy != self.written.model.policy
        ]
        if not better:
            return None
        _, best = max(better, key=lambda pair: pair[0] or 0.0)
        return best.name if self._write(best, f"promoted-since:{self._since}") else None

    def _write(self, shadow: Shadow, request: str) -> bool:
        """Let a shadow decide from now on, with what it has learned; return whether it was not done before."""
        rows = [
            row_of(Modelled(settings=shadow.model.to_json()), OPERATOR, clock.now(), request),
            row_of(Imported(model=save_bytes(shadow.bandit)), OPERATOR, clock.now()),
        ]
        try:
            self._log.append(rows)
        except DuplicateRequest:
            return False
        return True


_processes = multiprocessing.get_context("spawn")


class ShadowKeeper(LogWatcher):
    """Keeps the process of the shadows running while there are some, and `may_run` allows it."""

    def __init__(
        self, address: str, may_run: Callable[[], bool], notify: Callable[[str], None]
    ) -> None:
        super().__init__("rbmle-shadows", address, LOOK_SECONDS)
        self.reports: list[ShadowReport] = []
        self._may_run, self._notify = may_run, notify
        self._running: tuple[multiprocessing.process.BaseProcess, Connection] | None = None

    def _look(self, log: Log) -> None:
        configuration = settings_of(log).configuration
        if not self._may_run() or configuration is None or not configuration.shadows:
            self._end()
            return
        if self._running is None:
            ours, theirs = _processes.Pipe()
            started = _processes.Process(
                target=_follow, args=(self._address, theirs), daemon=True, name="rbmle-shadows"
            )
            started.start()
            theirs.close()
            self._running = started, ours
        process, connection = self._running
        with suppress(EOFError, OSError):
            while connection.poll():
                self._take(connection.recv())
        if not process.is_alive():
            self._end()

    def _take(self, message: list[ShadowReport] | str) -> None:
        if isinstance(message, str):
            self._notify(message)
        else:
            self.reports = message

    def _end(self) -> None:
        if self._running is not None:
            process, connection = self._running
            process.terminate()
            process.join(STOP_SECONDS)
            connection.close()
            self._running = None
        self.reports = []


def _follow(address: str, connection: Connection) -> None:
    """Follow the log until the keeper or its shadows are gone; reports go through the connection."""
    os.nice(NICE)
    parent, reported = multiprocessing.parent_process(), 0.0
    with suppress(LogUnavailable, LogChanged, BrokenPipeError), closing(open_log(address)) as log:
        shadows = Shadows(log, settings_of(log))
        while parent is None or parent.is_alive():
            shadows.follow()
            if (name := shadows.promote()) is not None:
                connection.send(f"the shadow {name} decides now, with what it has learned")
            if time.monotonic() >= reported + REPORT_SECONDS:
                reported = time.monotonic()
                connection.send(shadows.reports())
                written = settings_of(log)
                assert written.configuration is not None
                if written.configuration.shadows != shadows.names:
                    return  # the keeper starts another process if there are still some
                shadows.written = written
            if not shadows.is_behind:
                time.sleep(LOOK_SECONDS)
