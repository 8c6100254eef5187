"""A table of the user: text or Parquet, one column of which is the class."""

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, cast

from rbmle.datasets.catalog import SEPARATORS, DatasetError, FileReading, Table, sha256
from rbmle.datasets.columns import (
    MISSING,
    date_columns,
    encode,
    id_reason,
    is_called_id,
    is_numeric,
    read_dates,
)

if TYPE_CHECKING:
    import pandas as pd


TEXT = (".csv", ".tsv", ".txt")
PARQUET = ".parquet"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")  # of text; Parquet is compressed inside
EXPECTED = ".csv, .tsv or .txt (also compressed: .gz, .bz2, .xz, .zst, .zip), or .parquet"


def is_text(path: Path) -> bool:
    return _plain(path).suffix.lower() in TEXT


def is_table(path: Path) -> bool:
    return is_text(path) or path.suffix.lower() == PARQUET


def title(path: Path) -> str:
    """Return the name of a file without its endings: `clicks.csv.gz` is `clicks`."""
    return _plain(path).stem


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


ENCODING = "utf-8-sig"  # UTF-8, with or without the mark that spreadsheets put first
DAMAGED = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Yield the text of a file; errors while it is read become a DatasetError."""
    try:
        with _open_bytes(path) as file, io.TextIOWrapper(file, ENCODING, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{str(path)!r} is not UTF-8 text (byte 0x{error.object[error.start]:02x}: {error.reason}); "
            "save it with the encoding UTF-8"
        ) from error
    except DAMAGED as error:
        raise DatasetError(
            f"{str(path)!r} cannot be unpacked ({error}); it is damaged, or is not compressed as its "
            f"ending {path.suffix} says"
        ) from error
    except OSError as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read ({error.strerror or error}); check the file and its permissions"
        ) from error


def _open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressing it by its suffix."""
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".bz2":
            return cast(IO[bytes], bz2.open(path))
        case ".xz":
            return cast(IO[bytes], lzma.open(path))
        case ".zst":
            import pyarrow as pa  # it takes a moment to import

            return cast(IO[bytes], pa.input_stream(str(path), compression="zstd"))
        case ".zip":
            return _only_member(path)
    return path.open("rb")


def _only_member(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    names = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
    if len(names) != 1:
        raise DatasetError(f"{str(path)!r} holds {len(names)} files; expected one; unpack it first")
    return archive.open(names[0])


SAMPLE = 65_536  # characters in which separators and decimal commas are detected
POINTS = re.compile(r"\d\.\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDialect:
    """How a text file separates its columns, and how it writes decimal numbers."""

    separator: str = ","
    decimal: str = "."


def read_csv(path: Path, target: str) -> "tuple[pd.DataFrame, TextDialect]":
    """Return the rows of a text file with a header, and its dialect."""
    import pandas as pd

    dialect = _dialect(path, target)
    try:
        with open_text(path) as text, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # fields beyond the header
            frame = pd.read_csv(
                text,
                sep=dialect.separator,
                decimal=dialect.decimal,
                index_col=False,
                low_memory=False,
                na_values=list(MISSING),
                skipinitialspace=True,
            )
    except pd.errors.EmptyDataError as error:
        raise DatasetError(
            f"{str(path)!r} is empty; expected a header and at least two rows"
        ) from error
    except pd.errors.ParserWarning as error:
        raise DatasetError(
            f"{str(path)!r} has rows with more fields than its header; put texts that contain "
            f"{SEPARATORS[dialect.separator]} in quotes"
        ) from error
    except pd.errors.ParserError as error:
        raise DatasetError(
            f"{str(path)!r} is not a well-formed table ({_first_line(error)}); every line must have as "
            "many fields as the header; correct that line"
        ) from error
    if frame.isna().to_numpy().any():
        try:  # pandas silently fills short rows with missing values
            _refuse_short_rows(path, dialect)
        except csv.Error as error:
            raise DatasetError(
                f"{str(path)!r} is not a well-formed table ({error}); check its quotes"
            ) from error
    return frame, dialect


def _dialect(path: Path, target: str) -> TextDialect:
    """Detect the dialect: the separator with which the header has the target, or else the most columns."""
    with open_text(path) as text:
        sample = text.read(SAMPLE)

    def rank(separator: str) -> tuple[bool, int]:
        header = _header(sample, separator)
        return target in header, len(header)

    separator = max(SEPARATORS, key=rank)  # of equals the first
    number = re.compile(
        rf"(?:^|{re.escape(separator)})\s*-?\d+,\d+\s*(?:$|{re.escape(separator)})", re.M
    )
    has_commas = separator != "," and number.search(sample) and not POINTS.search(sample)
    return TextDialect(separator=separator, decimal="," if has_commas else ".")


def _header(sample: str, separator: str) -> list[str]:
    lines = csv.reader(sample.splitlines(), delimiter=separator, skipinitialspace=True)
    return next((line for line in lines if line), [])


def _refuse_short_rows(path: Path, dialect: TextDialect) -> None:
    with open_text(path) as text:
        lines = csv.reader(text, delimiter=dialect.separator, skipinitialspace=True)
        header = next(line for line in lines if line)
        for line in lines:
            if line and len(line) < len(header):
                raise DatasetError(
                    f"line {lines.line_num} of {str(path)!r} has {len(line)} fields; expected "
                    f"{len(header)} as in the header; complete it (a missing value is an empty "
                    "field)"
                )


def _first_line(error: Exception) -> str:
    return str(error).removeprefix("Error tokenizing data. C error: ").strip().splitlines()[0]


ARMS = ("action", "action_id", "arm", "arm_id", "chosen_action", "chosen_arm")
REWARDS = ("click", "clicked", "cost", "reward", "rewards")
PROPENSITIES = (
    "action_prob",
    "action_probability",
    "pi_b",
    "probability",
    "propensity",
    "propensity_score",
    "pscore",
)


def refuse_bandit_log(path: Path, names: Iterable[str]) -> None:
    """Raise DatasetError if a file's columns are those of a log: an arm, and its reward or propensity."""
    names = list(names)
    arms, rewards, chances = (
        [name for name in names if name.lower() in known] for known in (ARMS, REWARDS, PROPENSITIES)
    )
    if not arms or not (rewards or chances):
        return
    known = [*arms, *rewards, *chances]
    raise DatasetError(
        f"{str(path)!r} looks like the log of a bandit (columns {', '.join(known)}): its rows have the "
        "reward of the arm that was played, while an experiment needs the right class of every row; to "
        "judge policies on a log, use rbmle evaluate, and to learn from it Bandit.partial_fit; if it is "
        f"labelled data nevertheless, leave out what is not a feature: --drop {','.join([*rewards, *chances])}"
    )


MAX_CLASSES = 1000  # arms; more are a quantity or a key


def read_file(path: Path, target: str, drop: tuple[str, ...] = ()) -> Table:
    """Return a file's rows; the column `target` is the class, all others but `drop` are features.

    Ids are left out, and dates become numbers; `reading` of the table lists both.
    """
    import pandas as pd

    frame, dialect = _frame(path, target)
    if len(frame) == 0:
        raise DatasetError(f"{str(path)!r} has no rows; expected a header and at least two rows")
    _check_columns(path, frame, target, drop)
    frame = frame.drop(columns=list(drop))
    refuse_bandit_log(path, frame.columns)
    labels, classes = encode(_check_complete(path, frame.pop(target)))
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
        reading=FileReading(
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


def _frame(path: Path, target: str) -> "tuple[pd.DataFrame, TextDialect]":
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
    return frame.set_axis([str(name) for name in frame.columns], axis=1), TextDialect()


def _check_columns(path: Path, frame: "pd.DataFrame", target: str, drop: tuple[str, ...]) -> None:
    """Raise DatasetError if a named column is missing, or two columns have one name."""
    names = list(frame.columns)
    if target not in names:
        raise DatasetError(
            f"{str(path)!r} has no column {target!r}; its columns are {_join_names(names)}; give one of them "
            f"as the target{_header_hint(names)}"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DatasetError(f"{str(path)!r} has two columns called {twice[0]!r}; rename one of them")
    if target in drop:
        raise DatasetError(f"the target {target!r} is also to be dropped; choose one of the two")
    if unknown := [name for name in drop if name not in names]:
        raise DatasetError(
            f"{str(path)!r} has no column {unknown[0]!r} to drop; its columns are {_join_names(names)}"
        )


def _header_hint(names: list[str]) -> str:
    """Return a hint for a header that lacks the target."""
    if len(names) == 1:
        return " (columns may be separated by commas, semicolons, tabs or vertical bars)"
    if all(name.lstrip("-").replace(".", "").isdigit() for name in names):
        return " (the first line must hold the names of the columns; add one if it holds values)"
    return ""


def _check_complete(path: Path, column: "pd.Series") -> "pd.Series":
    missing = column.isna() | column.isin(MISSING)
    if missing.any():
        raise DatasetError(
            f"the target {column.name!r} of {str(path)!r} is missing in {int(missing.sum())} rows, "
            f"first in row {int(missing.argmax()) + 1} after the header; expected a class in each; "
            "delete those rows (empty, NA, NaN, None, null, ? and missing count as missing)"
        )
    return column


def _check_classes(path: Path, target: str, classes: tuple[str, ...]) -> None:
    """Raise DatasetError if there is only one class, or too many."""
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
    """Return numbers and times as they are, durations in seconds, and anything else as categories."""
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


def _join_names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:30]))
    return f"{shown} and {len(names) - 30} more" if len(names) > 30 else shown
