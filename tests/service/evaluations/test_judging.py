"""What policies would have earned on the log of a service."""

import pytest

from rbmle.evaluation import LogFileError, evaluate
from rbmle.service.evaluations.judging import TRIED, judged, policy_of
from rbmle.service.exports.logged import ServiceLog
from rbmle.service.log.records import NamedPolicy
from tests.service.evaluations.samples import asked, day
from tests.service.exports.samples import OVER, START, decided, kept, play, rewarded


def test_two_decisions_by_hand() -> None:
    log = kept(
        (1, "e", decided(plays=[play(chosen=0)])),
        (2, "e", rewarded(1.0)),
        (3, "f", decided()),
        (OVER + 10_000, "g", decided()),
    )
    online, baseline, uniform = judged(log, asked(), step=lambda: None)
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
    (online, *_) = judged(log, asked(end=START + 9), step=lambda: None)
    assert (online.ips_denominator, online.average_reward) == (1.0, 1.0)
    with pytest.raises(LogFileError, match="no decision of this time is settled"):
        judged(log, asked(start=START + 10, end=START + 11), step=lambda: None)


def test_a_policy_that_learns_is_judged_as_by_evaluate() -> None:
    log = day()
    policy = NamedPolicy(name="lin-ucb wide", arguments="exploration=0.5")
    found = judged(log, asked(policies=[policy]), step=lambda: None)[-1]
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
    found = judged(log, asked(policies=[policy]), step=lambda: None)
    for one in found:
        assert one.minutes == 5
        (sums,) = one.windows.values()
        assert (sums.plays, sums.w, sums.wr) == (400, one.snips_denominator, one.ips_numerator)


def test_poor_overlap_is_told_as_evaluate_tells_it() -> None:
    far = play(probabilities=[1e-3, 0.999], chosen=1)  # the baseline is the first
    story = [(number, f"e{number}", decided(plays=[far])) for number in range(200)]
    log = kept(*story, (OVER + 10_000, "g", decided()))
    online, baseline, uniform = judged(log, asked(), step=lambda: None)
    assert online.warnings == []
    assert "not chosen yet" in baseline.warnings[0]
    assert "THE PROPENSITIES DO NOT FIT" in uniform.warnings[0]
    policy = NamedPolicy(name="uniform")
    found = judged(day(60), asked(policies=[policy]), step=lambda: None)[-1]
    assert "FEW ROUNDS" in found.warnings[0]


@pytest.mark.slow
def test_others_are_tried_if_asked() -> None:
    found = judged(day(100), asked(is_optimizing=True), step=lambda: None)
    assert [one.name for one in found] == ["Online", "Baseline", "Random", *TRIED]
    assert {one.source for one in found[3:]} == {"OfflineExperimentation"}
