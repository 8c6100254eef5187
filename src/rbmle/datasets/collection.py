"""Collections of datasets: `pmlb:letter` and `openml:61`, from a folder, the cache, or their makers."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rbmle.datasets.base import Table
from rbmle.datasets.download import record, write
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.lookup import cache_folder, check_folder, checked
from rbmle.datasets.openml import from_openml
from rbmle.datasets.pmlb import from_pmlb
from rbmle.datasets.user_file import read

if TYPE_CHECKING:
    import pandas as pd

TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Where the datasets of a collection come from."""

    prefix: str  # of a dataset's name, before a colon; its files are in a folder of this name
    names: str  # what the names of its datasets look like, as a regular expression
    example: str
    fetch: Callable[[str], "pd.DataFrame"]  # features and the column `target`, by name


COLLECTIONS: dict[str, Collection] = {
    each.prefix: each
    for each in (
        Collection(prefix="pmlb", names=r"[\w.-]*\w", example="pmlb:letter", fetch=from_pmlb),
        Collection(prefix="openml", names=r"[1-9][0-9]*", example="openml:61", fetch=from_openml),
    )
}


def is_collected(name: str) -> bool:
    """Say whether a name is that of a dataset in a collection."""
    prefix, colon, _ = name.partition(":")
    return bool(colon) and prefix in COLLECTIONS


def collected(name: str, data_dir: Path | None) -> Table:
    """Return the raw rows of a dataset in a collection: the first file there is, else a download."""
    prefix, _, item = name.partition(":")
    collection = COLLECTIONS[prefix]
    if not re.fullmatch(collection.names, item):
        raise DatasetError(
            f"{name!r} is not the name of a dataset of {prefix}; write it as in {collection.example}"
        )
    file = f"{prefix}/{item}.parquet"
    check_folder(data_dir, file)
    table = read(_found(collection, item, file, data_dir), TARGET)
    is_plain = table.reading is None or not (table.reading.settings or table.reading.suspects)
    return replace(table, name=name, reading=None if is_plain else table.reading)


def _found(collection: Collection, item: str, file: str, data_dir: Path | None) -> Path:
    """Return where the file of a dataset is; it is fetched into the cache if it is nowhere."""
    if data_dir is not None and (path := data_dir / file).is_file():
        return path
    path = cache_folder() / file
    if path.is_file():
        digest = record(path)
        return path if digest is None else checked(path, digest)
    return write(collection.fetch(item), path)
