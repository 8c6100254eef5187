"""Dates and times as columns a policy can use: the day, the month, the weekday and the hour."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from rbmle.datasets.columns import codes
from rbmle.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

TIME = r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){TIME}")
YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){TIME}")
MONTHS = 12
DAY_SECONDS = 86_400
THURSDAY = 3  # days after Monday: the weekday of 1 January 1970


def read_dates(column: "pd.Series") -> Shaped[np.ndarray, " rows"] | None:
    """Return a column's times as datetime64[s], NaT where missing; None if they are not times.

    Times with a zone are brought to UTC.
    """
    if column.dtype.kind == "M":
        return column.to_numpy("datetime64[s]")
    places, texts = codes(column)
    times = _times([text.strip() for text in texts], str(column.name))
    return None if times is None else np.append(times, np.datetime64("NaT"))[places]


def date_columns(name: str, times: Shaped[np.ndarray, " rows"]) -> "dict[str, pd.Series]":
    """Return days since 1970, month and weekday (1 is Monday), and the hour if one is not midnight."""
    import pandas as pd

    known = ~np.isnat(times)
    seconds = np.where(known, times.astype("datetime64[s]").astype(np.int64), 0)
    days, rest = np.divmod(seconds, DAY_SECONDS)
    months = np.where(known, times.astype("datetime64[M]").astype(np.int64), 0) % MONTHS + 1
    weekdays = (days + THURSDAY) % 7 + 1

    def category(numbers: np.ndarray, names: list[str]) -> "pd.Series":
        return pd.Series(pd.Categorical.from_codes(np.where(known, numbers - 1, -1), names))

    columns = {
        f"{name} (day)": pd.Series(np.where(known, seconds / DAY_SECONDS, np.nan)),
        f"{name} (month)": category(months, [f"{n:02d}" for n in range(1, MONTHS + 1)]),
        f"{name} (weekday)": category(weekdays, [str(n) for n in range(1, 8)]),
    }
    if rest.any():
        columns[f"{name} (hour)"] = pd.Series(np.where(known, rest / 3600, np.nan))
    return columns


def _times(values: Sequence[str], name: str) -> Shaped[np.ndarray, " values"] | None:
    """Return texts as times; None if one of them is not written as a date."""
    for pattern in (YEAR_FIRST, YEAR_LAST):
        if values and pattern.match(values[0]):
            found = [match for value in values if (match := pattern.fullmatch(value))]
            if len(found) < len(values):
                return None
            parts = [match.groups() for match in found]
            order = (0, 2, 3) if pattern is YEAR_FIRST else (3, *_month_and_day(found, name))
            days = [_day(match, order, name) for match in found]
            return np.array(days, "datetime64[s]") + np.array([_seconds(p[4:]) for p in parts])
    return None


def _month_and_day(found: Sequence[re.Match[str]], name: str) -> tuple[int, int]:
    """Return which groups are month and day in dates that end with the year; dots mean day first."""
    if all(match[2] == "." for match in found):
        return 2, 0
    day_first = any(int(match[1]) > MONTHS for match in found)
    month_first = any(int(match[3]) > MONTHS for match in found)
    if day_first != month_first:
        return (2, 0) if day_first else (0, 2)
    raise DatasetError(
        f"column {name!r} has dates such as {found[0][0]!r}, in which day and month cannot be told "
        f"apart; write them as YYYY-MM-DD, or leave the column out with --drop {name}"
    )


def _day(match: re.Match[str], order: tuple[int, int, int], name: str) -> np.datetime64:
    """Return the date of a match."""
    year, month, day = (match.groups()[place] for place in order)
    try:
        return np.datetime64(f"{year}-{month:0>2}-{day:0>2}")
    except ValueError as error:
        raise DatasetError(
            f"column {name!r} has {match[0]!r}, which is not in the calendar; correct it, or leave the "
            f"column out with --drop {name}"
        ) from error


def _seconds(parts: Sequence[str | None]) -> int:
    """Return hour, minute, second and zone as seconds after midnight in UTC."""
    hour, minute, second, zone = parts
    total = 3600 * int(hour or 0) + 60 * int(minute or 0) + int(second or 0)
    if zone is None or zone == "Z":
        return total
    ahead = 3600 * int(zone[1:3]) + 60 * int(zone[-2:])
    return total - ahead if zone[0] == "+" else total + ahead
