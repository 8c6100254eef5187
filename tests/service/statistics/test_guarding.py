"""Conservative mode: grants, what is pending, and the promise in a simulated service."""

from collections import deque

import msgspec
import numpy as np
import pytest

from rbmle.evaluation.conservative import SHARES, Guard
from rbmle.service.log.records import Decided, Guarded, GuardRule, Play
from rbmle.service.statistics.guarding import PARTS, REMEMBERED, Grant
from rbmle.service.statistics.summary import Statistics
from tests.service.statistics.samples import decided

RULE = GuardRule(tolerance=0.1, error=0.05, low=0.0, high=1.0)


def event(share: float, proposed: int, chosen: int, number: int, front: str = "f") -> Decided:
    play = Play(eligible=[0, 1], probabilities=[share, 1 - share], chosen=chosen)
    guarded = Guarded(rule=RULE, front=front, number=number, share=share, proposed=proposed)
    return decided(play, guarded=guarded)


def test_a_pending_play_is_assumed_to_be_the_worst_until_it_is_settled() -> None:
    statistics = Statistics()
    costly, free = event(0.5, 1, 0, number=1), event(0.5, 0, 0, number=1)
    for each in (costly, free):
        statistics.decide(0, each)
    book = statistics.guard
    assert book is not None
    assert book.pending == [1, 0, 0]
    assert book.pending_loss == pytest.approx(0.4)
    assert book.fronts == {"f": 1}
    for each in (costly, free):
        statistics.settle(0, each, each.plays[0], 1.0, True)
    assert (book.pending, book.guard.plays, book.guard.level) == ([0, 0, 0], 2, 1)
    expected = Guard(0.1, 0.05)
    expected.add(0.5, is_baseline=True, reward=1.0)
    expected.add(1.0, is_baseline=True, reward=1.0)
    assert book.guard == expected
    again = msgspec.json.decode(msgspec.json.encode(statistics), type=Statistics)
    assert again.guard == book


def test_other_settings_begin_again_and_rewards_are_measured_from_the_lowest() -> None:
    statistics = Statistics()
    first = event(0.5, 1, 1, number=1)
    statistics.decide(0, first)
    rule = GuardRule(tolerance=0.1, error=0.05, low=-1.0, high=1.0)
    play = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0)
    second = decided(play, guarded=Guarded(rule=rule, front="f", number=1))
    statistics.decide(0, second)
    statistics.settle(0, first, first.plays[0], 1.0, True)
    statistics.settle(0, second, play, 0.0, True)
    book = statistics.guard
    assert book is not None
    assert (book.rule, book.guard.plays) == (rule, 1)
    assert book.guard.surplus == pytest.approx(0.1 * 0.5)


def test_a_front_end_may_use_its_part_of_a_grant() -> None:
    grant = Grant(rule=RULE, plays=[5 * PARTS, 2 * PARTS, 0], fronts={"f": 100})
    shares = [grant.share("f", 100 + made) for made in range(7)]
    assert shares == [0.25, 0.25, 0.5, 0.5, 0.5, 1.0, 1.0]
    assert grant.share("another", 0) == 0.25


def test_only_so_many_front_ends_are_remembered() -> None:
    statistics = Statistics()
    for number in range(REMEMBERED + 5):
        statistics.decide(0, event(0.5, 1, 1, number=1, front=f"f{number}"))
    assert statistics.guard is not None
    assert len(statistics.guard.fronts) == REMEMBERED
    assert "f4" not in statistics.guard.fronts


def test_the_promise_holds_with_late_rewards_and_several_front_ends() -> None:
    least, opened = 1.0, 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        statistics, grants = Statistics(), dict[str, Grant]()
        numbers = dict.fromkeys("abc", 0)
        waiting: deque[tuple[Decided, float]] = deque()
        played = baseline = 0.0
        for number in range(6_000):
            name = "abc"[number % 3]
            if number % (40 + 10 * "abc".index(name)) < 3 and statistics.guard is not None:
                grants[name] = statistics.guard.grant()
            grant = grants.get(name)
            share = 1.0 if grant is None else grant.share(name, numbers[name])
            numbers[name] += share < 1  # the policy always proposes arm 1, which pays nothing
            chosen = 0 if rng.random() < share else 1
            record = event(share, 1, chosen, number=numbers[name], front=name)
            statistics.decide(number, record)
            waiting.append((record, float(chosen == 0 and rng.random() < 0.5)))
            if len(waiting) > 300:
                before, reward = waiting.popleft()
                statistics.settle(number, before, before.plays[0], reward, True)
            played, baseline = played + 0.5 * share, baseline + 0.5
            least = min(least, played / baseline)
            opened += share < 1
    assert least >= 0.9
    assert opened > 100
    assert set(SHARES) == {0.5, 0.25, 0.1}
