"""A text file as a table: its separator is found, and rows that are too long or too short are refused."""

import csv
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rbmle.datasets.columns import MISSING
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.text_file import opened

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SAMPLE = 65_536  # characters in which separators and decimal commas are looked for
POINTS = re.compile(r"\d\.\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a text file separates its columns, and how it writes decimal numbers."""

    separator: str = ","
    decimal: str = "."


def read_csv(path: Path, target: str) -> "tuple[pd.DataFrame, Dialect]":
    """Return the rows of a text file with a header, and the dialect that was found in it."""
    import pandas as pd

    dialect = _dialect(path, target)
    try:
        with opened(path) as text, warnings.catch_warnings():
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
        try:
            _refuse_short_rows(
                path, dialect
            )  # pandas fills them with missing values, and says nothing
        except csv.Error as error:
            raise DatasetError(
                f"{str(path)!r} is not a well-formed table ({error}); check its quotes"
            ) from error
    return frame, dialect


def _dialect(path: Path, target: str) -> Dialect:
    """Return the separator by which the header has the target, or else the most columns."""
    with opened(path) as text:
        sample = text.read(SAMPLE)

    def rank(separator: str) -> tuple[bool, int]:
        header = _header(sample, separator)
        return target in header, len(header)

    separator = max(SEPARATORS, key=rank)  # of equals the first
    number = re.compile(
        rf"(?:^|{re.escape(separator)})\s*-?\d+,\d+\s*(?:$|{re.escape(separator)})", re.M
    )
    has_commas = separator != "," and number.search(sample) and not POINTS.search(sample)
    return Dialect(separator=separator, decimal="," if has_commas else ".")


def _header(sample: str, separator: str) -> list[str]:
    """Return the fields of the first line that is not empty."""
    lines = csv.reader(sample.splitlines(), delimiter=separator, skipinitialspace=True)
    return next((line for line in lines if line), [])


def _refuse_short_rows(path: Path, dialect: Dialect) -> None:
    """Raise if a line has fewer fields than the header."""
    with opened(path) as text:
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
    """Return the first line of a message, without pandas' preamble."""
    return str(error).removeprefix("Error tokenizing data. C error: ").strip().splitlines()[0]
