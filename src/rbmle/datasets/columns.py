"""Columns of a table: numbers, categories, class labels, dates, and ids, which are not features."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, Shaped

from rbmle.datasets.catalog import DatasetError

if TYPE_CHECKING:
    import pandas as pd


MISSING = ("?", "missing")  # texts that mean a missing value, besides NaN


def is_numeric(column: "pd.Series") -> bool:
    """Say whether a column holds numbers or truth values."""
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column))


def numbers(column: "pd.Series") -> np.ndarray:
    """Return a numeric column as it is stored, so that 0/1 stay one byte; missing ones are NaN."""
    if column.dtype.kind == "b" and not column.hasnans:
        return column.to_numpy(np.uint8)
    is_plain = isinstance(column.dtype, np.dtype)
    values = column.to_numpy() if is_plain else column.to_numpy(np.float64, na_value=np.nan)
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DatasetError(
            f"column {column.name!r} is {values[row]} in row {row + 1}; expected finite numbers; "
            "correct it, or leave the field empty if the value is unknown"
        )
    return values


def codes(column: "pd.Series") -> tuple[Int[np.ndarray, " rows"], tuple[str, ...]]:
    """Return a code for each row, −1 if missing, and the categories in alphabetical order."""
    category = column.astype("category").cat.remove_unused_categories().cat
    names = [str(value) for value in category.categories]
    known = sorted(set(names) - set(MISSING))
    place = {name: i for i, name in enumerate(known)}
    places = np.array([place.get(name, -1) for name in names] + [-1])  # the last one is NaN's
    return places[category.codes.to_numpy()], tuple(known)


def encode(target: "pd.Series") -> tuple[Int[np.ndarray, " rows"], tuple[str, ...]]:
    """Return a label for each row, and the classes: numbers by size, all else alphabetically."""
    import pandas as pd

    if target.dtype.name == "category":
        target = target.astype(target.cat.categories.dtype)
    is_number = is_numeric(target) and target.dtype.kind != "b"
    values = numbers(target) if is_number else target.astype(str).to_numpy(object)
    labels, classes = pd.factorize(values, sort=True, use_na_sentinel=False)
    return labels.astype(np.int64), tuple(_class_name(value) for value in classes.tolist())


def _class_name(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


FEWEST_ROWS = 10  # in fewer, values differ by chance
NAMED = re.compile(r"(^|[\W_])(id|uuid|guid)$", re.IGNORECASE)
CAMEL = re.compile(r"[a-z]I[dD]$")  # userId, userID


def id_reason(column: "pd.Series") -> str | None:
    """Return why a column is considered an id; None if it is not.

    Texts that all differ are ids. Integers that all differ are ids if they have no gaps, as row numbers, or if
    the name of the column says so.
    """
    known = column.dropna()
    if len(known) < FEWEST_ROWS or not known.is_unique:
        return None
    if not is_numeric(column):
        return "all values differ"
    values = numbers(column)
    if values.dtype.kind not in "iu":
        return None
    if int(values.max()) - int(values.min()) == len(values) - 1:
        return "it numbers the rows"
    return "an id" if is_called_id(str(column.name)) else None


def is_called_id(name: str) -> bool:
    """Return whether a name is that of an id: `id`, `user_id`, `userId`."""
    return bool(NAMED.search(name) or CAMEL.search(name))


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
    times = _parse_times([text.strip() for text in texts], str(column.name))
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


def _parse_times(values: Sequence[str], name: str) -> Shaped[np.ndarray, " values"] | None:
    """Return texts as times; None if one of them is not written as a date."""
    for pattern in (YEAR_FIRST, YEAR_LAST):
        if values and pattern.match(values[0]):
            matches = [match for value in values if (match := pattern.fullmatch(value))]
            if len(matches) < len(values):
                return None
            parts = [match.groups() for match in matches]
            order = (0, 2, 3) if pattern is YEAR_FIRST else (3, *_month_and_day(matches, name))
            days = [_parse_day(match, order, name) for match in matches]
            return np.array(days, "datetime64[s]") + np.array(
                [_parse_seconds(p[4:]) for p in parts]
            )
    return None


def _month_and_day(matches: Sequence[re.Match[str]], name: str) -> tuple[int, int]:
    """Return which groups are month and day in dates that end with the year; dots mean day first."""
    if all(match[2] == "." for match in matches):
        return 2, 0
    day_first = any(int(match[1]) > MONTHS for match in matches)
    month_first = any(int(match[3]) > MONTHS for match in matches)
    if day_first != month_first:
        return (2, 0) if day_first else (0, 2)
    raise DatasetError(
        f"column {name!r} has dates such as {matches[0][0]!r}, in which day and month are ambiguous; write "
        f"them as YYYY-MM-DD, or leave the column out with --drop {name}"
    )


def _parse_day(match: re.Match[str], order: tuple[int, int, int], name: str) -> np.datetime64:
    year, month, day = (match.groups()[place] for place in order)
    try:
        return np.datetime64(f"{year}-{month:0>2}-{day:0>2}")
    except ValueError as error:
        raise DatasetError(
            f"column {name!r} has {match[0]!r}, which is not in the calendar; correct it, or leave the "
            f"column out with --drop {name}"
        ) from error


def _parse_seconds(parts: Sequence[str | None]) -> int:
    """Return hour, minute, second and zone as seconds after midnight in UTC."""
    hour, minute, second, zone = parts
    total = 3600 * int(hour or 0) + 60 * int(minute or 0) + int(second or 0)
    if zone is None or zone == "Z":
        return total
    ahead = 3600 * int(zone[1:3]) + 60 * int(zone[-2:])
    return total - ahead if zone[0] == "+" else total + ahead
