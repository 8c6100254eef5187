"""The headline of the dashboard: the lift over the baseline action, how certain it is, and why."""

from dataclasses import dataclass

from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.words import count, count_of, number, percent
from rbmle.service.settings import LearningMode, Settle
from rbmle.service.statistics.lift_intervals import (
    ALL,
    LAST,
    HoldoutLift,
    Lift,
    WindowLift,
    find_loss,
    lift_of,
)
from rbmle.service.statistics.summary import StatisticsSummary

FEWEST = 30  # settled plays of the policy before a lift is shown
BEHIND = 1_000  # records in the backlog from which it is given as a reason
UNKNOWN = "Why this is not known yet:"
UNSURE = "Why this is not certain yet:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The texts at the top of the page, and their tone: plain, good or bad."""

    text: str
    verdict: str
    beside: str = ""  # the recent lift, or the one since the start if the text is recent
    why: str = ""  # why the lift is not known, or not certain; empty if it is
    why_title: str = "Why nothing has changed yet:"
    tone: str = "plain"


def headline(overview: Overview, *, is_all_time: bool = True) -> Headline:
    """Return the headline of all time, or of a part of it."""
    summary = overview.report.summary
    decisions = count_of(summary.decisions, "decision")
    if not summary.decisions and not summary.settled:
        if overview.is_begun:
            return Headline(text="No decisions in this period.", verdict="Choose a longer period.")
        return Headline(text="No decisions yet.", verdict="The first one will appear here.")
    if overview.configuration.learning_mode is LearningMode.LOGGING_ONLY:
        return Headline(
            text=f"{decisions} in the log; nothing is learned.",
            verdict="The service only writes its log.",
            why="the mode is LoggingOnly, so the service shows the baseline action and does not learn. Choose "
            "the mode Apprentice or Online to learn.",
        )
    if not summary.settled:
        return Headline(text=f"{decisions}, none settled yet.", verdict=_pending(overview))
    if overview.configuration.learning_mode is LearningMode.APPRENTICE:
        return Headline(
            text=f"The average reward is {_average(summary)}, and the model would have shown the same action "
            f"in {percent(summary.agreement)} of the decisions.",
            verdict="It is usual to switch to the mode Online at 75 to 85 %.",
            why="the mode is Apprentice, so the service shows the baseline action and learns from it.",
        )
    return _compare(overview, is_all_time)


def _compare(overview: Overview, is_all_time: bool) -> Headline:
    summary, holdout = overview.report.summary, overview.report.holdout if is_all_time else None
    lift = lift_of(summary.over_baseline)
    if holdout is not None and find_loss(overview.report.lifts) is None:
        return _compare_with_holdout(overview, holdout, lift)
    if lift is None or summary.over_baseline.plays < FEWEST:
        unknown = (
            "the lift over the baseline action is not known"
            if summary.over_baseline.beyond
            else "it is too early to compare it with the baseline action"
        )
        return Headline(
            text=f"The average reward is {_average(summary)}; {unknown}.",
            verdict=_pending(overview),
            why=_explain_unknown(summary),
            why_title=UNKNOWN,
        )
    over_baseline = f"{_over(lift)} the baseline action ({_ends(lift)})"
    verdict = _verdict(overview, is_all_time)
    if is_all_time and (loss := find_loss(overview.report.lifts)) is not None:
        return Headline(
            text=f"Losing now: {_rewards(loss)}.",
            verdict=f"That is {_difference(loss)} per decision. This alarm is false in at most 1 week of 20, "
            "however often you look.",
            beside=f"Since the start: {over_baseline}. {verdict}",
            tone="bad",
        )
    is_certain = lift.low > 0 or lift.high < 0
    return Headline(
        text=over_baseline,
        beside=_recent(overview.report.lifts) if is_all_time else "",
        verdict=verdict,
        why_title=UNSURE,
        why="" if is_certain else _explain_uncertain(overview),
        tone="good" if lift.low > 0 else "bad" if lift.high < 0 else "plain",
    )


def _compare_with_holdout(
    overview: Overview, holdout: HoldoutLift, estimate: Lift | None
) -> Headline:
    """Return the lift over the holdout, beside the one that needs no holdout."""
    lift, days = holdout.lift, "since the holdout got its share"
    without = (
        ""
        if estimate is None
        else f"Without the holdout, from probabilities alone: {_over(estimate)} the baseline action "
        f"({_ends(estimate)}), since the start. "
    )
    is_certain = lift.low > 0 or lift.high < 0
    return Headline(
        text=f"{_over(lift)} the holdout ({_ends(lift)})",
        beside=without + _recent(overview.report.lifts),
        verdict=f"{count_of(holdout.policy_plays, 'play')} of the policy earned {number(holdout.policy_mean)} "
        f"each, and {count(holdout.held_plays)} of the holdout, which gets {_HELD[holdout.play]}, "
        f"{number(holdout.held_mean)}, {days}. {_verdict(overview, is_all_time=True)}",
        why_title=UNSURE,
        why=""
        if is_certain
        else f"the interval contains 0. It narrows as events of the holdout are settled; a larger share than "
        f"{percent(holdout.share)} makes that faster.",
        tone="good" if lift.low > 0 else "bad" if lift.high < 0 else "plain",
    )


_HELD = {"baseline": "the baseline action", "uniform": "uniform play"}


def _recent(lifts: list[WindowLift]) -> str:
    """Return the lift of the shortest window with enough plays; empty if there is none."""
    lift = next((lift for lift in lifts if lift.window != ALL), None)
    if lift is None:
        return ""
    if lift.low > 0 or lift.high < 0:
        return f"{_rewards(lift, 'In')}: {_difference(lift)}."
    return f"{_rewards(lift, 'In')}, which may be chance."


def _rewards(lift: WindowLift, start: str = "in") -> str:
    return (
        f"{start} {LAST[lift.window]} the average reward was {number(lift.played)}, and the baseline action "
        f"would have earned {number(lift.baseline)}"
    )


def _difference(lift: WindowLift) -> str:
    return f"{_with_sign(lift.value)} ({number(lift.low)} to {number(lift.high)})"


def _verdict(overview: Overview, is_all_time: bool) -> str:
    lift = lift_of(overview.report.summary.over_uniform)
    uniform = "" if lift is None else f"{_over(lift)} uniform play ({_ends(lift)}). "
    # A moving window is a different one at each look; only fixed ones have intervals for all times at once.
    valid = "valid at any time, however often you look" if is_all_time else "valid for one look"
    caveat = (
        " Events with a reward are settled before those without (settle is on-reward), which biases recent "
        "averages upward."
        if overview.configuration.settle is Settle.ON_REWARD
        else ""
    )
    return f"{uniform}95 % intervals in brackets, {valid}.{caveat}"


def _explain_unknown(summary: StatisticsSummary) -> str:
    sums = summary.over_baseline
    if sums.beyond:
        return (
            f"{count_of(sums.beyond, 'play')} got a reward outside −1 to 1, a sum of several, and intervals "
            "need bounded rewards."
        )
    if sums.unlikely > sums.plays:
        return (
            f"the baseline action had almost no chance of being shown in {count_of(sums.unlikely, 'play')}, so "
            "they say nothing about its reward. Raise the exploration, or keep the baseline action eligible."
        )
    return (
        f"only {count_of(sums.plays, 'play')} of the policy are settled, and {FEWEST} are needed."
    )


def _explain_uncertain(overview: Overview) -> str:
    summary = overview.report.summary
    effective = round(summary.policy_baseline.effective)
    reason = (
        f"the interval contains 0. {count_of(summary.over_baseline.plays, 'play')} are settled, and say as "
        f"much about the baseline action as {count_of(effective, 'play')} of it would. The interval narrows as "
        "events settle, and faster with more exploration."
    )
    if overview.status.backlog > BEHIND:
        reason += f" The learner is {count_of(overview.status.backlog, 'record')} behind."
    return reason


def _average(summary: StatisticsSummary) -> str:
    assert summary.played.snips.value is not None  # there are settled plays
    return number(summary.played.snips.value)


def _pending(overview: Overview) -> str:
    by_reward = "by its reward or " if overview.configuration.settle is Settle.ON_REWARD else ""
    return (
        f"An event counts once it is settled, {by_reward}at the end of the reward wait time; "
        f"pending: {count(overview.report.pending)}."
    )


def _over(lift: Lift) -> str:
    if not lift.is_relative:
        return f"{_with_sign(lift.value)} per decision over"
    text = _percents(lift.value, _places(lift.value))
    return f"{'' if text[0] == '−' else '+'}{text} % over"


def _ends(lift: Lift) -> str:
    """Return both ends of an interval.

    >>> _ends(Lift(value=0.1, low=0.041, high=0.19, is_relative=True))
    '4 to 19'
    >>> _ends(Lift(value=0.1, low=-0.02, high=0.013, is_relative=True))
    '−2.0 to 1.3'
    """
    if not lift.is_relative:
        return f"{number(lift.low)} to {number(lift.high)}"
    places = _places(max(abs(lift.low), abs(lift.high)))
    return f"{_percents(lift.low, places)} to {_percents(lift.high, places)}"


def _percents(value: float, places: int) -> str:
    """Return a share in percent, without a sign in front of zero.

    >>> _percents(-0.0312, 1), _percents(12.5, 0), _percents(-0.0001, 1)
    ('−3.1', '1,250', '0.0')
    """
    text = f"{100 * value:,.{places}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else f"{0:.{places}f}"


def _places(value: float) -> int:
    return 1 if abs(value) < 0.1 else 0


def _with_sign(value: float) -> str:
    return f"{'' if value < 0 else '+'}{number(value)}"
