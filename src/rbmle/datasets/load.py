"""A dataset by name or path, ready to play."""

import os
from functools import lru_cache
from pathlib import Path

from rbmle.datasets.base import Dataset, Source, Table
from rbmle.datasets.digest import sha256
from rbmle.datasets.digits import digits_table
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.labels import encode
from rbmle.datasets.lookup import find
from rbmle.datasets.preprocessing import PREPROCESSINGS, preprocess
from rbmle.datasets.registry import DATASETS
from rbmle.datasets.user_file import read


def load(
    name: str,
    *,
    target: str | None = None,
    preprocessing: str = "standard",
    data_dir: Path | None = None,
) -> Dataset:
    """Return a dataset of the registry, or a CSV or Parquet file with its label column `target`.

    Without `data_dir`, the environment variable RBMLE_DATA may name the folder of files.
    The last two are kept: many trials in one process load once, and share read-only arrays.
    """
    if data_dir is None and (folder := os.environ.get("RBMLE_DATA")):
        data_dir = Path(folder)
    return _load(name, target, preprocessing, data_dir, os.getcwd())


@lru_cache(maxsize=2)
def _load(
    name: str, target: str | None, preprocessing: str, data_dir: Path | None, here: str
) -> Dataset:
    """Return a dataset; a relative path means another file in another folder, hence `here`."""
    if preprocessing not in PREPROCESSINGS:
        raise DatasetError(
            f"no preprocessing {preprocessing!r}; there are {', '.join(PREPROCESSINGS)}"
        )
    dataset = preprocess(_table(name, target, data_dir), preprocessing)
    dataset.X.flags.writeable = False  # nobody changes what others share
    dataset.labels.flags.writeable = False
    return dataset


def _table(name: str, target: str | None, data_dir: Path | None) -> Table:
    """Return the raw rows of what a name means."""
    if name in DATASETS:
        if target is not None:
            raise DatasetError(
                f"target={target!r} is for a file of your own; {name} has its label already; "
                "leave it out"
            )
        return digits_table() if name == "digits" else _registered(DATASETS[name], data_dir)
    if not _is_path(name):
        raise DatasetError(
            f"no dataset {name!r}; there are {', '.join(DATASETS)}, or the path of a .csv or "
            ".parquet file"
        )
    if target is None:
        raise DatasetError(f"{name!r} needs a target: name the column that has the class")
    return read(Path(name).expanduser(), target)


def _is_path(name: str) -> bool:
    """Say whether a name means a file."""
    path = Path(name).expanduser()
    is_named_so = path.suffix.lower() in (".csv", ".parquet")
    return is_named_so or "/" in name or "\\" in name or path.is_file()


def _registered(source: Source, data_dir: Path | None) -> Table:
    """Return the raw rows of a dataset of the registry, wherever its file is."""
    import pandas as pd

    path = find(source, data_dir)
    frame = pd.read_parquet(path)
    labels, classes = encode(frame.pop("target"))
    return Table(name=source.name, frame=frame, labels=labels, classes=classes, digest=sha256(path))
