"""A range of dates that a reader gives: from one day to another, both included, in UTC."""

from datetime import UTC, date, datetime, timedelta

from rbmle.service.dashboard.words import count
from rbmle.service.statistics.days import DAY, Days, DaysCounted

BETWEEN = "/"  # the two dates, as in ISO 8601
FIRST = "1970-01-01"


def dates_named(first: str, last: str, now: int) -> str | None:
    """Return a range by its dates, today if the last is left out; None if these are none.

    >>> dates_named("2026-05-01", "2026-05-31", 0), dates_named("", "", 0), dates_named("May", "", 0)
    ('2026-05-01/2026-05-31', None, None)
    """
    if not first and not last:
        return None
    today = datetime.fromtimestamp(now / 1000, UTC).date().isoformat()
    try:
        days = [date.fromisoformat(day) for day in (first or FIRST, last or today)]
    except ValueError:
        return None
    return BETWEEN.join(day.isoformat() for day in sorted(days))


def counted(range: str, days: Days) -> DaysCounted | None:
    """Return what was counted in a range of dates; None if the range is none."""
    if BETWEEN not in range:
        return None
    first, last = (_start(day) for day in range.split(BETWEEN))
    return days.within(first, last + DAY * 60_000)


def told(found: DaysCounted, days: Days) -> str:
    """Return from when to when something was counted."""
    first, last = (
        datetime.fromtimestamp(time / 1000, UTC).date()
        for time in (found.start, found.end - DAY * 60_000)
    )
    steps = days.minutes // DAY
    note = (
        "" if steps == 1 else f" Of a log as long as this, {count(steps)} days are kept together."
    )
    return f"From {first} to {last}, both included, in UTC.{note}"


def _start(day: str) -> int:
    """Return when a day begins, in milliseconds."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return (midnight - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
