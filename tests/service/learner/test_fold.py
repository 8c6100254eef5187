"""The fold: the model is a function of the log, to the bit."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rbmle import Bandit
from rbmle.core.trees import leaves
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.joining import Joined
from rbmle.service.log.records import (
    Activated,
    Assignment,
    Configured,
    Imported,
    Modelled,
    Record,
    Reset,
    Rewarded,
    Ticked,
)
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import Aggregation, Settle
from tests.service.learner.stories import USUAL, WAIT, Linear, Neural, Story, decided


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
    story.tell(1_000 + WAIT, "", Ticked())
    assert story.weight == pytest.approx(0.5)


@pytest.mark.parametrize("settle", Settle)
def test_a_model_rebuilt_from_the_log_is_the_live_one_to_the_bit(settle: Settle) -> None:
    story = Story(replace(USUAL, settle=settle))
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


def test_a_watcher_hears_of_decisions_before_their_rewards() -> None:
    story = Story()
    story.tell(5, "e", Rewarded(values={"": 1.0}))
    story.tell(6, "e", decided())
    story.tell(7, "f", decided(mode="LoggingOnly"))
    story.tell(1_000 + WAIT, "", Ticked())
    assert story.notes.lines == [
        (6, "Online"),
        (6, "", 1.0, True),
        (7, "LoggingOnly"),
        (1_000 + WAIT, "", 0.0, False),
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


@pytest.mark.parametrize("settle", Settle)
@pytest.mark.parametrize("aggregation", Aggregation)
def test_a_fold_that_resumes_from_a_checkpoint_ends_where_the_other_does(
    aggregation: Aggregation, settle: Settle, tmp_path: Path
) -> None:
    story = Story(replace(USUAL, reward_aggregation=aggregation, settle=settle))
    story.tell(0, "early", Rewarded(values={"": 0.5}))
    story.tell(1, "e", decided())
    story.tell(2, "e", Rewarded(values={"": 0.25}))
    story.tell(3, "shown", decided(deferred=True))
    story.tell(4, "shown", Rewarded(values={"": 0.75}))
    joined = msgspec.json.decode(msgspec.json.encode(story.fold.joiner.joined), type=Joined)
    story.bandit.save(tmp_path / "model")
    again = Fold(log=story.log, make=Linear)
    again.resume({"seed": 0}, Bandit.load(tmp_path / "model"), joined, copy(story.fold.budget))
    story.tell(5, "early", decided())
    story.tell(6, "shown", Activated())
    story.tell(7, "e", Rewarded(values={"": 0.5}))
    story.tell(WAIT + 1_000, "", Ticked())
    for stored in story.log.read(again.seq):
        again.apply(stored)
    assert again.joiner.joined == story.fold.joiner.joined
    assert again.bandit is not None
    assert again.bandit.decide([[1.0, 0.0]]).indices[0] == story.weight
    is_twice = settle is Settle.DELAYED and aggregation is Aggregation.EARLIEST
    assert story.learned == 3 + is_twice


@pytest.mark.parametrize("together", [2, 7, 1000])
def test_records_may_be_learned_together(together: int) -> None:
    story = Story(make=Neural)
    for number in range(200):
        event = f"e{number % 60}"
        if number < 60:
            story.tell(9 * number, event, decided())
        elif number == 130:
            story.tell(9 * number, "", Reset())
        elif number == 131:
            story.tell(9 * number, "late", decided())
        else:
            story.tell(9 * number, event, Rewarded(values={"": float(number % 2)}))
    story.tell(WAIT + 10_000, "", Modelled(settings={"seed": 1}))
    story.tell(WAIT + 10_000, "f", decided())
    story.tell(WAIT + 10_001, "f", Rewarded(values={"": 1.0}))
    fold, records = Fold(log=story.log, make=Neural), list(story.log.read())
    for start in range(0, len(records), together):
        for stored in records[start : start + together]:
            fold.take(stored)
        fold.learn()
    assert fold.seq == story.fold.seq
    assert fold.bandit is not None
    assert save_bytes(fold.bandit) == save_bytes(story.bandit)
    assert story.learned == 1


def test_the_holdout_is_counted_and_never_learned() -> None:
    held = Assignment(share=0.5, unit="0" * 16, is_held=True)
    for settle in Settle:
        with_holdout = Story(replace(USUAL, settle=settle))
        without = Story(replace(USUAL, settle=settle))
        for time in range(40):
            for story in (with_holdout, without):
                story.tell(2 * time, f"e{time}", decided())
                story.tell(2 * time + 1, f"e{time}", Rewarded(values={"": float(time % 3 == 0)}))
            with_holdout.tell(2 * time + 1, f"h{time}", decided(assignment=held))
            with_holdout.tell(2 * time + 1, f"h{time}", Rewarded(values={"": 1.0}))
        for story in (with_holdout, without):
            story.tell(10 * WAIT, "", Ticked())
        assert with_holdout.counts.joined == 2 * without.counts.joined == 80
        assert with_holdout.learned == without.learned
        assert with_holdout.weight == without.weight
