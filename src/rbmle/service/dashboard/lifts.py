"""How much is earned above the baseline and uniform play, and what each action earns."""

from dataclasses import dataclass

from rbmle.service.dashboard.words import NONE, number
from rbmle.service.statistics import StatisticsSummary
from rbmle.service.statistics.lift import RewardSums


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLift:
    """A lift in words, and whether it is sure to be above or below 0."""

    value: str  # with its sign
    interval: str
    is_above: bool
    is_below: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifts:
    """All that confidence sequences say; None where nothing is known."""

    baseline: ShownLift | None
    uniform: ShownLift | None
    actions: list[tuple[str, str]]  # a mean reward and its interval, in words


def lifts_of(summary: StatisticsSummary) -> Lifts:
    """Return what confidence sequences say of a summary."""
    from rbmle.service.statistics import lift_intervals as found  # it takes a second to import

    def shown(lift: found.Lift | None) -> ShownLift | None:
        if lift is None:
            return None
        value, interval = _relative if lift.is_relative else _absolute
        return ShownLift(
            value=value(lift.value),
            interval=interval(lift.low, lift.high),
            is_above=lift.low > 0,
            is_below=lift.high < 0,
        )

    def earned(rewards: RewardSums) -> tuple[str, str]:
        if not rewards.plays:
            return NONE, ""
        ends = found.reward_interval(rewards)
        text = "" if ends is None else f"{number(ends[0])} to {number(ends[1])}"
        return number(rewards.reward / rewards.plays), text

    return Lifts(
        baseline=shown(found.lift_of(summary.over_baseline)),
        uniform=shown(found.lift_of(summary.over_uniform)),
        actions=[earned(action.rewards) for action in summary.actions],
    )


def _percents(value: float, places: int) -> str:
    text = f"{100 * value:,.{places}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else f"{0:.{places}f}"


def _percent(value: float) -> str:
    """Return a part with its sign.

    >>> _percent(0.124), _percent(-0.0312), _percent(12.5)
    ('+12 %', '−3.1 %', '+1,250 %')
    """
    text = _percents(value, _places(value))
    return f"{text} %" if text[0] == "−" else f"+{text} %"


def _percent_interval(low: float, high: float) -> str:
    """Return both ends of an interval.

    >>> _percent_interval(0.041, 0.19), _percent_interval(-0.02, 0.013)
    ('4 to 19', '−2.0 to 1.3')
    """
    places = _places(max(abs(low), abs(high)))
    return f"{_percents(low, places)} to {_percents(high, places)}"


def _places(value: float) -> int:
    """Return how many places of a percentage tell little from nothing."""
    return 1 if abs(value) < 0.1 else 0


def _signed(value: float) -> str:
    return f"{'' if value < 0 else '+'}{number(value)}"


_relative = _percent, _percent_interval
_absolute = _signed, lambda low, high: f"{number(low)} to {number(high)}"
