"""What matters, in one sentence."""

import re
from dataclasses import replace

import msgspec
import pytest

from rbmle.service.dashboard.headline import Headline, headline
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.view import view
from rbmle.service.log.records import Play
from rbmle.service.model.report import ShadowReport
from rbmle.service.settings import LearningMode, Settle
from rbmle.service.statistics.guarding import GuardReport
from rbmle.service.statistics.lift_intervals import HoldoutLift, Lift, WindowLift
from rbmle.service.statistics.ranges import MINUTE
from rbmle.service.statistics.summary import Statistics
from tests.service.dashboard.samples import busy, count, decided_of, overview_of, played


def test_the_headline_says_what_matters() -> None:
    assert told(overview_of(Statistics())).text == "No decisions yet."
    waiting = told(overview_of(played(1, 0), pending=1))
    assert waiting.text == "1 decision, none settled yet."
    assert waiting.verdict == (
        "An event counts once it is settled, at the end of the reward wait time; pending: 1."
    )
    soon = told(overview_of(played(1, 0), settle=Settle.ON_REWARD))
    assert "settled, by its reward or at the end of the reward wait time" in soon.verdict
    early = told(overview_of(played(4, 4)))
    assert early.text.startswith("The average reward is 0.500; it is too early to compare")
    assert early.why == "only 4 plays of the policy are settled, and 30 are needed."
    log = told(overview_of(played(2, 0), learning_mode=LearningMode.LOGGING_ONLY))
    assert log.text == "2 decisions in the log; nothing is learned."
    assert "the mode is LoggingOnly" in log.why


@pytest.mark.parametrize(
    ("others", "tone", "sign"), [(0.9, "good", "+"), (0.1, "bad", "−"), (0.5, "plain", "")]
)
def test_a_lift_is_shown_with_an_interval_valid_at_any_time(
    others: float, tone: str, sign: str
) -> None:
    found = told(overview_of(contested(others)))
    assert found.tone == tone
    assert found.text.startswith(sign)
    assert re.search(r" % over the baseline action \(−?[0-9.]+ to −?[0-9.]+\)$", found.text)
    assert "uniform play (" in found.verdict
    assert "valid at any time" in found.verdict
    assert found.why.startswith("the interval contains 0. 4,000 plays") == (tone == "plain")
    assert found.why_title == "Why this is not certain yet:"


def test_a_lift_over_a_baseline_of_zero_is_a_difference() -> None:
    statistics = Statistics()
    for number in range(4_000):
        chosen = number % 2
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=chosen)
        count(statistics, play, float(chosen))
    found = told(overview_of(statistics))
    assert found.text.startswith("+0.500 per decision over the baseline action (0.")
    assert found.tone == "good"


def test_rewards_without_bounds_have_no_interval() -> None:
    statistics = contested(0.9)
    count(statistics, Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=0), 3.0)
    found = told(overview_of(statistics))
    assert "the lift over the baseline action is not known" in found.text
    assert found.why.startswith("1 play got a reward outside −1 to 1")


def test_a_baseline_without_a_chance_is_given_as_the_reason() -> None:
    statistics = Statistics()
    for _ in range(50):
        count(statistics, Play(eligible=[1, 2], probabilities=[0.5, 0.5], chosen=1), 1.0)
    assert "almost no chance of being shown in 50 plays" in told(overview_of(statistics)).why


def test_settling_on_reward_adds_a_caveat() -> None:
    overview = overview_of(contested(0.9), settle=Settle.ON_REWARD)
    assert "biases recent averages upward" in told(overview).verdict
    assert "biases recent averages upward" not in told(overview_of(contested(0.9))).verdict


def test_a_period_without_decisions_says_so() -> None:
    statistics = Statistics()
    play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=0)
    count(statistics, play, 1.0)
    count(statistics, play, 1.0, minute=2 * 24 * 60)
    now = 3 * 24 * 60 * 60_000
    overview = overview_of(statistics, time=now, summary=statistics.summary(now))
    assert view(overview, "hour").texts["headline"] == "No decisions in this period."
    assert view(overview, "week").texts["decisions"] == "2"
    assert [point.decided for point in view(overview, "week").points] == [1, 1]
    assert view(overview).texts["decisions"] == "2"
    empty = view(overview, "hour")
    assert empty.points == []
    assert not empty.flags["has_decisions"]
    assert not empty.flags["is_empty"]


def test_a_period_has_only_its_own_numbers() -> None:
    statistics, day = Statistics(), 24 * 60
    for number in range(100):
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=number % 2)
        count(statistics, play, 1.0)
    for _ in range(40):
        certain = Play(eligible=[1], probabilities=[1.0], chosen=1)
        count(statistics, certain, 0.0, minute=12 * day)
    now = 12 * day * MINUTE + 30_000
    overview = overview_of(statistics, time=now, summary=statistics.summary(now))
    hour, whole = view(overview, "hour"), view(overview)
    assert [row[2].text for row in hour.tables["actions"]] == ["40"]
    assert [row[2].text for row in whole.tables["actions"]] == ["90", "50"]
    assert [row[-1].text for row in hour.tables["actions"]] == ["0.000"]
    propensities = overview.within("hour").report.summary.propensities
    assert propensities[-1] == sum(propensities) == 40
    assert sum(overview.within("all").report.summary.propensities) == 140
    assert hour.tables["rewards"][0][-1].text == "40"
    assert "Late" not in str(hour.tables["rewards"])
    assert hour.texts["window"] == "10 min"
    assert hour.texts["when"] == "In the last hour"
    assert whole.texts["window"] == "21 h 20 min"
    days = view(overview, "1970-01-13/1970-01-13")
    assert days.texts["window"] == "10 min"
    assert days.texts["when"] == "On these days"


def test_more_than_ten_actions_are_shown_on_demand() -> None:
    assert not view(overview_of(busy())).flags["has_more_actions"]
    statistics = Statistics()
    for number in range(14):
        statistics.decide(0, decided_of(f"a{number}"))
    shown = view(overview_of(statistics))
    assert shown.flags["has_more_actions"]
    assert shown.texts["more_actions"] == "4 more actions"
    assert [len(shown.tables[name]) for name in ("actions", "more_actions")] == [10, 4]


def test_a_present_loss_is_the_headline_though_all_time_is_a_gain() -> None:
    lifts = [lift("hour", 0.157, 0.289, -0.21, -0.05), lift("all", 0.35, 0.3, 0.02, 0.1)]
    found = told(overview_of(contested(0.9), lifts=lifts))
    assert found.text == (
        "Losing now: in the last hour the average reward was 0.157, and the baseline action would have earned "
        "0.289."
    )
    assert found.verdict.startswith("That is −0.132 (−0.210 to −0.050) per decision.")
    assert found.beside.startswith("Since the start: +")
    assert found.tone == "bad"
    assert told(overview_of(contested(0.9), lifts=lifts), is_all_time=False).text.startswith("+")


def test_the_headline_shows_the_last_hour_beside_all_time() -> None:
    lifts = [lift("hour", 0.312, 0.28, -0.05, 0.11), lift("day", 0.2, 0.3, -0.3, 0.1)]
    found = told(overview_of(contested(0.9), lifts=lifts))
    assert found.text.startswith("+")
    assert found.beside == (
        "In the last hour the average reward was 0.312, and the baseline action would have earned 0.280, "
        "which may be chance."
    )
    sure = [lift("day", 0.412, 0.28, 0.05, 0.2)]
    assert told(overview_of(contested(0.9), lifts=sure)).beside.endswith(
        "In the last 24 hours the average reward was 0.412, and the baseline action would have earned 0.280: "
        "+0.132 (0.050 to 0.200)."
    )
    assert told(overview_of(contested(0.9))).beside == ""


def test_drift_alarms_are_shown_with_the_time_of_the_last() -> None:
    statistics = busy()
    time = statistics.timeline.minute * MINUTE
    overview = overview_of(statistics, resets=2, reset_times=[0, time])
    shown = view(overview)
    assert shown.marks == [time]  # the other one was before what is drawn
    (row,) = [row for row in shown.tables["learning"] if row[0].text == "Drift alarms"]
    assert (row[1].text, row[1].note) == ("2", "last on 1970-01-01 16:46 UTC")
    assert "Drift alarms" not in str(view(overview_of(statistics)).tables["learning"])


def test_intervals_of_a_moving_window_are_valid_for_one_look() -> None:
    overview = overview_of(contested(0.9), time=0)
    assert "valid for one look" in view(overview, "hour").texts["verdict"]
    assert "valid at any time" in view(overview).texts["verdict"]


def test_each_action_has_its_reward_and_interval() -> None:
    rows = view(overview_of(contested(0.9))).tables["actions"]
    found = {row[-1].text: row[-1].note for row in rows}
    assert found.keys() == {"0.500", "0.900"}
    low, high = (float(end) for end in found["0.900"].split(" to "))
    assert 0.8 < low < 0.9 < high < 1.0


def test_pending_events_are_shown() -> None:
    shown = view(overview_of(played(4, 4), pending=1_234))
    assert shown.texts["decisions_note"].endswith("in the last minute; 1,234 pending")
    (pending,) = [row for row in shown.tables["rewards"] if row[0].text == "Pending"]
    assert pending[1].text == "1,234"


def test_apprentice_mode_has_its_own_headline() -> None:
    statistics = Statistics()
    for preferred in (0, 0, 0, 1):
        play = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0, preferred=preferred)
        count(statistics, play, 0.5)
    found = told(overview_of(statistics, learning_mode=LearningMode.APPRENTICE))
    assert "The average reward is 0.500" in found.text
    assert "the same action in 75 % of the decisions" in found.text


def told(overview: Overview, is_all_time: bool = True) -> Headline:
    return headline(overview, is_all_time=is_all_time)


def lift(window: str, played: float, baseline: float, low: float, high: float) -> WindowLift:
    return WindowLift(
        window=window, plays=900, played=played, baseline=baseline, low=low, high=high, error=0.02
    )


def contested(others: float) -> Statistics:
    """Return statistics where the baseline pays ½, and all others what is given."""
    statistics = Statistics()
    for number in range(4_000):
        chosen = number % 2
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=chosen)
        pays = others if chosen else 0.5
        count(statistics, play, float(number // 2 % 10 < 10 * pays))
    return statistics


def test_the_headline_is_the_lift_over_the_holdout_if_there_is_one() -> None:
    lift = Lift(value=0.1, low=0.04, high=0.16, is_relative=True)
    difference = Lift(value=0.05, low=0.02, high=0.08, is_relative=False)
    holdout = HoldoutLift(
        share=0.1,
        play="baseline",
        difference=difference,
        relative=lift,
        policy_plays=9_000,
        held_plays=1_000,
        policy_mean=0.55,
        held_mean=0.5,
    )
    shown = told(overview_of(contested(0.9), holdout=holdout))
    assert shown.text == "+10 % over the holdout (4 to 16)"
    assert shown.tone == "good"
    assert "9,000 plays of the policy earned 0.550 each, and 1,000 of the holdout" in shown.verdict
    assert "Without the holdout, from probabilities alone: +" in shown.beside
    unsure = msgspec.structs.replace(
        holdout, relative=None, difference=Lift(value=0.05, low=-0.1, high=0.2, is_relative=False)
    )
    shown = told(overview_of(contested(0.9), holdout=unsure))
    assert shown.text.startswith("+0.050 per decision over the holdout (−0.100 to 0.200)")
    assert "a larger share than 10 %" in shown.why
    hour = headline(overview_of(contested(0.9), holdout=holdout).within("hour"), is_all_time=False)
    assert "holdout" not in hour.text


def test_shadows_and_conservative_mode_have_their_rows() -> None:
    assert not view(overview_of(busy())).flags["has_shadows"]
    early = ShadowReport(
        policy="lin-ts",
        plays=3,
        since=0,
        reward=None,
        played=None,
        low=None,
        high=None,
        is_behind=True,
    )
    better = msgspec.structs.replace(
        early,
        policy="lin-ucb",
        plays=900,
        reward=0.5,
        played=0.25,
        low=0.125,
        high=0.375,
        is_behind=False,
    )
    worse = msgspec.structs.replace(better, low=-0.5, high=-0.25)
    unsure = msgspec.structs.replace(better, low=-0.5)
    shown = view(overview_of(busy(), shadows=[early, better, worse, unsure]))
    assert shown.flags["has_shadows"]
    rows = shown.tables["shadows"]
    assert [row[-1].text for row in rows] == [
        "reading the log",
        "better",
        "worse",
        "no difference is certain",
    ]
    assert (rows[1][2].text, rows[1][2].note) == ("0.250", "0.125 to 0.375")
    guard = GuardReport(plays=500, surplus=20.0, low=6.0, pending=1.6, share=0.25)
    careful = overview_of(busy(), guard=guard)
    careful = replace(careful, configuration=replace(careful.configuration, conservative=0.1))
    learning = {row[0].text: row[1] for row in view(careful).tables["learning"]}
    assert learning["Never below the baseline"].text == "the policy, and 25% the baseline"
    assert "surely above 6.000" in learning["Never below the baseline"].note
