"""Numbers, times and intervals as texts for people."""

from datetime import UTC, datetime

from rbmle.service.statistics.estimates import MeanEstimate

NONE = "–"
_UNITS = ("kB", "MB", "GB", "TB", "PB")


def number(value: float) -> str:
    """Return a reward with three decimals.

    >>> number(0.25), number(-0.1)
    ('0.250', '−0.100')
    """
    return f"{value:.3f}".replace("-", "−") if f"{value:.3f}" != "-0.000" else "0.000"


def count(value: int) -> str:
    """Return a count with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def count_of(value: int, noun: str) -> str:
    """Return a count with its noun.

    >>> count_of(1, "play"), count_of(2, "play")
    ('1 play', '2 plays')
    """
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def percent(part: float | None) -> str:
    """Return a share in percent; a small one is not rounded to zero.

    >>> percent(0.256), percent(0.004), percent(0.00001), percent(None)
    ('26 %', '0.4 %', '<0.1 %', '–')
    """
    if part is None:
        return NONE
    if 0 < part < 0.001:
        return "<0.1 %"
    return f"{100 * part:.1f} %" if 0 < part < 0.1 else f"{100 * part:.0f} %"


def size(value: int) -> str:
    """Return a size in bytes with its unit.

    >>> size(999), size(12_345_678)
    ('999 B', '12.3 MB')
    """
    if value < 1000:
        return f"{value} B"
    power = next((p for p in range(1, len(_UNITS)) if value / 1000**p < 999.95), len(_UNITS))
    return f"{value / 1000**power:.1f} {_UNITS[power - 1]}"


def latency(seconds: float | None) -> str:
    """Return a duration of milliseconds or seconds.

    >>> latency(0.00412), latency(0.25), latency(1.5)
    ('4.1 ms', '250 ms', '1.5 s')
    """
    if seconds is None:
        return NONE
    milliseconds = 1000 * seconds
    if milliseconds >= 1000:
        return f"{seconds:.1f} s"
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


def duration(seconds: float | None) -> str:
    """Return a longer duration, in its two largest units.

    >>> duration(42), duration(3 * 3600 + 125), duration(172_800)
    ('42 s', '3 h 2 min', '2 d')
    """
    if seconds is None:
        return NONE
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((at for at, (size, _) in enumerate(parts) if size), len(parts) - 1)
    largest, *smaller = parts[first : first + 2]
    return " ".join(
        f"{size} {unit}" for size, unit in (largest, *smaller) if size or unit == largest[1]
    )


def clock(time: int) -> str:
    """Return a time in milliseconds as date and time.

    >>> clock(0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def value(estimate: MeanEstimate) -> str:
    """Return an estimate without its interval."""
    return NONE if estimate.value is None else number(estimate.value)


def interval(estimate: MeanEstimate) -> str:
    """Return the interval of an estimate, or why it has none."""
    if estimate.low is None or estimate.high is None:
        return estimate.problem
    return f"{number(estimate.low)} to {number(estimate.high)}"
