"""Shadow policies: what they are judged on, what they learn, and their promotion."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from rbmle.features import Hashing
from rbmle.policies.registry import policy_with
from rbmle.service.exports.shadows import Shadow, Shadows
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.joining import Settled
from rbmle.service.log.base import Stored
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import (
    NO_FEATURES,
    OPERATOR,
    Assignment,
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    PromotionAsked,
    Record,
    Rewarded,
    Ticked,
    decode_record,
    row_of,
)
from rbmle.service.model.settings import ModelSettings, save_bytes, settings_of
from rbmle.service.settings import Promotion, ServiceConfiguration

MODEL = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=6), seed=1)
CHANCES = (0.2, 0.7)  # of a click on each action
USUAL = ServiceConfiguration(shadows=("lin-ucb", "uniform"), exploration=0.1)


class Tale:
    """A log of uniform play, whose second action is better."""

    def __init__(self, configuration: ServiceConfiguration = USUAL) -> None:
        self.log, self.time = MemoryLog(), 0
        self.tell(OPERATOR, Modelled(settings=MODEL.to_json()))
        self.tell(OPERATOR, Configured(configuration=configuration.to_json()))
        self._rng, self._events = np.random.default_rng(0), 0

    def tell(self, event: str, record: Record) -> None:
        self.log.append([row_of(record, event, self.time)])

    def play(self, count: int) -> None:
        """Play so many events, and let their time pass."""
        for _ in range(count):
            self._events += 1
            self.time += 1_000
            chosen = int(self._rng.integers(2))
            play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=chosen)
            self.tell(f"e{self._events}", decided(play))
            reward = float(self._rng.random() < CHANCES[chosen])
            self.tell(f"e{self._events}", Rewarded(values={"": reward}))
        self.time += 1_000_000
        self.tell("\x1f", Ticked())

    def shadows(self) -> Shadows:
        shadows = Shadows(self.log, settings_of(self.log))
        while shadows.seq < self.log.last():
            shadows.follow()
        assert not shadows.is_behind
        return shadows

    def kinds(self) -> list[str]:
        return [stored.row.kind for stored in self.log.of_event(OPERATOR)]


def decided(play: Play, **changes: object) -> Decided:
    actions = [OfferedAction(id="a"), OfferedAction(id="b")]
    record = Decided(context=NO_FEATURES, actions=actions, plays=[play], digest="", learned=0)
    return msgspec.structs.replace(record, **changes)


def test_a_shadow_is_compared_with_what_was_played() -> None:
    tale = Tale()
    tale.play(1_500)
    better, same = tale.shadows().reports()
    assert (better.policy, same.policy) == USUAL.shadows
    assert better.plays == same.plays == 1_500
    assert better.played == pytest.approx(0.45, abs=0.05)
    # It explores as the service does, with ε = 0.1: 0.95 of the plays are of the better action.
    truth = 0.95 * 0.7 + 0.05 * 0.2 - 0.45
    assert better.low is not None
    assert better.high is not None
    assert 0 < better.low < truth < better.high
    assert better.lift == pytest.approx(truth, abs=0.07)
    assert same.lift == pytest.approx(0, abs=1e-9)


def test_what_it_learns_is_what_a_service_with_this_policy_would_know() -> None:
    tale = Tale()
    tale.play(400)
    shadow = tale.shadows().shadows[0]
    log = MemoryLog()
    for stored in tale.log.read(0):
        row = stored.row
        if row.kind == "modelled":
            row = row_of(Modelled(settings=shadow.model.to_json()), OPERATOR, row.time)
        log.append([row])
    fold = Fold(log=log, make=ModelSettings.from_json)
    for stored in log.read(0):
        fold.apply(stored)
    assert fold.bandit is not None
    assert shadow.bandit.round == fold.bandit.round == 400
    assert save_bytes(shadow.bandit) == save_bytes(fold.bandit)


def test_it_is_promoted_by_hand_with_what_it_has_learned_and_once() -> None:
    tale = Tale()
    tale.play(300)
    assert tale.shadows().promote() is None
    tale.tell("\x1e", PromotionAsked(policy="lin-ucb"))
    shadows = tale.shadows()
    assert shadows.promote() == "lin-ucb"
    assert tale.kinds() == ["modelled", "configured", "modelled", "imported"]
    fold = Fold(log=tale.log, make=ModelSettings.from_json)
    for stored in tale.log.read(0):
        fold.apply(stored)
    assert fold.bandit is not None
    assert save_bytes(fold.bandit) == save_bytes(shadows.shadows[0].bandit)
    late = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=1)
    again = tale.shadows()  # after a restart
    before = tale.log.of_event("e300")[0]
    record = decode_record(before.row)
    assert isinstance(record, Decided)
    again.settle_all([Settled(before, record, late, 1.0, 0, False)])  # another model decided it
    assert again.promote() is None
    assert again.reports()[0].plays == 0  # another model decides


def test_it_is_promoted_automatically_once_it_is_surely_better() -> None:
    tale = Tale(replace(USUAL, promotion=Promotion.AUTOMATIC))
    tale.play(40)
    assert tale.shadows().promote() is None
    tale.play(1_500)
    assert tale.shadows().promote() == "lin-ucb"
    tale.play(1_500)
    assert tale.shadows().promote() is None
    records = [decode_record(stored.row) for stored in tale.log.of_event(OPERATOR)]
    assert sum(isinstance(record, Modelled) for record in records) == 2


def test_the_holdout_and_baselines_without_a_choice_are_not_judged() -> None:
    shadow = Shadow("lin-ucb", MODEL.with_policy(policy_with("lin-ucb", "")))
    sure = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0)
    even = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=0)
    held = Assignment(share=0.1, unit="0" * 16, is_held=True)
    settled = []
    for number, record in enumerate(
        [
            decided(even, assignment=held),
            decided(sure),
            decided(even),
            decided(even, mode="LoggingOnly"),
        ]
    ):
        stored = Stored(number + 1, row_of(record, f"e{number}", 0))
        settled.append(Settled(stored, record, record.plays[0], 1.0, 0, False))
    shadow.take(settled, USUAL, 0)
    assert (shadow.sums.plays, shadow.sums.unlikely) == (1, 1)
    assert shadow.bandit.round == 2


def test_none_is_promoted_before_it_has_read_the_log() -> None:
    tale = Tale()
    tale.play(600)
    tale.tell("\x1e", PromotionAsked(policy="lin-ucb"))
    shadows = Shadows(tale.log, settings_of(tale.log))
    shadows.follow()
    assert shadows.is_behind
    assert shadows.promote() is None
    assert all(report.is_behind for report in shadows.reports())
