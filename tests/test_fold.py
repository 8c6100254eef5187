"""The model is the sum of the log: joins, waits and defaults, by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, LinUCB
from rbmle.core.contexts import per_arm
from rbmle.core.saving import leaves
from rbmle.core.types import Contexts
from rbmle.service.configuration import Aggregation, ServiceConfiguration
from rbmle.service.fold import Fold
from rbmle.service.logs.base import Row
from rbmle.service.logs.memory import MemoryLog
from rbmle.service.records import (
    Activated,
    Configured,
    Decided,
    Offer,
    Play,
    Record,
    Reset,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
)

WAIT = 600_000
USUAL = ServiceConfiguration(reward_wait_time=timedelta(milliseconds=WAIT))


class Story:
    """A log that is written and folded record by record; each observation is what a LinUCB saw."""

    def __init__(self, configuration: ServiceConfiguration = USUAL) -> None:
        self.log = MemoryLog()
        self.fold = self.new(configuration)
        self.configuration = configuration

    def new(self, configuration: ServiceConfiguration) -> Fold:
        return Fold(log=self.log, rows=rows, start=start, configuration=configuration)

    def tell(self, time: int, event: str, record: Record) -> None:
        row = Row(kind_of(record), event, None, time, encoded(record))
        self.log.append([row])
        for stored in self.log.read(self.fold.seq):
            self.fold.apply(stored)

    @property
    def learned(self) -> int:
        return self.fold.bandit.round

    @property
    def weight(self) -> float:
        """Return Σ reward of action 0 in its only feature: V⁻¹ b with V = 1 + n."""
        return float(self.fold.bandit.decide([[1.0, 0.0]]).indices[0])


def rows(decided: Decided, play: Play) -> Contexts:
    return per_arm(np.eye(2)[[play.chosen]], 2)


def start() -> Bandit:
    return Bandit(LinUCB(exploration=0.0), features=2, encoding="per-arm", seed=0)


def decided(**changes: Any) -> Decided:
    play = Play(eligible=[0, 1], probabilities=[0.9, 0.1], chosen=0)
    usual = Decided(
        context=[], actions=[Offer(id="a"), Offer(id="b")], plays=[play], digest="d", learned=0
    )
    return Decided(**{f: getattr(usual, f) for f in usual.__struct_fields__} | changes)


def test_the_earliest_reward_is_learned_at_once_and_others_are_duplicates() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.tell(2, "e", Rewarded(values={"": -1.0}))
    assert story.learned == 1
    assert story.weight == pytest.approx(0.5)  # 1/(1 + 1)
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert (story.fold.counts.joined, story.fold.counts.duplicate) == (1, 1)
    assert not story.fold.pending


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
    assert story.fold.counts.defaulted == 1


def test_a_late_reward_is_counted_and_not_learned() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(WAIT + 5, "e", Rewarded(values={"": 1.0}))
    assert story.learned == 1  # the default
    assert story.weight == 0
    assert story.fold.counts.late == 1


def test_a_reward_may_come_two_minutes_before_its_rank_and_no_more() -> None:
    story = Story()
    story.tell(0, "e", Rewarded(values={"": 1.0}))
    story.tell(0, "f", Rewarded(values={"": 1.0}))
    story.tell(119_999, "e", decided())
    assert story.learned == 1
    story.tell(120_000, "f", decided())
    assert story.learned == 1
    assert story.fold.counts.orphan == 1


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
    assert story.fold.counts.unactivated == 1


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


def test_what_is_logged_only_is_not_learned() -> None:
    story = Story()
    story.tell(0, "e", decided(mode="LoggingOnly"))
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.tell(WAIT, "", Ticked())
    assert story.learned == 0


def test_a_reset_starts_anew_and_a_configuration_holds_from_there_on() -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.tell(2, "", Reset())
    assert story.learned == 0
    changed = replace(USUAL, default_reward=1.0)
    story.tell(3, "", Configured(configuration=changed.to_json()))
    story.tell(4, "f", decided())
    story.tell(4 + WAIT, "", Ticked())
    assert story.weight == pytest.approx(0.5)


def test_a_model_rebuilt_from_the_log_is_the_live_one_to_the_bit() -> None:
    story = Story()
    rng = np.random.default_rng(0)
    for t in range(300):
        event = f"e{rng.integers(60)}"
        match rng.integers(4):
            case 0 if not any(s.row.kind == "decided" for s in story.log.of_event(event)):
                record: Record = decided(deferred=bool(rng.integers(2)))
            case 1:
                record = Rewarded(values={"": float(rng.normal())})
            case 2:
                record = Activated()
            case _:
                record = Ticked()
        story.tell(t * 20_000, event, record)
    again = story.new(story.configuration)
    for stored in story.log.read():
        again.apply(stored)
    live, rebuilt = leaves(story.fold.bandit.state), leaves(again.bandit.state)
    assert live[1] == rebuilt[1]
    for name, array in live[0].items():
        np.testing.assert_array_equal(array, rebuilt[0][name])
    assert again.counts == story.fold.counts
    assert story.learned > 10
