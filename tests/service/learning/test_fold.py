"""The model is the sum of the log: joins, waits and defaults, by hand."""

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rbmle import Bandit, LinUCB, Network, NeuralRBMLEPC, Regression
from rbmle.core.contexts import per_arm
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts
from rbmle.service.configuration import Aggregation, ServiceConfiguration, Settle
from rbmle.service.learning.budget import Budget
from rbmle.service.learning.checkpoints import Checkpoints, read
from rbmle.service.learning.deadlines import STALE, Deadlines
from rbmle.service.learning.decision_cache import APART
from rbmle.service.learning.events import Counts, Joined, Pending
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.joining import CHUNK
from rbmle.service.learning.model import saved
from rbmle.service.log.base import Row, Stored
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    NO_FEATURES,
    Activated,
    Configured,
    Decided,
    Imported,
    Modelled,
    OfferedAction,
    Play,
    Record,
    Reset,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
)
from rbmle.service.statistics import Statistics

WAIT = 600_000
USUAL = ServiceConfiguration(reward_wait_time=timedelta(milliseconds=WAIT), settle=Settle.ON_REWARD)


class Story:
    """A log that is written and folded record by record; each observation is what a LinUCB saw."""

    def __init__(
        self,
        configuration: ServiceConfiguration = USUAL,
        log: Any = None,
        make: Any = None,
        *,
        is_old: bool = False,  # as written before there was `settle`
    ) -> None:
        self.log = log or MemoryLog()
        self.notes = Notes()
        self.fold = Fold(log=self.log, make=make or Linear, watcher=self.notes)
        self.tell(0, "", Modelled(settings={"seed": 0}))
        kept = {n: v for n, v in configuration.to_json().items() if not (is_old and n == "settle")}
        self.tell(0, "", Configured(configuration=kept))

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

    fits_per_second = 5

    def __init__(self, settings: dict[str, Any]) -> None:
        self.seed = settings["seed"]

    def start(self) -> Bandit:
        return Bandit(LinUCB(exploration=0.0), features=2, encoding="per-arm", seed=self.seed)

    def load(self, model: bytes) -> Bandit:
        return Bandit.load(io.BytesIO(model))

    def played(self, plays: Sequence[tuple[Decided, Play]], bandit: Bandit) -> Contexts:
        return per_arm(np.eye(2)[[play.chosen for _, play in plays]], 2)


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
        context=NO_FEATURES,
        actions=[OfferedAction(id="a"), OfferedAction(id="b")],
        plays=[play],
        digest="d",
        learned=0,
    )
    return Decided(**{f: getattr(usual, f) for f in usual.__struct_fields__} | changes)


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
    assert saved(fold.bandit) == saved(story.bandit)


def test_no_more_is_fitted_than_the_budget_has_and_all_is_remembered() -> None:
    story = Story(make=Neural)
    start = network_of(story.bandit)
    for number in range(12):
        story.tell(number, f"e{number}", decided())
    story.tell(20, "e11", Rewarded(values={"": 1.0}))
    assert (network_of(story.bandit) != start).any()
    story.tell(WAIT + 1_000, "", Ticked())  # the bucket is full again, and has 5 for 11
    after = network_of(story.bandit)
    assert story.learned == 12
    story.tell(WAIT + 1_000, "f", decided())
    story.tell(WAIT + 1_100, "f", Rewarded(values={"": 1.0}))  # half a fit since then
    np.testing.assert_array_equal(network_of(story.bandit), after)
    assert story.learned == 13
    story.tell(WAIT + 1_150, "g", decided())
    story.tell(WAIT + 1_200, "g", Rewarded(values={"": 1.0}))
    assert (network_of(story.bandit) != after).any()


@pytest.mark.parametrize("is_old", [False, True])
def test_which_observations_are_fitted_does_not_depend_on_their_rewards_but_in_old_logs(
    is_old: bool,
) -> None:
    configuration = replace(USUAL, reward_aggregation=Aggregation.SUM)
    story = Story(configuration, make=Neural, is_old=is_old)
    for number in range(1, 9):
        story.tell(number, f"e{number}", decided())
    story.tell(10, "e8", Rewarded(values={"": 1.0}))
    story.tell(WAIT + 1_000, "", Ticked())
    by_hand = Neural({"seed": 0}).start()
    first = [True] * 4 + [False] * 3 + [True] if is_old else [True] * 5 + [False] * 3
    rewards = [0.0] * 7 + [1.0]
    by_hand.learn_all(per_arm([[1.0, 0.0]] * 8, 2), rewards, is_fitted=np.array(first))
    assert saved(story.bandit) == saved(by_hand)
    assert story.fold.budget == Budget(WAIT + 1_000, 5_000, prefers_joined=is_old)


@pytest.mark.parametrize("settle", Settle)
@pytest.mark.parametrize("at", [5, 60, 61, 100])
def test_a_budget_goes_on_where_a_checkpoint_left_it(
    at: int, settle: Settle, tmp_path: Path
) -> None:
    story = Story(replace(USUAL, settle=settle), make=Neural)
    for number in range(60):
        story.tell(7 * number, f"e{number}", decided())
        if number % 5 == 0:
            story.tell(7 * number + 1, f"e{number}", Rewarded(values={"": float(number % 2)}))
    for number in range(60):
        story.tell(WAIT + 30 * number, f"f{number}", decided())
    first = Fold(log=story.log, make=Neural)
    for stored in story.log.read(0, at):
        first.apply(stored)
    saved_to = Checkpoints(tmp_path).save(first, Statistics())
    state, bandit = read(saved_to)
    again = Fold(log=story.log, make=Neural)
    again.resume(state.settings, Bandit.load(io.BytesIO(bandit)), state.joined, state.budget)
    for stored in story.log.read(at):
        again.apply(stored)
    assert again.joiner.joined == story.fold.joiner.joined
    assert again.budget == story.fold.budget
    assert again.bandit is not None
    assert saved(again.bandit) == saved(story.bandit)


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
    assert saved(fold.bandit) == saved(story.bandit)
    assert story.learned == 1


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


def play(**changes: Any) -> Play:
    usual: dict[str, Any] = {"eligible": [0, 1], "probabilities": [0.9, 0.1], "chosen": 0}
    return Play(**usual | changes)


def network_of(bandit: Bandit) -> np.ndarray:
    walk: np.ndarray = bandit.state.regression.walk.theta.output.copy()
    return walk


class Neural(Linear):
    """A network in the place of the linear model."""

    def start(self) -> Bandit:
        policy = NeuralRBMLEPC(model=Regression(network=Network(width=4)))
        return Bandit(policy, features=2, encoding="per-arm", seed=self.seed)


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
