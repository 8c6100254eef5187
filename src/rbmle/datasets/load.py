"""A dataset by name or path, ready to play."""

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from rbmle.datasets.base import Dataset, Source, Table
from rbmle.datasets.collection import collected, is_collected
from rbmle.datasets.digest import sha256
from rbmle.datasets.digits import digits_table
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.formats import EXPECTED, is_table
from rbmle.datasets.labels import encode
from rbmle.datasets.lookup import find
from rbmle.datasets.preprocessing import PREPROCESSINGS, preprocess
from rbmle.datasets.registry import DATASETS
from rbmle.datasets.user_file import read


def load(
    name: str,
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    preprocessing: str = "standard",
    data_dir: Path | None = None,
) -> Dataset:
    """Return a dataset of the registry or a collection, or a user's file with its column `target`.

    Columns in `drop` are left out of a user's file.
    Without `data_dir`, the environment variable RBMLE_DATA may name the folder of files.
    The last two are kept: many trials in one process load once, and share read-only arrays.
    """
    if data_dir is None and (folder := os.environ.get("RBMLE_DATA")):
        data_dir = Path(folder)
    return _load(name, target, tuple(drop), preprocessing, data_dir, os.getcwd())


@lru_cache(maxsize=2)
def _load(
    name: str,
    target: str | None,
    drop: tuple[str, ...],
    preprocessing: str,
    data_dir: Path | None,
    here: str,
) -> Dataset:
    """Return a dataset; a relative path means another file in another folder, hence `here`."""
    if preprocessing not in PREPROCESSINGS:
        raise DatasetError(
            f"there is no preprocessing {preprocessing!r}; there are {', '.join(PREPROCESSINGS)}"
        )
    if find_spec("pandas") is None:
        raise DatasetError("datasets need pandas; run pip install 'rbmle[experiments]'")
    dataset = preprocess(_table(name, target, drop, data_dir), preprocessing)
    dataset.X.flags.writeable = False  # nobody changes what others share
    dataset.labels.flags.writeable = False
    return dataset


def _table(name: str, target: str | None, drop: tuple[str, ...], data_dir: Path | None) -> Table:
    """Return the raw rows of what a name means."""
    if name in DATASETS or is_collected(name):
        if target is not None or drop:
            given = "a target" if target is not None else "columns to drop"
            raise DatasetError(
                f"{name} is a dataset of the registry, and {given} can be given for a file of your own "
                "only; leave that out"
            )
        if is_collected(name):
            return collected(name, data_dir)
        return digits_table() if name == "digits" else _registered(DATASETS[name], data_dir)
    path = Path(name).expanduser()
    if not is_table(path) and not path.is_file() and "/" not in name and "\\" not in name:
        raise DatasetError(
            f"there is no dataset {name!r}; there are {', '.join(DATASETS)}, "
            f"pmlb:NAME and openml:ID; a file of your own must "
            f"end in {EXPECTED}"
        )
    if target is None:
        raise DatasetError(
            f"{name!r} needs a target, the column that holds the class: give --target COLUMN (in Python, "
            "target='COLUMN')"
        )
    return read(path, target, drop)


def _registered(source: Source, data_dir: Path | None) -> Table:
    """Return the raw rows of a dataset of the registry, wherever its file is."""
    import pandas as pd

    path = find(source, data_dir)
    frame = pd.read_parquet(path)
    labels, classes = encode(frame.pop("target"))
    return Table(name=source.name, frame=frame, labels=labels, classes=classes, digest=sha256(path))
