"""The Penn Machine Learning Benchmarks (Olson et al. 2017), through their package."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rbmle.datasets.errors import DatasetError, first_line

if TYPE_CHECKING:
    import pandas as pd


def package(name: str) -> Any:
    """Return what the package `pmlb` downloads."""
    import pmlb

    return pmlb.fetch_data(name)


def from_pmlb(name: str, *, fetch: Callable[[str], Any] = package) -> "pd.DataFrame":
    """Return features and the column `target`; `fetch` stands in for the package."""
    folder = (
        f"put the file pmlb/{name}.parquet into a folder DIR, and give --data-dir DIR or set "
        "RBMLE_DATA=DIR"
    )
    try:
        return fetch(name)
    except ImportError as error:
        raise DatasetError(
            f"pmlb:{name} is in no folder, and its download needs pmlb, which is not installed; run "
            f"pip install 'rbmle[pmlb]', or {folder}"
        ) from error
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"cannot get {name} of the Penn Machine Learning Benchmarks ({first_line(error)}); check "
            f"the name; without a network, {folder}"
        ) from error
