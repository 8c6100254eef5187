"""A table of the user's own: text or Parquet, one column of which is the class."""

from pathlib import Path
from typing import TYPE_CHECKING

from rbmle.datasets.bandit_log import refuse_bandit_log
from rbmle.datasets.base import Table
from rbmle.datasets.columns import MISSING, is_numeric
from rbmle.datasets.csv_file import Dialect, read_csv
from rbmle.datasets.dates import date_columns, read_dates
from rbmle.datasets.digest import sha256
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.formats import EXPECTED, is_table, is_text, title
from rbmle.datasets.ids import id_reason, is_called_id
from rbmle.datasets.labels import encode
from rbmle.datasets.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES = 1000  # arms; more are a quantity or a key


def read(path: Path, target: str, drop: tuple[str, ...] = ()) -> Table:
    """Return a file's rows; the column `target` is the class, all others but `drop` are features.

    Ids are left out and dates become numbers; `reading` of the table says so.
    """
    import pandas as pd

    frame, dialect = _frame(path, target)
    if len(frame) == 0:
        raise DatasetError(f"{str(path)!r} has no rows; expected a header and at least two rows")
    _check_columns(path, frame, target, drop)
    frame = frame.drop(columns=list(drop))
    refuse_bandit_log(path, frame.columns)
    labels, classes = encode(_complete(path, frame.pop(target)))
    _check_classes(path, target, classes)
    ids: dict[str, str] = {}
    dates: list[str] = []
    columns: dict[str, pd.Series] = {}
    for name, raw in frame.items():
        column = _numbers_or_categories(path, raw)
        times = None if is_numeric(column) else read_dates(column)
        if times is not None:
            columns |= date_columns(name, times)
            dates.append(name)
        elif (why := id_reason(column)) is not None:
            ids[name] = why
        else:
            columns[name] = column
    if not columns:
        raise DatasetError(
            f"{str(path)!r} has no column left besides the target {target!r}; expected features"
            + (f"; left out: {', '.join([*drop, *ids])}" if ids or drop else "")
        )
    return Table(
        name=title(path),
        frame=pd.DataFrame(columns),
        labels=labels,
        classes=classes,
        digest=sha256(path),
        reading=Reading(
            file=path.name,
            rows=len(frame),
            target=target,
            separator=dialect.separator,
            decimal=dialect.decimal,
            dropped=drop,
            ids=tuple(ids.items()),
            dates=tuple(dates),
            suspects=tuple(name for name in columns if is_called_id(name)),
        ),
    )


def _frame(path: Path, target: str) -> "tuple[pd.DataFrame, Dialect]":
    """Return the file as it is, and the dialect of its text."""
    import pandas as pd

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DatasetError(f"{str(path)!r} {what}; expected a file: {EXPECTED}; check the path")
    if not is_table(path):
        raise DatasetError(
            f"{str(path)!r} ends in {path.suffix!r}; expected {EXPECTED}; convert it, for example by "
            "saving it as CSV"
        )
    if path.stat().st_size == 0:
        raise DatasetError(f"{str(path)!r} is empty; expected a header and at least two rows")
    if is_text(path):
        return read_csv(path, target)
    try:
        frame = pd.read_parquet(path).reset_index(drop=True)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise DatasetError(
            f"{str(path)!r} cannot be read as Parquet ({first}); write it again"
        ) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1), Dialect()


def _check_columns(path: Path, frame: "pd.DataFrame", target: str, drop: tuple[str, ...]) -> None:
    """Raise if a column that was named is missing, or a name is there twice."""
    names = list(frame.columns)
    if target not in names:
        raise DatasetError(
            f"{str(path)!r} has no column {target!r}; its columns are {_listed(names)}; give one of them "
            f"as the target{_header_hint(names)}"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DatasetError(f"{str(path)!r} has two columns called {twice[0]!r}; rename one of them")
    if target in drop:
        raise DatasetError(f"the target {target!r} is also to be dropped; choose one of the two")
    if unknown := [name for name in drop if name not in names]:
        raise DatasetError(
            f"{str(path)!r} has no column {unknown[0]!r} to drop; its columns are {_listed(names)}"
        )


def _header_hint(names: list[str]) -> str:
    """Return what may be wrong with a header in which the target was not found."""
    if len(names) == 1:
        return " (columns may be separated by commas, semicolons, tabs or vertical bars)"
    if all(name.lstrip("-").replace(".", "").isdigit() for name in names):
        return " (the first line must hold the names of the columns; add one if it holds values)"
    return ""


def _complete(path: Path, column: "pd.Series") -> "pd.Series":
    """Return the target, or raise if it is missing in a row."""
    missing = column.isna() | column.isin(MISSING)
    if missing.any():
        raise DatasetError(
            f"the target {column.name!r} of {str(path)!r} is missing in {int(missing.sum())} rows, "
            f"first in row {int(missing.argmax()) + 1} after the header; expected a class in each; "
            "delete those rows (empty, NA, NaN, None, null, ? and missing count as missing)"
        )
    return column


def _check_classes(path: Path, target: str, classes: tuple[str, ...]) -> None:
    """Raise if there is one class only, or too many to be classes."""
    if len(classes) == 1:
        raise DatasetError(
            f"the target {target!r} of {str(path)!r} is {classes[0]!r} in every row; "
            "expected at least two classes; choose another column"
        )
    if len(classes) > MAX_CLASSES:
        raise DatasetError(
            f"the target {target!r} of {str(path)!r} has {len(classes)} classes; expected at most "
            f"{MAX_CLASSES}; it is probably a number or a name: choose another column, or group "
            "its values"
        )


def _numbers_or_categories(path: Path, column: "pd.Series") -> "pd.Series":
    """Return numbers and times as they are, durations in seconds, and all else as categories."""
    if column.dtype.kind == "m":
        return column.dt.total_seconds()
    if is_numeric(column) or column.dtype.kind == "M":
        return column
    try:
        return column.astype("category")
    except TypeError as error:
        raise DatasetError(
            f"column {column.name!r} of {str(path)!r} holds {type(column.iloc[0]).__name__} values; "
            "expected numbers, texts or dates; spread it over several columns, or leave it out with "
            f"--drop {column.name}"
        ) from error


def _listed(names: list[str]) -> str:
    """Return the names of columns, the first thirty of them."""
    shown = ", ".join(map(repr, names[:30]))
    return f"{shown} and {len(names) - 30} more" if len(names) > 30 else shown
