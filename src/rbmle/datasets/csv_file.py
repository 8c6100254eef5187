"""A CSV file as a table; rows that are too long or too short are refused."""

import csv
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from rbmle.datasets.columns import MISSING
from rbmle.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

ENCODING = "utf-8-sig"  # UTF-8, with or without the mark that spreadsheets put first


def read_csv(path: Path) -> "pd.DataFrame":
    """Return the rows of a CSV file with a header."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # fields beyond the header
            frame = pd.read_csv(
                path,
                encoding=ENCODING,
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
            f"{str(path)!r} has rows with more fields than its header; expected as many; "
            "check for commas in texts, and put those in quotes"
        ) from error
    except (pd.errors.ParserError, UnicodeDecodeError, OSError, ValueError) as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read as CSV ({_first_line(error)}); expected UTF-8 text with "
            "as many fields in each line as in the header; correct that line"
        ) from error
    if frame.isna().to_numpy().any():
        _refuse_short_rows(path)  # pandas fills them with missing values, and says nothing
    return frame


def _refuse_short_rows(path: Path) -> None:
    """Raise if a line has fewer fields than the header."""
    with path.open(encoding=ENCODING, newline="") as file:
        lines = csv.reader(file, skipinitialspace=True)
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
