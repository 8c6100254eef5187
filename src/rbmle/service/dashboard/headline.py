"""What matters, in one sentence, and how sure it is in another."""

from dataclasses import dataclass

from rbmle.service.configuration import LearningMode
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.words import count, counted, interval, number, percent
from rbmle.service.statistics import StatisticsSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """Two sentences and their tone: plain, good or bad."""

    text: str
    verdict: str
    tone: str = "plain"


def headline(overview: Overview) -> Headline:
    """Return what matters now."""
    summary = overview.summary
    if not summary.decisions:
        return Headline(
            text="No decision yet.", verdict="It is shown here as soon as the first one is made."
        )
    if overview.learning_mode == LearningMode.LOGGING_ONLY:
        return Headline(
            text=f"{_decisions(summary)} in the log; nothing is learned.",
            verdict="The service only keeps a log. Choose the mode Apprentice or Online to learn from it.",
        )
    if not summary.settled:
        return Headline(
            text=f"{_decisions(summary)}, and none is settled yet.",
            verdict=_pending(overview),
        )
    if overview.learning_mode == LearningMode.APPRENTICE:
        return _apprentice(summary)
    return _online(overview)


def _apprentice(summary: StatisticsSummary) -> Headline:
    return Headline(
        text=f"The service watches: what is shown earns {_played(summary)} a decision, and the model "
        f"would have shown the same in {percent(summary.agreement)} of them.",
        verdict="From about 75 to 85 % on, it is usual to switch to the mode Online.",
    )


def _online(overview: Overview) -> Headline:
    summary = overview.summary
    policy, baseline = summary.policy.snips, summary.policy_baseline.snips
    if policy.value is None:
        return Headline(
            text=f"What is shown earns {_played(summary)} a decision; none of the policy's is settled yet.",
            verdict=_pending(overview),
        )
    text = f"The policy earns {number(policy.value)} a decision"
    if baseline.low is None or baseline.high is None or policy.low is None or policy.high is None:
        return Headline(
            text=f"{text}; it is too early to say what the baseline would have earned.",
            verdict=_capitalised(baseline.problem or policy.problem),
        )
    text = f"{text}; the baseline would have earned {interval(baseline)}."
    if baseline.high < policy.low:
        return Headline(
            text=text,
            verdict="Better than the baseline: the intervals do not overlap.",
            tone="good",
        )
    if baseline.low > policy.high:
        return Headline(
            text=text, verdict="Worse than the baseline: the intervals do not overlap.", tone="bad"
        )
    return Headline(text=text, verdict="No clear difference yet: the intervals overlap.")


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


def _capitalised(problem: str) -> str:
    return f"{problem[:1].upper()}{problem[1:]}."
