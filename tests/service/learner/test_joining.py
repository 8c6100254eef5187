"""Which reward belongs to which decision, by the log's own clock."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from rbmle.service.learner.fold import Budget, Fold
from rbmle.service.learner.joining import APART, CHUNK, STALE, Deadlines, Joined, Pending
from rbmle.service.log.base import LogUnavailable, Stored
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import CLOCK, Activated, ClockCorrected, Play, Rewarded, Ticked
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import Aggregation, Settle
from tests.service.learner.stories import USUAL, WAIT, Linear, Notes, Story, decided, play

DAY = 24 * 3_600 * 1_000  # milliseconds


def test_on_reward_the_earliest_is_learned_at_once_and_others_are_duplicates() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.tell(2, "e", Rewarded(values={"": -1.0}))
    assert story.learned == 1
    assert story.weight == pytest.approx(0.5)  # 1/(1 + 1)
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert (story.counts.joined, story.counts.duplicate) == (1, 1)
    assert not story.fold.joiner.pending


def test_a_sum_is_learned_when_the_wait_is_over() -> None:
    story = Story(replace(USUAL, reward_aggregation=Aggregation.SUM))
    story.tell(0, "e", decided())
    story.tell(1, "e", Rewarded(values={"": 0.5}))
    story.tell(2, "e", Rewarded(values={"": 0.25}))
    assert story.learned == 0
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert story.weight == pytest.approx(0.75 / 2)


def test_no_reward_is_the_default_one() -> None:
    story = Story(replace(USUAL, default_reward=-0.5))
    story.tell(0, "e", decided())
    story.tell(WAIT - 1, "", Ticked())
    assert story.learned == 0
    story.tell(WAIT, "f", decided())  # any record moves the clock
    assert story.learned == 1
    assert story.weight == pytest.approx(-0.25)
    assert story.counts.defaulted == 1


def test_a_late_reward_is_counted_and_not_learned() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(WAIT + 5, "e", Rewarded(values={"": 1.0}))
    assert story.learned == 1  # the default
    assert story.weight == 0
    assert story.counts.late == 1


def test_a_reward_may_come_two_minutes_before_its_rank_and_no_more() -> None:
    story = Story()
    story.tell(0, "e", Rewarded(values={"": 1.0}))
    story.tell(0, "f", Rewarded(values={"": 1.0}))
    story.tell(119_999, "e", decided())
    assert story.learned == 1
    story.tell(120_000, "f", decided())
    assert story.learned == 1
    assert story.counts.orphan == 1


def test_a_deferred_event_is_learned_when_it_was_shown_and_else_never() -> None:
    story = Story()
    story.tell(0, "e", decided(deferred=True))
    story.tell(0, "f", decided(deferred=True))
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    assert story.learned == 0
    story.tell(2, "e", Activated())
    assert story.learned == 1
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert story.counts.unactivated == 1


def test_slots_have_rewards_of_their_own() -> None:
    story = Story()
    plays = [
        Play(slot=name, eligible=[0, 1], probabilities=[0.5, 0.5], chosen=place)
        for place, name in enumerate(("top", "side"))
    ]
    story.tell(0, "e", decided(plays=plays))
    story.tell(1, "e", Rewarded(values={"side": 1.0}))
    assert story.learned == 1
    assert story.weight == 0  # action 0 is in the other slot
    story.tell(WAIT, "", Ticked())
    assert story.learned == 2


def test_each_of_two_early_rewards_has_two_minutes_of_its_own() -> None:
    story = Story()
    story.tell(0, "e", Rewarded(values={"": 1.0}))
    story.tell(100_000, "e", Rewarded(values={"": 0.5}))
    story.tell(150_000, "e", decided())
    assert story.counts.orphan == 1
    assert story.learned == 1
    assert story.weight == pytest.approx(0.25)


@pytest.mark.parametrize("settle", Settle)
def test_a_log_that_cannot_be_read_for_a_while_loses_and_doubles_nothing(settle: Settle) -> None:
    story = Story(replace(USUAL, default_reward=0.5, settle=settle))
    shaky = Shaky(story.log)
    fold = Fold(log=shaky, make=Linear)
    story.tell(0, "e", decided())
    story.tell(0, "f", decided())
    story.tell(0, "g", decided(deferred=True))
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.tell(1, "g", Rewarded(values={"": 1.0}))
    story.tell(2, "g", Activated())
    story.tell(WAIT, "", Ticked())
    for stored in story.log.read():
        shaky.failures = 2
        while fold.seq < stored.seq:
            with suppress(LogUnavailable):
                fold.apply(stored)
    assert fold.joiner.joined == story.fold.joiner.joined
    assert fold.bandit is not None
    assert fold.bandit.round == story.learned == 3 + (settle is Settle.DELAYED)


def test_a_wait_ends_at_a_whole_second_and_never_before_its_time() -> None:
    story = Story()
    story.tell(1, "e", decided())
    story.tell(1_000, "f", decided())
    story.tell(1_001, "g", decided())
    story.tell(WAIT + 999, "", Ticked())
    assert story.learned == 0
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 2
    assert list(story.fold.joiner.pending) == ["g"]
    assert story.fold.joiner.next_deadline == WAIT + 2_000


def test_events_of_a_second_are_closed_in_the_order_of_their_decisions() -> None:
    story = Story()
    for number in (3, 1, 2):
        story.tell(number, f"e{number}", decided(plays=[play(slot=str(number))]))
    story.tell(4, "e1", decided(plays=[play(slot="again")]))  # in the place of the other
    story.tell(WAIT + 1_000, "", Ticked())
    assert [line[1] for line in story.notes.lines if len(line) == 4] == ["3", "2", "again"]


def test_what_is_closed_together_is_read_together() -> None:
    log = Shaky(MemoryLog())
    story = Story(log=log)
    for number in range(CHUNK + 50):
        story.tell(1 + number, f"e{number}", decided())
        story.tell(1 + number, "", Ticked())
    for _ in range(2 * APART):
        story.tell(999, "", Ticked())
    story.tell(999, "far", decided())
    log.reads.clear()
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == CHUNK + 51
    assert len(log.reads) == 4  # of the record itself, of two chunks, and of the one far away


def test_a_log_that_fails_amid_a_second_loses_and_doubles_nothing() -> None:
    story = Story(replace(USUAL, default_reward=0.5))
    for number in range(3 * CHUNK):
        story.tell(number, f"e{number}", decided(deferred=number % 7 == 0))
    story.tell(WAIT + 1_000, "", Ticked())
    shaky, notes = Shaky(story.log), Notes()
    fold = Fold(log=shaky, make=Linear, watcher=notes)
    for stored in story.log.read():
        if stored.seq == story.fold.seq:
            shaky.plan = [True, False, True, True, False, True]
        while fold.seq < stored.seq:
            with suppress(LogUnavailable):
                fold.apply(stored)
    assert not shaky.plan
    assert fold.joiner.joined == story.fold.joiner.joined
    assert notes.lines == story.notes.lines
    assert fold.bandit is not None
    assert save_bytes(fold.bandit) == save_bytes(story.bandit)


def test_events_that_are_settled_at_once_do_not_pile_up() -> None:
    pending: dict[str, Pending] = {}
    deadlines = Deadlines(pending)
    for number in range(3 * STALE):
        pending[f"e{number}"] = Pending(seq=number, deadline=WAIT, active=True)
        deadlines.add(f"e{number}")
        del pending[f"e{number}"]
        deadlines.forget_stale()
    assert deadlines.listed <= STALE + 1
    pending["last"] = Pending(seq=0, deadline=WAIT, active=True)
    deadlines.add("last")
    assert deadlines.over(WAIT) == ["last"]
    assert deadlines.first is None


class Shaky:
    """A log that fails some reads, and knows how many there were."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.failures = 0
        self.plan: list[bool] = []  # whether the next reads fail
        self.reads: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        self.reads.append(after)
        if self.failures or (self.plan and self.plan.pop(0)):
            self.failures = max(0, self.failures - 1)
            raise LogUnavailable("the disk does not answer")
        return self.log.read(after, limit)


def hit(story: Story) -> None:
    """Let a clock be two days ahead for one rank, and right again for three."""
    story.tell(0, "before", decided())
    story.tell(2 * DAY, "jump", decided())
    for number in range(3):
        story.tell(1_000 + number, f"after {number}", decided())


def test_a_corrected_clock_ends_waits_when_they_would_have_ended() -> None:
    story = Story()
    hit(story)
    story.tell(2_000 + WAIT, "", Ticked())
    assert story.learned == 1  # before the correction, all wait for two days
    story.tell(3_000 + WAIT, CLOCK, ClockCorrected())
    assert story.fold.joiner.time == 3_000 + WAIT
    story.tell(3_000 + WAIT, CLOCK, Ticked())
    assert story.learned == 4
    assert [*story.fold.joiner.pending] == ["jump"]
    story.tell(3_000 + 2 * WAIT, CLOCK, Ticked())
    assert story.learned == 5
    assert story.counts.defaulted == 5


def test_a_corrected_clock_lets_the_budget_of_fits_fill_again() -> None:
    story = Story()
    hit(story)
    story.tell(3_000 + WAIT, CLOCK, ClockCorrected())
    for number in range(20):
        story.tell(4_000 + WAIT + 1_000 * number, f"later {number}", decided())
        story.tell(4_000 + WAIT + 1_000 * number, f"later {number}", Rewarded(values={"": 1.0}))
    assert story.fold.budget.time == 4_000 + WAIT + 19_000
    assert story.fold.budget.spent <= 5_000


def test_an_early_reward_waits_no_longer_than_the_corrected_clock_says() -> None:
    story = Story()
    story.tell(2 * DAY, "e", Rewarded(values={"": 1.0}))
    story.tell(1_000, CLOCK, ClockCorrected())
    story.tell(2_000, "e", decided())
    assert story.learned == 1
    story.tell(2 * DAY, "f", Rewarded(values={"": 1.0}))
    story.tell(3_000, CLOCK, ClockCorrected())
    story.tell(123_000, CLOCK, Ticked())
    assert story.counts.orphan == 1


def test_a_correction_that_is_not_of_the_past_changes_nothing() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(1_000, CLOCK, ClockCorrected())
    assert story.fold.joiner.pending["e"].deadline == WAIT
    assert story.fold.joiner.time == 1_000


def test_a_corrected_log_is_the_same_from_a_checkpoint_and_from_the_start() -> None:
    story = Story()
    hit(story)
    joined = msgspec.json.encode(story.fold.joiner.joined)
    resumed = Fold(log=story.log, make=Linear, watcher=Notes())
    resumed.resume(
        {"seed": 0},
        Linear({"seed": 0}).load(save_bytes(story.bandit)),
        msgspec.json.decode(joined, type=Joined),
        msgspec.json.decode(msgspec.json.encode(story.fold.budget), type=Budget),
    )
    story.tell(3_000 + WAIT, CLOCK, ClockCorrected())
    story.tell(4_000 + WAIT, CLOCK, Ticked())
    story.tell(4_000 + 2 * WAIT, "later", decided())
    for stored in story.log.read(resumed.seq):
        resumed.apply(stored)
    assert resumed.bandit is not None
    assert save_bytes(resumed.bandit) == save_bytes(story.bandit)
    assert msgspec.json.encode(resumed.joiner.joined) == msgspec.json.encode(
        story.fold.joiner.joined
    )
