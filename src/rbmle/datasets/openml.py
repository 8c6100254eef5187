"""Any dataset of OpenML, by its number."""

from collections.abc import Callable
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from rbmle.datasets.download import layout, openml
from rbmle.datasets.errors import DatasetError, first_line

if TYPE_CHECKING:
    import pandas as pd


def from_openml(number: str, *, fetch: Callable[..., Any] = openml) -> "pd.DataFrame":
    """Return features and the column `target`; `fetch` stands in for `fetch_openml`."""
    try:
        bunch = fetch(data_id=int(number), as_frame=True, parser="auto")
    except (OSError, HTTPException, ValueError) as error:
        raise DatasetError(
            f"cannot download the dataset {number} from OpenML ({first_line(error)}); check the number; "
            f"without a network, put the file openml/{number}.parquet, with the label in column "
            "`target`, into a folder DIR, and give --data-dir DIR or set RBMLE_DATA=DIR"
        ) from error
    if bunch.target is None:
        raise DatasetError(
            f"the dataset {number} of OpenML has no default target; save it as a file of your own, and "
            "name the column by --target"
        )
    if "target" in bunch.data.columns:
        raise DatasetError(
            f"the dataset {number} of OpenML has a feature called 'target'; save it as a file of your "
            "own under another name, and name the label's column by --target"
        )
    return layout(bunch.data, bunch.target)
