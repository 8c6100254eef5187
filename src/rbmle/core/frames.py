"""Data frames and series, known by what they can do: no library of theirs is imported."""

from collections.abc import Iterator
from typing import Any

from rbmle.core.errors import ContextError


def columns_of(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None for what is none."""
    if not hasattr(X, "to_numpy") or not hasattr(X, "columns"):
        return None
    columns = list(X.columns)
    _check_distinct(columns, "column")
    return columns


def index_of(x: Any, *, needs_names: bool) -> list[Any] | None:
    """Return the names of the values of a series; None for what is none, or has no names."""
    if not hasattr(x, "to_numpy"):
        return None
    if hasattr(x, "columns"):
        is_pandas = hasattr(x, "iloc")
        named = "x.iloc[0]" if is_pandas else "x.row(0, named=True)"
        plain = "x.iloc[0].to_numpy()" if is_pandas else "x.row(0)"
        raise ContextError(
            f"a data frame of {len(x)} rows was given where one context is expected; give one row, as in "
            f"{named if needs_names else plain}, and all rows to decide_many or partial_fit"
        )
    if not hasattr(x, "index"):
        return None
    index = list(x.index)
    _check_distinct(index, "name")
    return index


def records(X: Any) -> Iterator[dict[Any, Any]] | None:
    """Return the rows of a data frame as dictionaries of Python's own values; None for what is none."""
    columns = columns_of(X)
    if columns is None:
        return None
    values = [X[name].to_list() for name in columns]
    return (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _check_distinct(names: list[Any], what: str) -> None:
    """Raise ContextError for a name that is there twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ContextError(f"the {what} {twice!r} is there twice; each needs a name of its own")
