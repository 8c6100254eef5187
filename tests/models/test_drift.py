"""A model whose rewards stay below what it expects forgets, and only then."""

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle import (
    FGTS,
    NPR,
    Bandit,
    BootstrappedNN,
    DeepFPL,
    EENet,
    Exact,
    FullBatch,
    LinRBMLE,
    LinTS,
    LinUCB,
    Memory,
    Network,
    NeuralLinUCB,
    NeuralRBMLEGA,
    NeuralTS,
    NeuralUCB,
    Regression,
    Replay,
    Ridge,
)
from rbmle.core.encoding import stack
from rbmle.core.errors import SettingError
from rbmle.core.events import KEPT, Event, Events, without_logging
from rbmle.core.trees import leaves
from rbmle.engine.drift import (
    ALLOWANCE,
    CLIP,
    COUNT,
    EXCESS,
    LEAST,
    PRIOR,
    SQUARES,
    SUM,
    Watch,
    notice,
)
from rbmle.environments import Altered, Change, Coins, Environment
from rbmle.models.drift import complete, deviation, fresh_watch, least_reward

SWITCH = 200
WORLD = Altered(world=Coins(chances=(0.1, 0.9), irrelevant=2), change=Change(begin=SWITCH))
SMALL = Regression(network=Network(width=8), training=Replay(steps=20))
WINDOW, RESERVOIR = (Memory(keep=keep, size=150) for keep in ("window", "reservoir"))
POLICIES: dict[str, Any] = {
    "lin-ucb": LinUCB(),
    "lin-ts": LinTS(),
    "lin-rbmle": LinRBMLE(),
    "ucb": NeuralUCB(model=SMALL),
    "ucb, last point": NeuralUCB(model=replace(SMALL, training=Replay(steps=20, average=0.0))),
    "ucb, window": NeuralUCB(model=replace(SMALL, memory=WINDOW)),
    "ucb, reservoir": NeuralUCB(model=replace(SMALL, memory=RESERVOIR)),
    "ts, exact": NeuralTS(model=SMALL, precision=Exact()),
    "ucb, full batch": NeuralUCB(model=replace(SMALL, training=FullBatch(steps=20))),
    "ga": NeuralRBMLEGA(model=SMALL),
    "fpl": DeepFPL(model=SMALL),
    "bootstrap": BootstrappedNN(model=SMALL, networks=2),
    "fg-ts": FGTS(model=replace(SMALL, training=Replay(steps=20, average=0.0))),
    "npr": NPR(model=SMALL),
    "neural-lin-ucb": NeuralLinUCB(model=SMALL),
    "ee-net": EENet(model=SMALL),
}


def test_a_watch_saved_without_deviations_is_completed() -> None:
    """Two rewards of 0 and two of 1: σ² = ¼, and the mean deviation is ½."""
    assert deviation(complete(np.array([2.0, 2.0, 4.0, 0.0]))) == 0.5
    watch = fresh_watch()
    assert complete(watch) is watch
    for places in (4, 5, 6):  # of earlier versions
        completed = complete(watch[:places])
        assert len(completed) == len(watch)
        assert completed[PRIOR] == 1  # they imagined a reward of 0
        assert (np.delete(completed[LEAST + 1 :], PRIOR - LEAST - 1) == 0).all()


def test_the_least_reward_is_known_from_the_first_one_on() -> None:
    """What was saved without it does not know it later either."""
    watch, old = fresh_watch(), complete(np.array([2.0, 2.0, 4.0, 0.0, 2.0]))
    assert least_reward(watch) == -np.inf
    for reward in (0.5, -0.25, 1.0):
        notice(watch, reward, 0.0, 0.0)
        notice(old, reward, 0.0, 0.0)
    assert least_reward(watch) == -0.25
    assert least_reward(old) == -np.inf


def test_the_excess_is_a_sum_of_clipped_standardised_shortfalls() -> None:
    """Before any data r̄ = 0 and σ = 1; after −½, r̄ = −¼ and σ² = ⅝ − 1/16 = 9/16."""
    watch = fresh_watch()
    assert not notice(watch, -0.5, 0.0, 10.0)
    assert watch[EXCESS] == pytest.approx(0.5 - ALLOWANCE)
    assert watch[SUM] / watch[COUNT] == pytest.approx(-0.25)
    assert watch[SQUARES] / watch[COUNT] == pytest.approx(5 / 8)
    before = watch[EXCESS]
    assert not notice(watch, -0.625, 0.0, 10.0)
    assert watch[EXCESS] == pytest.approx(before + 0.375 / 0.75 - ALLOWANCE)
    before = watch[EXCESS]
    assert not notice(watch, -99.0, 0.0, 10.0)
    assert watch[EXCESS] == pytest.approx(before + CLIP - ALLOWANCE)


def test_rewards_that_do_not_fall_set_off_no_alarm_whatever_is_expected() -> None:
    """The estimate of the arm that is played is too high more often than too low."""
    watch = fresh_watch()
    rewards = np.random.default_rng(0).random(5000) < 0.5
    assert not any(notice(watch, float(reward), 5.0, 40.0) for reward in rewards)


def test_rewards_that_fall_as_expected_set_off_no_alarm() -> None:
    """Contexts that promise little may come in a row."""
    watch = fresh_watch()
    for reward in np.repeat([1.0, 0.0], 1000):
        assert not notice(watch, reward, reward, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_smaller_fall_is_seen_where_the_model_knows_nothing_of_the_rewards_any_more(
    seed: int,
) -> None:
    """As a click rate that falls from 28 % to 18 %, which is within the allowance of the quick test."""
    rng, watch = np.random.default_rng(seed), fresh_watch()
    chances = rng.choice([0.16, 0.4], 12_000)  # 28 % in the mean, and expected to the letter
    rewards = (rng.random(12_000) < chances).astype(float).tolist()
    assert not any(notice(*one) for one in watched(watch, rewards, chances.tolist()))
    fallen = (rng.random(3_000) < 0.18).astype(float).tolist()
    alarms = [notice(*one) for one in watched(watch, fallen, chances.tolist())]
    assert 100 < alarms.index(True) < 1_500


@pytest.mark.parametrize("seed", range(5))
def test_nights_with_lower_rewards_set_off_no_alarm(seed: int) -> None:
    """Rewards fall by a third for 3,000 rounds again and again; the model does not know, but orders them."""
    rng, watch = np.random.default_rng(seed), fresh_watch()
    chances = rng.choice([0.05, 0.55], 30_000)
    nights = np.arange(30_000) // 3_000 % 2
    rewards = (rng.random(30_000) < chances * np.where(nights, 2 / 3, 1)).astype(float).tolist()
    assert not any(notice(*one) for one in watched(watch, rewards, chances.tolist()))
    fallen = (rng.random(3_000) < 0.1).astype(float).tolist()
    assert any(notice(*one) for one in watched(watch, fallen, chances.tolist()))


def watched(
    watch: Watch, rewards: list[float], expected: list[float]
) -> list[tuple[Watch, float, float, float]]:
    """Return the arguments of `notice` for some rewards in turn."""
    return [(watch, reward, hope, 40.0) for reward, hope in zip(rewards, expected, strict=False)]


def test_the_alarm_goes_off_above_its_threshold_alone() -> None:
    loud, quiet = fresh_watch(), fresh_watch()
    for watch, alarm in ((loud, 40.0), (quiet, 0.0)):
        assert not any(notice(watch, 1.0, 1.0, alarm) for _ in range(100))
    assert [notice(loud, 0.0, 1.0, 40.0) for _ in range(40)].index(True) == 22  # 23 · 1¾ > 40
    assert not any(notice(quiet, 0.0, 1.0, 0.0) for _ in range(1000))


@pytest.mark.parametrize("policy", [NeuralUCB(), LinUCB()], ids=lambda one: type(one).__name__)
def test_pure_noise_sets_off_no_alarm(policy: Any) -> None:
    learner, rng = Bandit(policy, arms=10, features=20), np.random.default_rng(1)
    for t in range(1000):
        decision = learner.decide(rng.normal(size=20))
        learner.learn(decision, float(rng.random() < 0.5))
        assert learner.state.round == t + 1


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_recovers_from_a_switch(name: str) -> None:
    regrets = played(bandit(POLICIES[name]), WORLD, 2 * SWITCH)
    assert (regrets[SWITCH + 100 :] > 0).mean() < 0.25


@pytest.mark.parametrize("name", POLICIES)
def test_an_alarm_brings_back_the_state_before_any_data(name: str) -> None:
    learner = bandit(POLICIES[name])
    played(learner, WORLD, SWITCH)
    round_before = learner.state.round
    x = WORLD.round(0, 0).x
    for reward in [1.0] * 50 + [-50.0] * 100:
        learner.learn(x, arm=0, reward=reward)
        if learner.state.round < round_before:
            break
        round_before = learner.state.round
    fresh = leaves(bandit(POLICIES[name]).state)
    trees: Any = zip(leaves(learner.state), fresh, strict=True)
    for after, start in trees:
        assert after.keys() == start.keys()
        assert all(np.array_equal(after[at], start[at]) for at in after)


@pytest.mark.parametrize("name", POLICIES)
def test_without_an_alarm_the_watch_changes_nothing(name: str) -> None:
    policy = POLICIES[name]
    deaf = replace(policy, model=replace(policy.model, alarm=0.0))
    watched, unwatched = bandit(policy), bandit(deaf)
    still = Coins(chances=(0.1, 0.9), irrelevant=2)
    assert (played(watched, still, 150) == played(unwatched, still, 150)).all()
    assert same(watched, unwatched)


@pytest.mark.parametrize("name", POLICIES)
def test_a_batch_with_an_alarm_equals_single_observations(name: str) -> None:
    alone, together = bandit(POLICIES[name]), bandit(POLICIES[name])
    offers = [WORLD.round(t, 0) for t in range(SWITCH - 50, SWITCH + 80)]
    played(alone, WORLD, SWITCH - 50)
    played(together, WORLD, SWITCH - 50)
    begun = alone.state.round
    contexts = [alone.decide(offer.x, eligible=[1]).context for offer in offers]
    rewards = [float(offer.rewards[1]) for offer in offers]
    for offer, reward in zip(offers, rewards, strict=True):
        alone.learn(offer.x, arm=1, reward=reward)
    together.learn_all(stack(contexts), rewards)
    assert alone.state.round < begun  # there was an alarm
    assert same(alone, together)


@pytest.mark.parametrize("name", ["lin-ucb", "ucb", "bootstrap"])
def test_a_saved_watch_continues(name: str, tmp_path: Path) -> None:
    unbroken = bandit(POLICIES[name])
    played(unbroken, WORLD, SWITCH + 10)  # the excess has begun to grow
    unbroken.save(tmp_path / "bandit")
    resumed = Bandit.load(tmp_path / "bandit")
    for one in (unbroken, resumed):
        played(one, WORLD, 2 * SWITCH, begin=SWITCH + 10)
    assert same(unbroken, resumed)


@pytest.mark.parametrize("name", POLICIES)
def test_a_bandit_reports_when_it_forgot_and_how_much(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    learner = bandit(POLICIES[name])
    assert not learner.events
    assert "forgotten" not in repr(learner)
    while not learner.resets:
        played(learner, WORLD, learner.round + 1, begin=learner.round)
    (event,) = learner.events
    assert (event.kind, event.round, event.forgotten) == ("drift", learner.round, learner.round)
    assert SWITCH < event.round < SWITCH + 60
    assert [str(event)] == [record.getMessage() for record in caplog.records]
    told = f"{event.round} rounds learned (the first {event.round} forgotten after a drift alarm)"
    assert told in repr(learner)


def test_events_of_a_batch_have_the_round_of_the_reward_that_set_off_the_alarm() -> None:
    alone, together = bandit(LinUCB()), bandit(LinUCB())
    x = WORLD.round(0, 0).x
    rewards = ([1.0] * 200 + [-50.0] * 60) * 3
    contexts = stack([alone.decide(x, eligible=[0]).context] * len(rewards))
    for reward in rewards:
        alone.learn(x, arm=0, reward=reward)
    together.learn_all(contexts, rewards, times=range(len(rewards)))
    assert len(together.events) == together.resets > 1
    assert [replace(event, time=None) for event in together.events] == list(alone.events)
    assert all(event.time == event.round - 1 for event in together.events)


def test_events_are_saved_and_copied_with_the_bandit(tmp_path: Path) -> None:
    learner = bandit(LinUCB())
    played(learner, WORLD, 2 * SWITCH)
    assert learner.events
    learner.save(tmp_path / "bandit")
    for other in (Bandit.load(tmp_path / "bandit"), copy(learner), learner.snapshot()):
        assert (other.events, other.resets) == (learner.events, learner.resets)
        assert repr(other) == repr(learner)


def test_only_the_newest_events_are_kept_and_all_are_counted() -> None:
    events = Events()
    with without_logging():
        for round in range(KEPT + 5):
            events = events.with_event(Event(round=round, forgotten=1))
    assert (len(events.newest), events.newest[0].round, events.count) == (KEPT, 5, KEPT + 5)


@pytest.mark.parametrize("alarm", [-1.0, float("nan"), float("inf")])
def test_a_mistaken_alarm_gets_a_message(alarm: float) -> None:
    for make in (Regression, Ridge):
        with pytest.raises(SettingError, match="`alarm` must be a finite number, 0 or more"):
            make(alarm=alarm)


def bandit(policy: Any) -> Bandit:
    """Return a bandit before any data."""
    return Bandit(policy, arms=WORLD.arms, features=WORLD.features, seed=0)


def played(learner: Bandit, world: Environment, horizon: int, begin: int = 0) -> np.ndarray:
    """Play some rounds, and return the regret of each."""
    regrets = np.zeros(horizon)
    for t in range(begin, horizon):
        offer = world.round(t, 0)
        decision = learner.decide(offer.x)
        learner.learn(decision, float(offer.rewards[int(decision.arm)]))
        regrets[t] = offer.means.max() - offer.means[int(decision.arm)]
    return regrets


def same(first: Bandit, second: Bandit) -> bool:
    """Return whether two states are equal, bit for bit."""
    (arrays, numbers), (other_arrays, other_numbers) = leaves(first.state), leaves(second.state)
    alike = all(np.array_equal(arrays[at], other_arrays[at]) for at in arrays)
    return alike and numbers == other_numbers
