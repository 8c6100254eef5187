"""Durations and dates in ISO 8601."""

import re
from datetime import UTC, datetime, timedelta

DURATION_PATTERN = (  # without syntax that JavaScript lacks, as it is part of JSON schemas
    r"^P(?!$)([0-9]{1,9}Y)?([0-9]{1,9}M)?([0-9]{1,9}W)?([0-9]{1,9}D)?"
    r"(T(?!$)([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,12}([.][0-9]{1,12})?S)?)?$"
)


def parse_duration(text: str) -> timedelta:
    """Return an ISO 8601 duration; a year has 365 days and a month 30, as .NET counts them.

    >>> parse_duration("P1DT2H")
    datetime.timedelta(days=1, seconds=7200)
    """
    match = re.fullmatch(DURATION_PATTERN, text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a duration; write it as in ISO 8601, for example PT10M or P1D"
        )
    numbers = [(match[group] or "0.")[:-1] for group in (1, 2, 3, 4, 6, 7, 8)]
    years, months, weeks, days, hours, minutes = map(int, numbers[:6])
    try:
        return timedelta(
            days=365 * years + 30 * months + 7 * weeks + days,
            hours=hours,
            minutes=minutes,
            seconds=float(numbers[6]),
        )
    except OverflowError:
        raise ValueError(f"{text!r} is too long; give a shorter duration") from None


def format_duration(duration: timedelta) -> str:
    """Return a duration in ISO 8601, in days and smaller units, as .NET writes it.

    >>> format_duration(timedelta(days=1, minutes=90))
    'P1DT1H30M'
    """
    if duration < timedelta(0):
        return "-" + format_duration(-duration)
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{duration.microseconds:06}".rstrip("0") if duration.microseconds else ""
    clock = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0)
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    day = f"{duration.days}D" if duration.days else ""
    return f"P{day}T{clock}" if clock else f"P{day}" if day else "PT0S"


def parse_date(text: str) -> datetime:
    """Return an ISO 8601 date, with or without a time; without a zone it is UTC."""
    try:
        date = datetime.fromisoformat(text)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a date; write it as in ISO 8601, for example 2019-01-19T00:00:00Z"
        ) from None


def format_date(date: datetime) -> str:
    """Return a date in UTC, as `2019-01-19T00:00:00Z`."""
    return date.astimezone(UTC).isoformat().replace("+00:00", "Z")
