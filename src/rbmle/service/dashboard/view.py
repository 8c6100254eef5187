"""An overview in the words of the page: made here alone, for the first page and for each message."""

import msgspec

from rbmle.service.dashboard import words
from rbmle.service.dashboard.headline import headline
from rbmle.service.dashboard.lifts import Lifts, lifts_of
from rbmle.service.dashboard.overview import Overview
from rbmle.service.notices import Level, Notice
from rbmle.service.statistics import BINS, StatisticsSummary
from rbmle.service.statistics.estimates import Comparison, Estimate
from rbmle.service.statistics.ranges import RANGES
from rbmle.service.statistics.recent import LAST
from rbmle.service.statistics.timeline import WINDOW, Point

ALL = "all"  # the range of all time
FIRST_ACTIONS = 10  # that are shown at once
MARGIN = 0.06  # of the range of intervals, left free on both sides


class TableCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cell of a table; numbers are percents of its width."""

    text: str = ""
    note: str = ""  # below the text
    tone: str = ""  # whose colour it has
    bar: float | None = None
    span: tuple[float, float, float] | None = None  # low, value and high of an interval


TableRows = list[list[TableCell]]


class Banner(msgspec.Struct, frozen=True, kw_only=True):
    """A notice as the page shows it."""

    tone: str  # bad, warn or plain
    title: str
    text: str
    since: str  # empty: not known


TONES: dict[Level, str] = {"alarm": "bad", "warning": "warn", "info": "plain"}


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to the page: the overview, and what is written where."""

    range: str  # one of RANGES, two dates, or ALL
    overview: Overview
    texts: dict[str, str]
    tables: dict[str, TableRows]
    flags: dict[str, bool]  # what is to be seen
    notices: list[Banner]
    tone: str  # of the verdict
    bars: list[float]  # heights of the histogram, in percent
    marks: list[int]  # when the model started again, in milliseconds


def view(overview: Overview, range: str = ALL) -> View:
    """Return what the page shows of a range of time."""
    overview = overview.within(range)
    summary = overview.summary
    lifts = lifts_of(summary)
    head = headline(overview, lifts, is_all_time=range == ALL)
    actions = _actions(summary, lifts)
    highest = max(summary.propensities, default=0) or 1
    return View(
        range=range,
        overview=overview,
        texts={
            "headline": head.text,
            "verdict": head.verdict,
            "beside": head.beside,
            "why": head.why,
            "why_title": head.why_title,
            "dates": overview.dates,
            **_cards(overview),
            **_service(overview),
            **_captions(overview, range),
        },
        tables={
            "estimates": _estimates(summary),
            "actions": actions[:FIRST_ACTIONS],
            "more_actions": actions[FIRST_ACTIONS:],
            "propensities": _propensities(summary),
            "rewards": _rewards(overview, is_all_time=range == ALL),
            "learning": _learning(overview),
            "service": _running(overview),
            "requests": _kinds(overview.requests, "No request yet"),
            "errors": _kinds(overview.errors, "None"),
        },
        flags={
            "is_empty": not overview.is_begun,
            "has_decisions": bool(summary.decisions or summary.settled),
            "has_more_actions": len(actions) > FIRST_ACTIONS,
            "has_reason": bool(head.why),
            "is_log_broken": overview.log_unavailable_since is not None,
        },
        notices=[_banner(notice) for notice in overview.notices],
        tone=head.tone,
        marks=[time for time in overview.reset_times if _is_drawn(time, overview.points)],
        bars=[100 * count / highest for count in summary.propensities],
    )


def _is_drawn(time: int, points: list[Point]) -> bool:
    return bool(points) and points[0].time <= time


def _banner(notice: Notice) -> Banner:
    since = "" if notice.since is None else f"Since {words.clock(notice.since)}."
    return Banner(tone=TONES[notice.level], title=notice.title, text=notice.text, since=since)


def _cards(overview: Overview) -> dict[str, str]:
    summary = overview.summary
    is_learning_from_others = summary.agreement is not None
    return {
        "played": words.value(summary.played.snips),
        "played_note": _within(summary.played.snips),
        "baseline": words.value(summary.baseline.snips),
        "baseline_note": _within(summary.baseline.snips),
        "uniform": words.value(summary.uniform.snips),
        "uniform_note": _within(summary.uniform.snips),
        "decisions": words.count(summary.decisions),
        "decisions_note": f"{words.count(summary.decided_in_minute)} in the last minute; "
        f"{words.count(overview.pending)} pending",
        "exploration": words.percent(summary.exploration_rate),
        "exploration_note": f"set to {words.percent(overview.exploration)}"
        + (
            f"; model and baseline agree in {words.percent(summary.agreement)}"
            if is_learning_from_others
            else ""
        ),
    }


def _within(estimate: Estimate) -> str:
    return ("95 %: " if estimate.has_interval else "") + words.interval(estimate)


def _service(overview: Overview) -> dict[str, str]:
    since = overview.log_unavailable_since
    return {
        "mode": overview.learning_mode,
        "version": overview.version,
        "log_since": "" if since is None else words.clock(since),
        "log_problem": overview.log_problem,
    }


def _captions(overview: Overview, range: str) -> dict[str, str]:
    summary = overview.summary
    low, high = _range(summary)
    more = len(summary.actions) - FIRST_ACTIONS
    return {
        "range_low": words.number(low),
        "range_high": words.number(high),
        "window": words.duration(60 * WINDOW * overview.bucket_minutes),
        "when": _when(range),
        "more_actions": f"{words.counted(max(more, 0), 'more action')}",
        "others": f"{words.counted(summary.others, 'play')} of other actions"
        if summary.others
        else "",
    }


def _when(range: str) -> str:
    """Return of which time the numbers are."""
    if range == ALL:
        return "Since the start"
    if range not in RANGES:
        return "In these days"
    return f"In {LAST.get(range, 'the last 30 days')}"


def _estimates(summary: StatisticsSummary) -> TableRows:
    """Return a row for what was played, and for each policy that it is compared with."""
    low, high = _range(summary)
    return [
        [
            TableCell(text=name, note=_worth(found), tone=tone),
            TableCell(span=_span(found.snips, low, high), tone=tone),
            TableCell(text=words.value(found.snips), note=words.interval(found.snips)),
            TableCell(text=words.value(found.ips), note=words.interval(found.ips)),
        ]
        for name, tone, found in _compared(summary)
    ]


def _compared(summary: StatisticsSummary) -> list[tuple[str, str, Comparison]]:
    rows = [
        ("As played", "played", summary.played),
        ("Baseline action", "baseline", summary.baseline),
        ("Uniform play", "uniform", summary.uniform),
    ]
    if 0 < summary.policy.coverage < 1:  # else it decided all of them, or none
        rows += [
            ("Policy, where it decided", "played", summary.policy),
            ("Baseline, in the same plays", "baseline", summary.policy_baseline),
        ]
    return rows


def _worth(found: Comparison) -> str:
    """Return how many plays tell of a policy."""
    worth = f"worth {words.counted(round(found.effective), 'play')}"
    if not 0 < found.coverage < 1:
        return worth
    return f"{worth}, from {words.percent(found.coverage)} of all plays; the others say nothing about it"


def _range(summary: StatisticsSummary) -> tuple[float, float]:
    """Return the ends of the axis on which intervals are drawn."""
    seen = [
        end
        for _, _, found in _compared(summary)
        for end in (found.snips.low, found.snips.value, found.snips.high)
        if end is not None
    ] or [0.0, 1.0]
    low, high = min(seen), max(seen)
    margin = MARGIN * (high - low) or 0.5
    return low - margin, high + margin


def _span(estimate: Estimate, low: float, high: float) -> tuple[float, float, float] | None:
    if estimate.value is None:
        return None
    ends = (estimate.low, estimate.value, estimate.high)
    first, middle, last = (
        100 * ((estimate.value if end is None else end) - low) / (high - low) for end in ends
    )
    return first, middle, last


def points(overview: Overview) -> TableRows:
    """Return the numbers of the charts; messages leave them out, as the script can write them."""
    return [
        [
            TableCell(text=words.clock(point.time)),
            *(
                TableCell(text=words.NONE if mean is None else words.number(mean))
                for mean in (point.played, point.baseline, point.uniform)
            ),
            TableCell(text=words.count(point.decided)),
        ]
        for point in reversed(overview.points)
    ]


def _actions(summary: StatisticsSummary, lifts: Lifts) -> TableRows:
    counts = [action.count for action in summary.actions]
    most, plays = max(counts, default=0) or 1, sum(counts) + summary.others
    return [
        [
            TableCell(text=action.id),
            TableCell(bar=100 * action.count / most),
            TableCell(
                text=words.count(action.count),
                note=f"up to {words.count(action.excess)} too many" if action.excess else "",
            ),
            TableCell(text=words.percent(action.count / plays)),
            TableCell(text=mean, note=interval),
        ]
        for action, (mean, interval) in zip(summary.actions, lifts.actions, strict=True)
    ]


def _propensities(summary: StatisticsSummary) -> TableRows:
    return [
        [
            TableCell(text=f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}"),
            TableCell(text=words.count(count)),
        ]
        for place, count in enumerate(summary.propensities)
    ]


def _rewards(overview: Overview, is_all_time: bool) -> TableRows:
    """Return what became of rewards; of a part of the time, what is counted by time."""
    counts, summary = overview.counts, overview.summary
    joined = counts.joined if is_all_time else summary.joined
    defaulted = counts.defaulted if is_all_time else summary.settled - summary.joined
    rows = [
        ("Joined", "plays settled with a reward that was sent", joined),
        ("Defaulted", "plays settled with the default: none came in time", defaulted),
        ("Pending", "events that are not settled now, and count nowhere", overview.pending),
    ]
    if is_all_time:
        rows += [
            ("Late", "rewards after the wait time", counts.late),
            ("Duplicate", "rewards of a slot that had one", counts.duplicate),
            ("Orphan", "rewards for an unknown event", counts.orphan),
            ("Not activated", "deferred events that were never shown", counts.unactivated),
        ]
    return [
        [TableCell(text=name, note=note), TableCell(text=words.count(count))]
        for name, note, count in rows
    ]


def _learning(overview: Overview) -> TableRows:
    return _named(
        ("Policy", overview.policy),
        ("Mode", overview.learning_mode),
        ("Model version", f"{words.count(overview.learned)}"),
        ("Observations", words.count(overview.observations)),
        ("Model age", words.duration(overview.model_age_seconds)),
        ("Backlog", words.counted(overview.backlog, "record")),
        *([("Drift alarms", _drift(overview))] if overview.resets else []),
    )


def _drift(overview: Overview) -> str:
    """Return how often the model started again, and when it last did."""
    last = f", the last one {words.clock(overview.reset_times[-1])}" if overview.reset_times else ""
    return f"{words.count(overview.resets)}{last}"


def _running(overview: Overview) -> TableRows:
    is_sound = overview.log_unavailable_since is None
    this = "" if overview.workers == 1 else " (this front end)"
    return _named(
        ("Log", "can be written" if is_sound else "cannot be written"),
        (
            "Log size",
            f"{words.size(overview.log_bytes)}, {words.counted(overview.records, 'record')}",
        ),
        (f"fsync, p99{this}", words.latency(overview.fsync_p99_seconds)),
        (f"Request, p50{this}", words.latency(overview.latency_p50_seconds)),
        (f"Request, p99{this}", words.latency(overview.latency_p99_seconds)),
        (f"Up for{this}", words.duration(overview.uptime_seconds)),
        *([] if overview.workers == 1 else [("Front ends", words.count(overview.workers))]),
        ("Version", overview.version),
    )


def _named(*rows: tuple[str, str]) -> TableRows:
    return [[TableCell(text=name), TableCell(text=value)] for name, value in rows]


def _kinds(counts: dict[str, int], none: str) -> TableRows:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _named(*((kind, words.count(count)) for kind, count in ordered)) or _named((none, ""))
