"""When an event is settled, it is learned and counted, once: at its deadline, or with its reward."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle.service.learner.checkpoints import Checkpoints, read
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.joining import Turns
from rbmle.service.log.records import (
    Activated,
    Configured,
    Decided,
    Modelled,
    Record,
    Reset,
    Rewarded,
    Ticked,
)
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import Aggregation, ServiceConfiguration, Settle
from rbmle.service.statistics.summary import Statistics
from tests.service.learner.stories import USUAL, WAIT, Linear, Neural, Story, decided, play

DEADLINE = replace(USUAL, settle=Settle.DEADLINE)
DELAYED = replace(USUAL, settle=Settle.DELAYED)


def rewarded(value: float, slot: str = "") -> Rewarded:
    return Rewarded(values={slot: value})


def settled(story: Story) -> list[tuple[Any, ...]]:
    return [line for line in story.notes.lines if len(line) == 4]


def test_a_new_service_settles_at_the_deadline() -> None:
    assert ServiceConfiguration().settle is Settle.DEADLINE


def test_a_click_is_learned_at_the_deadline_beside_those_that_did_not_come() -> None:
    story = Story(DEADLINE)
    story.tell(0, "clicked", decided())
    story.tell(0, "not", decided())
    story.tell(1, "clicked", rewarded(1.0))
    assert story.learned == 0
    assert not settled(story)
    story.tell(WAIT - 1, "", Ticked())
    assert story.learned == 0
    story.tell(WAIT, "", Ticked())
    assert story.learned == 2
    assert story.weight == pytest.approx(1 / 3)  # 1/(1 + 2)
    assert settled(story) == [(WAIT, "", 1.0, True), (WAIT, "", 0.0, False)]
    assert (story.counts.joined, story.counts.defaulted) == (1, 1)
    assert not story.fold.joiner.pending


def test_the_first_reward_counts_and_others_are_duplicates_or_late() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", decided())
    story.tell(1, "e", rewarded(0.5))
    story.tell(2, "e", rewarded(-1.0))
    story.tell(WAIT, "e", rewarded(1.0))
    assert settled(story) == [(WAIT, "", 0.5, True)]
    assert (story.counts.duplicate, story.counts.late) == (1, 1)


def test_each_slot_is_settled_once_at_the_deadline() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", decided(plays=[play(slot="top"), play(slot="side", chosen=1)]))
    story.tell(1, "e", rewarded(1.0, "side"))
    assert story.learned == 0
    story.tell(WAIT, "", Ticked())
    assert settled(story) == [(WAIT, "top", 0.0, False), (WAIT, "side", 1.0, True)]


def test_a_reward_before_its_rank_waits_for_the_deadline_of_the_rank() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", rewarded(1.0))
    story.tell(100_000, "e", decided())
    assert story.learned == 0
    story.tell(WAIT + 100_000, "", Ticked())
    assert settled(story) == [(WAIT + 100_000, "", 1.0, True)]


def test_a_deferred_event_is_settled_at_its_deadline_if_it_was_shown() -> None:
    story = Story(DEADLINE)
    story.tell(0, "shown", decided(deferred=True))
    story.tell(0, "hidden", decided(deferred=True))
    for event in ("shown", "hidden"):
        story.tell(1, event, rewarded(1.0))
    story.tell(2, "shown", Activated())
    assert story.learned == 0
    story.tell(WAIT, "", Ticked())
    assert settled(story) == [(WAIT, "", 1.0, True)]
    assert story.counts.unactivated == 1


def test_an_id_that_is_used_again_is_another_event_and_the_first_is_let_go() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", decided())
    story.tell(1, "e", rewarded(1.0))
    story.tell(5_000, "e", decided())
    story.tell(WAIT, "", Ticked())
    assert story.learned == 0
    story.tell(WAIT + 5_000, "", Ticked())
    assert settled(story) == [(WAIT + 5_000, "", 0.0, False)]


def test_a_reset_lets_go_what_is_pending_and_another_model_does_not() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", decided())
    story.tell(1, "e", rewarded(1.0))
    story.tell(2, "", Modelled(settings={"seed": 1}))
    story.tell(3, "f", decided(mode="LoggingOnly"))
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    story.tell(WAIT + 1, "g", decided())
    story.tell(WAIT + 2, "g", rewarded(1.0))
    story.tell(WAIT + 3, "", Reset())
    story.tell(3 * WAIT, "", Ticked())
    assert story.learned == 0
    assert len(settled(story)) == 1


def test_the_rule_may_change_while_events_are_pending() -> None:
    story = Story(DEADLINE)
    story.tell(0, "e", decided())
    story.tell(0, "f", decided())
    story.tell(1, "e", rewarded(1.0))
    story.tell(2, "", Configured(configuration=USUAL.to_json()))
    assert story.learned == 0
    story.tell(3, "f", rewarded(1.0))
    assert story.learned == 1
    story.tell(4, "g", decided())
    story.tell(5, "", Configured(configuration=DEADLINE.to_json()))
    story.tell(6, "g", rewarded(1.0))
    assert story.learned == 1
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 3
    assert story.counts.joined == 3


def test_a_log_from_before_there_was_the_rule_is_settled_by_rewards() -> None:
    story = Story(ServiceConfiguration(), is_old=True)
    assert story.fold.joiner.configuration.settle is Settle.ON_REWARD
    story.tell(0, "e", decided())
    story.tell(1, "e", rewarded(1.0))
    assert story.learned == 1


def test_a_checkpoint_from_before_there_was_the_rule_goes_on_as_it_did(tmp_path: Path) -> None:
    story = Story(ServiceConfiguration(), is_old=True, make=Neural)
    story.tell(0, "e", decided())
    first = Fold(log=story.log, make=Neural)
    for stored in story.log.read():
        first.apply(stored)
    state, bandit = read(Checkpoints(tmp_path).save(first, Statistics()))
    del state.joined.configuration["settle"]
    again = Fold(log=story.log, make=Neural)
    again.resume(state.settings, Linear({"seed": 0}).load(bandit), state.joined, state.budget)
    story.tell(1, "e", rewarded(1.0))
    for stored in story.log.read(again.seq):
        again.apply(stored)
    assert again.bandit is not None
    assert save_bytes(again.bandit) == save_bytes(story.bandit)
    assert story.learned == 1


@pytest.mark.parametrize("at", range(2, 40, 5))
@pytest.mark.parametrize("aggregation", Aggregation)
def test_pending_rewards_go_through_a_checkpoint(
    aggregation: Aggregation, at: int, tmp_path: Path
) -> None:
    story = Story(replace(DEADLINE, reward_aggregation=aggregation), make=Neural)
    for time, event, record in _tale():
        story.tell(time, event, record)
    first = Fold(log=story.log, make=Neural)
    for stored in story.log.read(0, at):
        first.apply(stored)
    state, bandit = read(Checkpoints(tmp_path).save(first, Statistics()))
    again = Fold(log=story.log, make=Neural)
    again.resume(state.settings, Linear({"seed": 0}).load(bandit), state.joined, state.budget)
    for stored in story.log.read(at):
        again.apply(stored)
    assert again.bandit is not None
    assert save_bytes(again.bandit) == save_bytes(story.bandit)
    assert again.joiner.joined == story.fold.joiner.joined
    assert story.learned == 12


# Delayed


def test_delayed_events_are_learned_in_their_turn_and_counted_at_the_deadline() -> None:
    story = Story(DELAYED)
    story.tell(0, "e", decided())
    assert story.learned == 1  # nothing is known, so nothing waits
    assert story.weight == 0
    assert not settled(story)
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert settled(story) == [(WAIT, "", 0.0, False)]


def test_a_delayed_reward_counts_so_much_more_that_the_mean_is_right() -> None:
    story = Story(DELAYED)
    for number in range(4):
        story.tell(number, f"e{number}", decided())
    story.tell(10, "e1", rewarded(1.0))
    assert story.learned == 5
    assert story.weight == pytest.approx(1.25 / 6)  # (1 + 1/4)/(1 + 5): the mean is 1/4, as it is
    story.tell(11, "e1", rewarded(1.0))
    assert (story.learned, story.counts.duplicate) == (5, 1)
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 5
    assert [line[2:] for line in settled(story)] == [
        (0.0, False),
        (1.0, True),
        (0.0, False),
        (0.0, False),
    ]


def test_delayed_observations_have_the_mean_of_the_rewards() -> None:
    turns, default = Turns(), -0.25
    rng = np.random.default_rng(0)
    labels, truth = [], []
    for number in range(20_000):
        is_rewarded, is_late = rng.random() < 0.3, rng.random() < 0.7
        turns.enter(number, 1)
        turns.rewarded += is_rewarded
        truth.append(1.0 if is_rewarded else default)
        labels.append(1.0 if is_rewarded and not is_late else default)
        if is_rewarded and is_late:
            labels.append(turns.late(1.0, default))
    assert np.mean(labels) == pytest.approx(np.mean(truth), abs=0.005)


def test_one_part_in_ten_of_the_delayed_events_waits_for_its_turn() -> None:
    story = Story(DELAYED)
    for number in range(110):
        story.tell(number, f"e{number}", decided())
    assert story.learned == 100
    assert len(story.fold.joiner.turns.waiting) == 10
    story.tell(200, "e109", rewarded(1.0))  # it waits, so it is learned once
    assert story.learned == 100
    for number in range(110, 130):
        story.tell(number + 200, f"e{number}", decided())
    assert story.learned == 119
    assert story.weight == pytest.approx(1 / 120)
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 130


def test_delayed_slots_are_learned_together_and_late_ones_by_themselves() -> None:
    story = Story(DELAYED)
    story.tell(0, "e", rewarded(1.0, "top"))
    story.tell(1, "e", decided(plays=[play(slot="top"), play(slot="side", chosen=1)]))
    assert story.learned == 2
    assert story.weight == pytest.approx(0.5)
    story.tell(2, "e", rewarded(0.5, "side"))
    story.tell(3, "e", rewarded(0.5, "nowhere"))
    assert story.learned == 3


def test_delayed_events_that_are_deferred_or_summed_are_learned_at_the_deadline() -> None:
    story = Story(DELAYED)
    story.tell(0, "e", decided(deferred=True))
    story.tell(1, "e", Activated())
    story.tell(2, "e", rewarded(1.0))
    story.tell(3, "f", decided(mode="LoggingOnly"))
    assert story.learned == 0
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 1
    assert story.weight == pytest.approx(0.5)
    sums = Story(replace(DELAYED, reward_aggregation=Aggregation.SUM))
    sums.tell(0, "e", decided())
    sums.tell(1, "e", rewarded(0.25))
    assert sums.learned == 0
    sums.tell(WAIT, "", Ticked())
    assert sums.learned == 1


def test_another_model_learns_what_is_pending_though_the_last_one_had_learned_it() -> None:
    story = Story(DELAYED)
    story.tell(0, "e", decided())
    story.tell(1, "", Modelled(settings={"seed": 1}))
    assert story.learned == 0
    story.tell(2, "e", rewarded(1.0))
    story.tell(WAIT, "", Ticked())
    assert story.learned == 1
    assert story.weight == pytest.approx(0.5)


def test_an_event_that_was_learned_early_is_learned_no_more_if_the_rule_changes() -> None:
    story = Story(DELAYED)
    for number in range(110):
        story.tell(number, f"e{number}", decided())
    story.tell(200, "", Configured(configuration=DEADLINE.to_json()))
    assert story.fold.joiner.turns.waiting == []
    story.tell(WAIT + 1_000, "", Ticked())
    assert story.learned == 110
    assert len(settled(story)) == 110


@pytest.mark.parametrize("together", [1, 7, 1_000])
@pytest.mark.parametrize("at", [3, 50, 333, 390])
def test_a_delayed_fold_is_the_same_from_a_checkpoint_and_in_batches(
    at: int, together: int, tmp_path: Path
) -> None:
    story = Story(DELAYED, make=Neural)
    for number in range(260):
        event = f"e{number % 240}"  # some ids are used again
        story.tell(40 * number, event, decided(plays=[play(chosen=number % 2)]))
        if number % 3 == 0:
            story.tell(40 * number + 5, f"e{number // 2}", rewarded(1.0))
    story.tell(WAIT + 5_000, "", Ticked())
    first = Fold(log=story.log, make=Neural)
    for stored in story.log.read(0, at):
        first.apply(stored)
    state, bandit = read(Checkpoints(tmp_path).save(first, Statistics()))
    again = Fold(log=story.log, make=Neural)
    again.resume(state.settings, Linear({"seed": 0}).load(bandit), state.joined, state.budget)
    rest = list(story.log.read(at))
    for start in range(0, len(rest), together):
        for stored in rest[start : start + together]:
            again.take(stored)
        again.learn()
    assert again.joiner.joined == story.fold.joiner.joined
    assert again.bandit is not None
    assert save_bytes(again.bandit) == save_bytes(story.bandit)


def _tale() -> Sequence[tuple[int, str, Record]]:
    """Return twelve events, most of them with a reward, and some with two."""
    told: list[tuple[int, str, Record]] = []
    for number in range(12):
        ranked: Decided = decided(deferred=number == 3, plays=[play(chosen=number % 2)])
        told.append((200 * number, f"e{number}", ranked))
        if number % 3:
            told.append((200 * number + 50, f"e{number}", rewarded(number / 12)))
        if number % 4 == 1:
            told.append((200 * number + 90, f"e{number}", rewarded(-0.1)))
    told.append((3_000, "e3", Activated()))
    told += [(WAIT + 700 * number, "", Ticked()) for number in range(12)]
    return told
