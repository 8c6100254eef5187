"""What policies would have earned on the log of a service."""

import numpy as np
import pytest

from rbmle.evaluation import LogFileError, evaluate
from rbmle.service.exports.evaluations import (
    LENGTHS,
    MOST_WINDOWS,
    TRIED,
    Windows,
    judge_policies,
    policy_of,
    score_features,
)
from rbmle.service.exports.export import ServiceLog
from rbmle.service.log.records import NamedPolicy, pack_features
from rbmle.service.statistics.ranges import MINUTE
from tests.service.exports.evaluation_samples import asked, day
from tests.service.exports.samples import OVER, START, decided, kept, play, rewarded

YEAR = 365 * 24 * 60  # minutes


def test_two_decisions_by_hand() -> None:
    log = kept(
        (1, "e", decided(plays=[play(chosen=0)])),
        (2, "e", rewarded(1.0)),
        (3, "f", decided()),
        (OVER + 10_000, "g", decided()),
    )
    online, baseline, uniform = judge_policies(log, asked(), step=lambda: None)
    assert (online.source, online.average_reward) == ("Online", 0.25)  # 1, and −0.5 by default
    assert (baseline.ips_numerator, baseline.ips_denominator) == (5.0, 2.0)
    assert (baseline.snips_denominator, baseline.average_reward) == (5.0, 1.0)
    weights = 0.5 / 0.2, 0.5 / 0.8
    assert uniform.snips_denominator == pytest.approx(sum(weights))
    assert uniform.average_reward == pytest.approx((weights[0] - 0.5 * weights[1]) / sum(weights))


def test_decisions_of_another_time_do_not_count() -> None:
    log = kept(
        (1, "e", decided()),
        (2, "e", rewarded(1.0)),
        (9, "f", decided()),
        (OVER + 10_000, "g", decided()),
    )
    (online, *_) = judge_policies(log, asked(end=START + 9), step=lambda: None)
    assert (online.ips_denominator, online.average_reward) == (1.0, 1.0)
    with pytest.raises(LogFileError, match="no decision of this time is settled"):
        judge_policies(log, asked(start=START + 10, end=START + 11), step=lambda: None)


def test_a_policy_that_learns_is_judged_as_by_evaluate() -> None:
    log = day()
    policy = NamedPolicy(name="lin-ucb wide", arguments="exploration=0.5")
    found = judge_policies(log, asked(policies=[policy]), step=lambda: None)[-1]
    direct = evaluate(
        ServiceLog(log, "log"),
        {"it": policy_of(policy)},
        estimators="ips,snips",
        interval="normal",
    )
    snips = direct["it", "snips"]
    assert (found.source, found.name) == ("Custom", "lin-ucb wide")
    assert found.average_reward == snips.value
    assert found.ips_numerator / found.ips_denominator == pytest.approx(direct["it", "ips"].value)
    assert found.ips_numerator / found.snips_denominator == pytest.approx(snips.value)
    assert snips.high is not None
    assert snips.value is not None
    assert found.half_width == pytest.approx(snips.high - snips.value)
    assert snips.value > 0.7  # uniform play earns 0.5


def test_windows_hold_the_sums_of_their_time() -> None:
    log, policy = day(), NamedPolicy(name="lin-ucb")
    found = judge_policies(log, asked(policies=[policy]), step=lambda: None)
    for one in found:
        assert one.minutes == 5
        (sums,) = one.windows.values()
        assert (sums.plays, sums.w, sums.wr) == (400, one.snips_denominator, one.ips_numerator)


def test_poor_overlap_is_told_as_evaluate_tells_it() -> None:
    far = play(probabilities=[1e-3, 0.999], chosen=1)  # the baseline is the first
    story = [(number, f"e{number}", decided(plays=[far])) for number in range(200)]
    log = kept(*story, (OVER + 10_000, "g", decided()))
    online, baseline, uniform = judge_policies(log, asked(), step=lambda: None)
    assert online.warnings == []
    assert "not chosen yet" in baseline.warnings[0]
    assert "THE PROPENSITIES DO NOT FIT" in uniform.warnings[0]
    policy = NamedPolicy(name="uniform")
    found = judge_policies(day(60), asked(policies=[policy]), step=lambda: None)[-1]
    assert "FEW ROUNDS" in found.warnings[0]


@pytest.mark.slow
def test_others_are_tried_if_asked() -> None:
    found = judge_policies(day(100), asked(is_optimizing=True), step=lambda: None)
    assert [one.name for one in found] == ["Online", "Baseline", "Random", *TRIED]
    assert {one.source for one in found[3:]} == {"OfflineExperimentation"}


def test_windows_become_longer_and_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(0, YEAR * MINUTE, 5_000)
    weights, rewards = rng.integers(0, 4, 5_000).astype(float), rng.integers(0, 2, 5_000) * 1.0
    many, single = Windows(), Windows()
    for part in np.split(np.arange(5_000), 10):
        many.add_all(times[part], weights[part], rewards[part])
    for time, weight, reward in zip(times.tolist(), weights, rewards, strict=True):
        single.at(time).add(float(weight), float(reward))
    assert many.windows == single.windows
    assert many.minutes == 4 * LENGTHS[-1]  # 92 windows of four days
    assert len(many.windows) <= MOST_WINDOWS
    for number, sums in many.windows.items():
        here = times // (many.minutes * MINUTE) == number
        assert sums.plays == here.sum()
        assert sums.wr == (weights * rewards)[here].sum()
    assert many.total().w == weights.sum()


def test_a_short_time_has_windows_of_five_minutes() -> None:
    series = Windows()
    for minute in range(0, 8 * 60):
        series.at(minute * MINUTE).add(1.0, 1.0)
    assert (series.minutes, len(series.windows)) == (5, 96)
    series.at(8 * 60 * MINUTE).add(1.0, 1.0)
    assert (series.minutes, len(series.windows)) == (60, 9)


def test_what_rewards_hang_on_is_found() -> None:
    first, *others = score_features(day(), asked(), step=lambda: None)
    assert (first.namespace, first.name) == ("context", "time")
    assert (
        first.score > 1
    )  # shuffled, it is wrong in half of the decisions: E′ is 0.5, and Var(r) is 0.25
    assert {(one.namespace, one.name) for one in others} == {
        ("context", "noise"),
        ("action", "hot"),
    }
    assert all(abs(one.score) < 0.1 for one in others)


def test_namespaces_are_told() -> None:
    context = pack_features([{"user": {"age": 3, "address": {"city": "x"}}}, {"hour": 4}])
    story = [(number, f"e{number}", decided(context=context)) for number in range(40)]
    log = kept(*story, (OVER + 1_000, "g", decided()))
    found = score_features(log, asked(), step=lambda: None)
    names = {(one.namespace, one.name) for one in found}
    # air, which was chosen, has no features
    assert names == {("user", "age"), ("user", "address.city"), ("context", "hour")}
    assert all(one.score == 0 for one in found)


def test_a_few_decisions_are_too_few() -> None:
    with pytest.raises(LogFileError, match="19 decisions of this time are settled, but 20"):
        score_features(day(19), asked(), step=lambda: None)
