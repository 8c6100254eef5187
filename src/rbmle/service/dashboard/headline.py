"""What matters, in one sentence; how it was of late, how sure it is, and why it is not known yet, in others."""

from dataclasses import dataclass

from rbmle.service.configuration import LearningMode, Settle
from rbmle.service.dashboard.lifts import Lifts, ShownLift
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.words import count, counted, number, percent
from rbmle.service.statistics import StatisticsSummary
from rbmle.service.statistics.recent import ALL, LAST, WindowLift, losing

FEWEST = 30  # plays of the policy that are settled, before a lift is told
BEHIND = 1_000  # records that wait to be learned, from which on that is a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What is told first, and its tone: plain, good or bad."""

    text: str
    verdict: str
    beside: str = (
        ""  # how it was of late, or since the start if the text is of late; empty: not known
    )
    why: str = ""  # it is not known yet, or nothing has changed; empty if all is known
    why_title: str = "Why nothing has changed yet:"
    tone: str = "plain"


UNKNOWN = "Why this is not known yet:"
UNSURE = "Why this is not certain yet:"


def headline(overview: Overview, lifts: Lifts, *, is_all_time: bool = True) -> Headline:
    """Return what matters now, in all time or in a part of it."""
    summary = overview.summary
    if not summary.decisions and not summary.settled and overview.is_begun:
        return Headline(text="No decision in this time.", verdict="Look at a longer one.")
    if not summary.decisions and not summary.settled:
        return Headline(
            text="No decision yet.", verdict="It is shown here as soon as the first one is made."
        )
    if overview.learning_mode == LearningMode.LOGGING_ONLY:
        return Headline(
            text=f"{_decisions(summary)} in the log; nothing is learned.",
            verdict="The service only keeps a log.",
            why="the mode is LoggingOnly, so the baseline action is shown and the model does not learn. "
            "Choose the mode Apprentice or Online to learn.",
        )
    if not summary.settled:
        return Headline(
            text=f"{_decisions(summary)}, and none is settled yet.", verdict=_pending(overview)
        )
    if overview.learning_mode == LearningMode.APPRENTICE:
        return _apprentice(summary)
    return _online(overview, lifts, is_all_time)


def _apprentice(summary: StatisticsSummary) -> Headline:
    return Headline(
        text=f"The service watches: what is shown earns {_played(summary)} a decision, and the model "
        f"would have shown the same in {percent(summary.agreement)} of them.",
        verdict="From about 75 to 85 % on, it is usual to switch to the mode Online.",
        why="the mode is Apprentice, so the baseline action is shown while the model learns from it.",
    )


def _online(overview: Overview, lifts: Lifts, is_all_time: bool) -> Headline:
    summary = overview.summary
    plays = summary.over_baseline.plays
    if lifts.baseline is None or plays < FEWEST:
        return Headline(
            text=f"What is shown earns {_played(summary)} a decision; {_too_early(summary)}.",
            verdict=_pending(overview),
            why=_unknown(summary),
            why_title=UNKNOWN,
        )
    lift = lifts.baseline
    if is_all_time and (loss := losing(overview.lifts)) is not None:
        return Headline(
            text=f"Losing now: in {LAST[loss.window]} a decision earned {number(loss.played)}, and the "
            f"baseline action would have earned {number(loss.baseline)}.",
            verdict=f"That is {_difference(loss)} a decision. This alarm is wrong in at most 1 week of 20, "
            "however often you look.",
            beside=f"Since the start: {_over(lift)} the baseline action ({lift.interval}). "
            f"{_verdict(overview, lifts, is_all_time)}",
            tone="bad",
        )
    return Headline(
        text=f"{_over(lift)} the baseline action ({lift.interval})",
        beside=_recent(overview.lifts) if is_all_time else "",
        verdict=_verdict(overview, lifts, is_all_time),
        why_title=UNSURE,
        why="" if lift.is_above or lift.is_below else _unsure(overview),
        tone="good" if lift.is_above else "bad" if lift.is_below else "plain",
    )


def _recent(lifts: list[WindowLift]) -> str:
    """Return how it was in the shortest time of which enough is known; empty if there is none."""
    lift = next((lift for lift in lifts if lift.window != ALL), None)
    if lift is None:
        return ""
    return (
        f"In {LAST[lift.window]} a decision earned {number(lift.played)}, and the baseline action would have "
        f"earned {number(lift.baseline)}"
        + (f": {_difference(lift)}." if lift.low > 0 or lift.high < 0 else ", which may be chance.")
    )


def _difference(lift: WindowLift) -> str:
    sign = "+" if lift.value > 0 else ""
    return f"{sign}{number(lift.value)} ({number(lift.low)} to {number(lift.high)})"


def _over(lift: ShownLift) -> str:
    """Return a lift of rewards, in percent or as a difference, and that it is over something."""
    return f"{lift.value} over" if lift.value.endswith("%") else f"{lift.value} a decision over"


def _verdict(overview: Overview, lifts: Lifts, is_all_time: bool) -> str:
    other = lifts.uniform
    uniform = "" if other is None else f"{_over(other)} uniform play ({other.interval}). "
    early = (
        " Events with a reward are settled before those without (settle is on-reward), so this says too "
        "much good of what gets rewards soon."
        if overview.settle == Settle.ON_REWARD
        else ""
    )
    # A window that moves on is another one each time: only one that stays has intervals for all times at once.
    valid = "valid at any time, however often you look" if is_all_time else "valid for one look"
    return f"{uniform}In brackets 95 % intervals, {valid}.{early}"


def _too_early(summary: StatisticsSummary) -> str:
    if summary.over_baseline.beyond:
        return "how much more than the baseline is not known"
    return "it is too early to say how much more than the baseline"


def _unknown(summary: StatisticsSummary) -> str:
    """Return why there is no lift."""
    sums = summary.over_baseline
    if sums.beyond:
        return (
            f"{counted(sums.beyond, 'play')} got a reward beyond −1 to 1, a sum of several, and intervals "
            "need to know what rewards can be."
        )
    if sums.unlikely > sums.plays:
        return (
            f"the baseline action had hardly any chance of being shown in {counted(sums.unlikely, 'play')}, "
            "so they do not tell what it would have earned. Raise the exploration, or leave the baseline "
            "action among the eligible ones."
        )
    return (
        f"few events are settled: {count(sums.plays)} plays of the policy, and {FEWEST} are needed."
    )


def _unsure(overview: Overview) -> str:
    """Return why it is not known whether it is better."""
    summary = overview.summary
    shown = round(summary.policy_baseline.effective)
    told = (
        f"the interval still holds 0. {counted(summary.over_baseline.plays, 'play')} are settled, which tell "
        f"as much of the baseline action as if it had been shown {counted(shown, 'time')}; "
        "it narrows as events settle, and sooner with more exploration."
    )
    if overview.backlog > BEHIND:
        told += f" The learner is {counted(overview.backlog, 'record')} behind."
    return told


def _played(summary: StatisticsSummary) -> str:
    assert summary.played.snips.value is not None  # there are settled plays
    return number(summary.played.snips.value)


def _pending(overview: Overview) -> str:
    return (
        "An event counts when it is settled, by its reward or at the end of the reward wait time; "
        f"pending: {count(overview.pending)}."
    )


def _decisions(summary: StatisticsSummary) -> str:
    return counted(summary.decisions, "decision")
