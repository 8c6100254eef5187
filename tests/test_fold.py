"""The model is the sum of the log: joins, waits and defaults, by hand."""

import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rbmle import Bandit, LinUCB
from rbmle.core.contexts import per_arm
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts
from rbmle.service.configuration import Aggregation, ServiceConfiguration
from rbmle.service.events import Counts, Joined
from rbmle.service.fold import Fold
from rbmle.service.logs.base import Row, Stored
from rbmle.service.logs.errors import LogUnavailable
from rbmle.service.logs.memory import MemoryLog
from rbmle.service.records import (
    Activated,
    Configured,
    Decided,
    Imported,
    Modelled,
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
        self.notes = Notes()
        self.fold = Fold(log=self.log, make=Linear, watcher=self.notes)
        self.tell(0, "", Modelled(settings={"seed": 0}))
        self.tell(0, "", Configured(configuration=configuration.to_json()))

    def tell(self, time: int, event: str, record: Record) -> None:
        row = Row(kind_of(record), event, None, time, encoded(record))
        self.log.append([row])
        for stored in self.log.read(self.fold.seq):
            self.fold.apply(stored)

    @property
    def bandit(self) -> Bandit:
        assert self.fold.bandit is not None
        return self.fold.bandit

    @property
    def counts(self) -> Counts:
        return self.fold.joiner.counts

    @property
    def learned(self) -> int:
        return self.bandit.round

    @property
    def weight(self) -> float:
        """Return Σ reward of action 0 in its only feature: V⁻¹ b with V = 1 + n."""
        return float(self.bandit.decide([[1.0, 0.0]]).indices[0])


class Linear:
    """A model of two features, one for each action."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.seed = settings["seed"]

    def start(self) -> Bandit:
        return Bandit(LinUCB(exploration=0.0), features=2, encoding="per-arm", seed=self.seed)

    def load(self, model: bytes) -> Bandit:
        return Bandit.load(io.BytesIO(model))

    def context(self, decided: Decided, play: Play) -> Contexts:
        return per_arm(np.eye(2)[[play.chosen]], 2)


class Notes:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def decide(self, time: int, decided: Decided) -> None:
        self.lines.append((time, decided.mode))

    def settle(
        self, time: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        self.lines.append((time, play.slot, reward, is_joined))


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
    again = Fold(log=story.log, make=Linear)
    for stored in story.log.read():
        again.apply(stored)
    assert again.bandit is not None
    live, rebuilt = leaves(story.bandit.state), leaves(again.bandit.state)
    assert live[1] == rebuilt[1]
    for name, array in live[0].items():
        np.testing.assert_array_equal(array, rebuilt[0][name])
    assert again.joiner.counts == story.counts
    assert story.learned > 10


def test_each_of_two_early_rewards_has_two_minutes_of_its_own() -> None:
    story = Story()
    story.tell(0, "e", Rewarded(values={"": 1.0}))
    story.tell(100_000, "e", Rewarded(values={"": 0.5}))
    story.tell(150_000, "e", decided())
    assert story.counts.orphan == 1
    assert story.learned == 1
    assert story.weight == pytest.approx(0.25)


def test_a_watcher_hears_of_decisions_before_their_rewards() -> None:
    story = Story()
    story.tell(5, "e", Rewarded(values={"": 1.0}))
    story.tell(6, "e", decided())
    story.tell(7, "f", decided(mode="LoggingOnly"))
    story.tell(7 + WAIT, "", Ticked())
    assert story.notes.lines == [
        (6, "Online"),
        (6, "", 1.0, True),
        (7, "LoggingOnly"),
        (7 + WAIT, "", 0.0, False),
    ]
    assert story.learned == 1


def test_there_is_no_bandit_before_a_model_and_a_new_model_keeps_what_is_pending() -> None:
    story = Story()
    assert Fold(log=story.log, make=Linear).bandit is None
    story.tell(0, "e", decided())
    story.tell(1, "f", decided())
    story.tell(2, "e", Rewarded(values={"": 1.0}))
    story.tell(3, "", Modelled(settings={"seed": 1}))
    assert (story.learned, story.bandit.seed) == (0, 1)
    story.tell(4, "f", Rewarded(values={"": 1.0}))
    assert story.learned == 1


def test_an_imported_model_goes_on_from_what_it_had_learned(tmp_path: Path) -> None:
    story = Story()
    story.tell(0, "e", decided())
    story.tell(1, "e", Rewarded(values={"": 1.0}))
    story.bandit.save(tmp_path / "model")
    story.tell(2, "", Reset())
    assert story.learned == 0
    story.tell(3, "", Imported(model=(tmp_path / "model").read_bytes()))
    assert story.learned == 1
    assert story.weight == pytest.approx(0.5)


@pytest.mark.parametrize("aggregation", Aggregation)
def test_a_fold_that_resumes_from_a_checkpoint_ends_where_the_other_does(
    aggregation: Aggregation, tmp_path: Path
) -> None:
    story = Story(replace(USUAL, reward_aggregation=aggregation))
    story.tell(0, "early", Rewarded(values={"": 0.5}))
    story.tell(1, "e", decided())
    story.tell(2, "e", Rewarded(values={"": 0.25}))
    story.tell(3, "shown", decided(deferred=True))
    story.tell(4, "shown", Rewarded(values={"": 0.75}))
    joined = msgspec.json.decode(msgspec.json.encode(story.fold.joiner.joined), type=Joined)
    story.bandit.save(tmp_path / "model")
    again = Fold(log=story.log, make=Linear)
    again.resume({"seed": 0}, Bandit.load(tmp_path / "model"), joined)
    story.tell(5, "early", decided())
    story.tell(6, "shown", Activated())
    story.tell(7, "e", Rewarded(values={"": 0.5}))
    story.tell(WAIT + 9, "", Ticked())
    for stored in story.log.read(again.seq):
        again.apply(stored)
    assert again.joiner.joined == story.fold.joiner.joined
    assert again.bandit is not None
    assert again.bandit.decide([[1.0, 0.0]]).indices[0] == story.weight
    assert story.learned == 3


def test_a_log_that_cannot_be_read_for_a_while_loses_and_doubles_nothing() -> None:
    story = Story(replace(USUAL, default_reward=0.5))
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
    assert fold.bandit.round == story.learned == 3


class Shaky:
    """A log that fails some reads."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        if self.failures:
            self.failures -= 1
            raise LogUnavailable("the disk does not answer")
        return self.log.read(after, limit)
