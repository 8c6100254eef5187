"""Columns that name rows rather than describe them: nothing is learned from one about the next row."""

import re
from typing import TYPE_CHECKING

from rbmle.datasets.columns import is_numeric, numbers

if TYPE_CHECKING:
    import pandas as pd

FEWEST_ROWS = 10  # in fewer, values differ by chance
NAMED = re.compile(r"(^|[\W_])(id|uuid|guid)$", re.IGNORECASE)
CAMEL = re.compile(r"[a-z]I[dD]$")  # userId, userID


def id_reason(column: "pd.Series") -> str | None:
    """Return why a column is taken for an id; None if it is not.

    Texts that all differ are ids; integers that all differ are if they have no gaps, as row
    numbers have none, or if the column is called one.
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
    """Say whether a name is one that ids have: `id`, `user_id`, `userId`."""
    return bool(NAMED.search(name) or CAMEL.search(name))
