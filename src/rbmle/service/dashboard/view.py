"""The texts and tables of the dashboard, for the page itself and for each message of its stream."""

import msgspec

from rbmle.service.dashboard import words
from rbmle.service.dashboard.headline import headline
from rbmle.service.dashboard.overview import Overview
from rbmle.service.model.report import Report
from rbmle.service.notices import Level
from rbmle.service.statistics.estimates import Comparison, MeanEstimate
from rbmle.service.statistics.lift import RewardSums
from rbmle.service.statistics.lift_intervals import LAST, reward_interval
from rbmle.service.statistics.ranges import RANGES
from rbmle.service.statistics.summary import WINDOW, Point, StatisticsSummary
from rbmle.service.statistics.tally import BINS

ALL = "all"  # the range of all time
FIRST_ACTIONS = 10  # that are shown before the others are expanded
MARGIN = 0.06  # share of the axis of intervals that stays free on each side


class TableCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cell of a table; the numbers are percentages of its width."""

    text: str = ""
    note: str = ""  # below the text
    tone: str = ""  # its colour
    bar: float | None = None
    span: tuple[float, float, float] | None = None  # low, value and high of an interval


TableRows = list[list[TableCell]]


class Banner(msgspec.Struct, frozen=True, kw_only=True):
    """A notice on the page."""

    tone: str  # bad, warn or plain
    title: str
    text: str
    since: str  # empty if not known


TONES: dict[Level, str] = {"alarm": "bad", "warning": "warn", "info": "plain"}


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A message to the page: the contents of its elements."""

    range: str  # one of RANGES, two dates, or ALL
    time: int  # in milliseconds
    points: list[Point]  # of the charts
    bucket_minutes: int  # of each point
    texts: dict[str, str]
    tables: dict[str, TableRows]
    flags: dict[str, bool]  # which parts are visible
    notices: list[Banner]
    tone: str  # of the verdict
    bars: list[float]  # heights of the histogram, in percent
    marks: list[int]  # times of drift alarms, in milliseconds


def view(overview: Overview, range: str = ALL) -> View:
    """Return what the page shows of a period."""
    overview = overview.within(range)
    summary, points = overview.report.summary, overview.points
    head = headline(overview, is_all_time=range == ALL)
    actions = _action_rows(summary)
    highest = max(summary.propensities, default=0) or 1
    return View(
        range=range,
        time=overview.time,
        points=points,
        bucket_minutes=overview.bucket_minutes,
        texts={
            "headline": head.text,
            "verdict": head.verdict,
            "beside": head.beside,
            "why": head.why,
            "why_title": head.why_title,
            "dates": overview.dates,
            "mode": overview.configuration.learning_mode.value,
            **_cards(overview),
            **_captions(overview, range),
        },
        tables={
            "estimates": _estimate_rows(summary),
            "actions": actions[:FIRST_ACTIONS],
            "more_actions": actions[FIRST_ACTIONS:],
            "propensities": _propensity_rows(summary),
            "shadows": _shadow_rows(overview),
            "rewards": _reward_rows(overview, is_all_time=range == ALL),
            "learning": _learning_rows(overview),
            "service": _service_rows(overview),
            "requests": _count_rows(overview.requests, "No request yet"),
            "errors": _count_rows(overview.errors, "None"),
        },
        flags={
            "is_empty": not overview.is_begun,
            "has_decisions": bool(summary.decisions or summary.settled),
            "has_shadows": bool(overview.report.shadows),
            "has_more_actions": len(actions) > FIRST_ACTIONS,
            "has_reason": bool(head.why),
            "is_log_broken": overview.log_unavailable_since is not None,
        },
        notices=[
            Banner(
                tone=TONES[notice.level],
                title=notice.title,
                text=notice.text,
                since="" if notice.since is None else f"Since {words.clock(notice.since)}.",
            )
            for notice in overview.notices
        ],
        tone=head.tone,
        marks=[time for time in overview.report.reset_times if points and points[0].time <= time],
        bars=[100 * count / highest for count in summary.propensities],
    )


def _cards(overview: Overview) -> dict[str, str]:
    summary = overview.report.summary
    agreement = (
        ""
        if summary.agreement is None
        else f"; model and baseline agree in {words.percent(summary.agreement)}"
    )
    texts = {
        "decisions": words.count(summary.decisions),
        "decisions_note": f"{words.count(summary.decided_in_minute)} in the last minute; "
        f"{words.count(overview.report.pending)} pending",
        "exploration": words.percent(summary.exploration_rate),
        "exploration_note": f"set to {words.percent(overview.configuration.exploration)}{agreement}",
    }
    for name, comparison in (
        ("played", summary.played),
        ("baseline", summary.baseline),
        ("uniform", summary.uniform),
    ):
        estimate = comparison.snips
        texts[name] = words.value(estimate)
        texts[f"{name}_note"] = ("95 %: " if estimate.has_interval else "") + words.interval(
            estimate
        )
    return texts


def _captions(overview: Overview, range: str) -> dict[str, str]:
    summary, since = overview.report.summary, overview.log_unavailable_since
    low, high = _axis(summary)
    more = max(len(summary.actions) - FIRST_ACTIONS, 0)
    return {
        "log_since": "" if since is None else words.clock(since),
        "log_problem": overview.log_problem,
        "range_low": words.number(low),
        "range_high": words.number(high),
        "window": words.duration(60 * WINDOW * overview.bucket_minutes),
        "when": _period(range),
        "more_actions": words.count_of(more, "more action"),
        "others": f"{words.count_of(summary.others, 'play')} of other actions"
        if summary.others
        else "",
    }


def _period(range: str) -> str:
    if range == ALL:
        return "Since the start"
    if range not in RANGES:
        return "On these days"
    return f"In {LAST.get(range, 'the last 30 days')}"


def _estimate_rows(summary: StatisticsSummary) -> TableRows:
    """Return a row for the service itself, and for each policy that it is compared with."""
    low, high = _axis(summary)
    return [
        [
            TableCell(text=name, note=_weight(comparison), tone=tone),
            TableCell(span=_span(comparison.snips, low, high), tone=tone),
            TableCell(text=words.value(comparison.snips), note=words.interval(comparison.snips)),
            TableCell(text=words.value(comparison.ips), note=words.interval(comparison.ips)),
        ]
        for name, tone, comparison in _comparisons(summary)
    ]


def _shadow_rows(overview: Overview) -> TableRows:
    """Return a row for each shadow policy: what it would have earned, and by how much that is more."""
    rows = []
    for shadow in overview.report.shadows:
        verdict, ends = "too early to say", ""
        if shadow.low is not None and shadow.high is not None:
            ends = f"{words.number(shadow.low)} to {words.number(shadow.high)}"
            is_better, is_worse = shadow.low > 0, shadow.high < 0
            verdict = "better" if is_better else "worse" if is_worse else "no difference is certain"
        reward, lift = (
            words.NONE if value is None else words.number(value)
            for value in (shadow.reward, shadow.lift)
        )
        rows.append(
            [
                TableCell(text=shadow.policy, note=words.count_of(shadow.plays, "play")),
                TableCell(text=reward),
                TableCell(text=lift, note=ends),
                TableCell(text="reading the log" if shadow.is_behind else verdict),
            ]
        )
    return rows


def _comparisons(summary: StatisticsSummary) -> list[tuple[str, str, Comparison]]:
    rows = [
        ("As played", "played", summary.played),
        ("Baseline action", "baseline", summary.baseline),
        ("Uniform play", "uniform", summary.uniform),
    ]
    if 0 < summary.policy.coverage < 1:  # else it decided all plays, or none
        rows += [
            ("Policy, where it decided", "played", summary.policy),
            ("Baseline, in the same plays", "baseline", summary.policy_baseline),
        ]
    return rows


def _weight(comparison: Comparison) -> str:
    """Return the effective sample size of an estimate."""
    plays = f"{words.count_of(round(comparison.effective), 'effective play')}"
    if not 0 < comparison.coverage < 1:
        return plays
    return f"{plays}, from the {words.percent(comparison.coverage)} of plays that say something about it"


def _axis(summary: StatisticsSummary) -> tuple[float, float]:
    """Return the ends of the axis of the intervals."""
    ends = [
        end
        for _, _, comparison in _comparisons(summary)
        for end in (comparison.snips.low, comparison.snips.value, comparison.snips.high)
        if end is not None
    ] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    margin = MARGIN * (high - low) or 0.5
    return low - margin, high + margin


def _span(estimate: MeanEstimate, low: float, high: float) -> tuple[float, float, float] | None:
    if estimate.value is None:
        return None
    ends = (estimate.low, estimate.value, estimate.high)
    first, middle, last = (
        100 * ((estimate.value if end is None else end) - low) / (high - low) for end in ends
    )
    return first, middle, last


def point_rows(points: list[Point]) -> TableRows:
    """Return the numbers of the charts; messages leave them out, because the script can write them."""
    return [
        [
            TableCell(text=words.clock(point.time)),
            *(
                TableCell(text=words.NONE if mean is None else words.number(mean))
                for mean in (point.played, point.baseline, point.uniform)
            ),
            TableCell(text=words.count(point.decided)),
        ]
        for point in reversed(points)
    ]


def _action_rows(summary: StatisticsSummary) -> TableRows:
    counts = [action.count for action in summary.actions]
    most, plays = max(counts, default=0) or 1, sum(counts) + summary.others
    return [
        [
            TableCell(text=action.id),
            TableCell(bar=100 * action.count / most),
            TableCell(
                text=words.count(action.count),
                note=f"at most {words.count(action.excess)} too many" if action.excess else "",
            ),
            TableCell(text=words.percent(action.count / plays)),
            _reward_cell(action.rewards),
        ]
        for action in summary.actions
    ]


def _reward_cell(rewards: RewardSums) -> TableCell:
    """Return the mean reward of an action, and its confidence sequence."""
    if not rewards.plays:
        return TableCell(text=words.NONE)
    ends = reward_interval(rewards)
    interval = "" if ends is None else f"{words.number(ends[0])} to {words.number(ends[1])}"
    return TableCell(text=words.number(rewards.reward / rewards.plays), note=interval)


def _propensity_rows(summary: StatisticsSummary) -> TableRows:
    return [
        [
            TableCell(text=f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}"),
            TableCell(text=words.count(count)),
        ]
        for place, count in enumerate(summary.propensities)
    ]


def _reward_rows(overview: Overview, is_all_time: bool) -> TableRows:
    """Return what became of rewards; for a part of the time, only what is counted by time."""
    counts, summary = overview.report.counts, overview.report.summary
    joined = counts.joined if is_all_time else summary.joined
    defaulted = counts.defaulted if is_all_time else summary.settled - summary.joined
    rows = [
        ("Joined", "plays with a reward from the client", joined),
        ("Defaulted", "plays with the default reward, because none arrived in time", defaulted),
        (
            "Pending",
            "events that still wait for their reward, and do not count yet",
            overview.report.pending,
        ),
    ]
    if is_all_time:
        rows += [
            ("Late", "rewards that arrived after the wait time", counts.late),
            ("Duplicate", "further rewards for a slot that had one", counts.duplicate),
            ("Orphan", "rewards for unknown events", counts.orphan),
            ("Not activated", "deferred events that were never activated", counts.unactivated),
        ]
    return [
        [TableCell(text=name, note=note), TableCell(text=words.count(count))]
        for name, note, count in rows
    ]


def _learning_rows(overview: Overview) -> TableRows:
    rows = _text_rows(
        ("Policy", overview.policy),
        ("Mode", overview.configuration.learning_mode.value),
        ("Last record", words.count(overview.status.learned)),
        ("Observations", words.count(overview.status.observations)),
        ("Model age", words.duration(overview.model_age_seconds)),
        ("Backlog", words.count_of(overview.status.backlog, "record")),
    )
    if (guard := overview.report.guard) is not None and overview.configuration.conservative:
        shown = (
            "the baseline"
            if guard.share == 1
            else f"the policy, and {guard.share:.0%} the baseline"
        )
        note = f"surplus {words.number(guard.surplus)}, surely above {words.number(guard.low)}"
        rows.append([TableCell(text="Never below the baseline"), TableCell(text=shown, note=note)])
    if overview.report.resets:
        times = overview.report.reset_times
        last = f"last on {words.clock(times[-1])}" if times else ""
        count = TableCell(text=words.count(overview.report.resets), note=last)
        rows.append([TableCell(text="Drift alarms"), count])
    return rows


def _service_rows(overview: Overview) -> TableRows:
    this = "" if overview.workers == 1 else " (this front end)"
    size = f"{words.size(overview.report.log_bytes)}, {words.count_of(overview.status.records, 'record')}"
    return _text_rows(
        ("Log", "writable" if overview.log_unavailable_since is None else "not writable"),
        ("Log size", size),
        *_rows_of_what_left(overview.report),
        (f"fsync, p99{this}", words.latency(overview.fsync_p99_seconds)),
        (f"Request, p50{this}", words.latency(overview.latency_p50_seconds)),
        (f"Request, p99{this}", words.latency(overview.latency_p99_seconds)),
        (f"Uptime{this}", words.duration(overview.uptime_seconds)),
        *([] if overview.workers == 1 else [("Front ends", words.count(overview.workers))]),
        ("Version", overview.status.version),
    )


def _rows_of_what_left(report: Report) -> list[tuple[str, str]]:
    """Return rows about deleted and erased records; none if there are none."""
    rows = []
    if report.deleted:
        since = "" if report.oldest is None else f"; kept since {words.clock(report.oldest)}"
        rows.append(("Deleted by retention", words.count_of(report.deleted, "record") + since))
    if report.erasures:
        rows.append(("Erasures of people's events", words.count(report.erasures)))
    return rows


def _text_rows(*rows: tuple[str, str]) -> TableRows:
    return [[TableCell(text=name), TableCell(text=value)] for name, value in rows]


def _count_rows(counts: dict[str, int], none: str) -> TableRows:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = _text_rows(*((name, words.count(count)) for name, count in ordered))
    return rows or _text_rows((none, ""))
