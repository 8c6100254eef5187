"""A table of the user's own: CSV or Parquet, one column of which is the class."""

from pathlib import Path
from typing import TYPE_CHECKING

from rbmle.datasets.base import Table
from rbmle.datasets.columns import MISSING, is_numeric
from rbmle.datasets.csv_file import read_csv
from rbmle.datasets.digest import sha256
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.labels import encode

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES = 1000  # arms; more are a quantity or a key


def read(path: Path, target: str) -> Table:
    """Return a file's rows; the column `target` is the class, all others are features."""
    import pandas as pd

    frame = _frame(path)
    if len(frame) == 0:
        raise DatasetError(f"{str(path)!r} has no rows; expected a header and at least two rows")
    _check_columns(path, frame, target)
    column = frame.pop(target)
    missing = column.isna() | column.isin(MISSING)
    if missing.any():
        raise DatasetError(
            f"the target {target!r} of {str(path)!r} is missing in {int(missing.sum())} rows, "
            f"first in row {int(missing.argmax()) + 1} after the header; expected a class in each; "
            "delete those rows (empty, NA, NaN, None, null, ? and missing count as missing)"
        )
    labels, classes = encode(column)
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
    columns = {n: c if is_numeric(c) else _category(path, c) for n, c in frame.items()}
    frame = pd.DataFrame(columns)
    return Table(name=path.stem, frame=frame, labels=labels, classes=classes, digest=sha256(path))


def _frame(path: Path) -> "pd.DataFrame":
    """Return the file as it is."""
    import pandas as pd

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DatasetError(
            f"{str(path)!r} {what}; expected a .csv or .parquet file; check the path"
        )
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DatasetError(
            f"{str(path)!r} ends in {path.suffix!r}; expected .csv or .parquet; "
            "convert or rename it"
        )
    if path.stat().st_size == 0:
        raise DatasetError(f"{str(path)!r} is empty; expected a header and at least two rows")
    if path.suffix.lower() == ".csv":
        return read_csv(path)
    try:
        frame = pd.read_parquet(path).reset_index(drop=True)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise DatasetError(
            f"{str(path)!r} cannot be read as Parquet ({first}); write it again"
        ) from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _check_columns(path: Path, frame: "pd.DataFrame", target: str) -> None:
    """Raise if the target is not there, or there twice, or alone."""
    names = list(frame.columns)
    if target not in names:
        hint = "; columns are separated by commas" if len(names) == 1 else ""
        raise DatasetError(
            f"{str(path)!r} has no column {target!r}; there are "
            f"{', '.join(map(repr, names))}{hint}; give one of them as the target"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DatasetError(f"{str(path)!r} has the column {twice[0]!r} twice; rename one of them")
    if len(names) == 1:
        raise DatasetError(
            f"{str(path)!r} has no column besides the target {target!r}; expected features"
        )


def _category(path: Path, column: "pd.Series") -> "pd.Series":
    """Return a column of texts as categories."""
    if column.dtype.kind in "mM":
        raise DatasetError(
            f"column {column.name!r} of {str(path)!r} holds times ({column.dtype}); "
            "expected numbers or texts; make it a number, e.g. days since a date"
        )
    try:
        return column.astype("category")
    except TypeError as error:
        raise DatasetError(
            f"column {column.name!r} of {str(path)!r} holds {type(column.iloc[0]).__name__} values; "
            "expected numbers or texts; spread it over several columns"
        ) from error
