"""A dataset from OpenML, in our layout, kept in a folder as Parquet."""

import os
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from rbmle.datasets.base import Source
from rbmle.datasets.digest import sha256
from rbmle.datasets.errors import DatasetError, first_line
from rbmle.datasets.labels import encode

if TYPE_CHECKING:
    import pandas as pd


def openml(**request: Any) -> Any:
    """Return what scikit-learn fetches."""
    from sklearn.datasets import fetch_openml  # it takes a second to import

    return fetch_openml(**request)


def download(source: Source, folder: Path, *, fetch: Callable[..., Any] = openml) -> Path:
    """Fetch a dataset, check its shape and classes, and write it with its checksum beside it.

    What OpenML sends differs from our file byte by byte, so it has another checksum.
    """
    assert source.file is not None
    try:
        bunch = fetch(data_id=source.openml_id, as_frame=True, parser="auto")
    except (OSError, HTTPException, ValueError) as error:
        raise DatasetError(
            f"cannot download {source.name} from OpenML ({first_line(error)}); without a network, "
            f"put the file {source.file} into a folder DIR, and give --data-dir DIR or set "
            "RBMLE_DATA=DIR"
        ) from error
    frame = layout(bunch.data, bunch.target)
    check(source, frame)
    try:
        return write(frame, folder / source.file)
    except OSError as error:
        raise DatasetError(
            f"cannot write {source.file} to the cache {str(folder)!r} ({first_line(error)}); "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from error


def layout(features: "pd.DataFrame", target: "pd.Series") -> "pd.DataFrame":
    """Return features and then `target`; numbers written as categories become numbers."""
    import pandas as pd

    columns = {str(name): compact(column) for name, column in features.items()}
    return pd.DataFrame({**columns, "target": compact(target)})


def compact(column: "pd.Series") -> "pd.Series":
    """Return a column of whole numbers in as few bytes as they need; others as they are."""
    import pandas as pd

    if column.dtype.name == "category":
        try:
            column = column.astype(pd.to_numeric(column.cat.categories).dtype)
        except (ValueError, TypeError):  # words, or numbers with gaps
            return column
    if column.dtype.kind not in "iuf":
        return column
    small = pd.to_numeric(column, downcast="unsigned")
    return small if small.dtype.kind == "u" else pd.to_numeric(column, downcast="integer")


def check(source: Source, frame: "pd.DataFrame") -> None:
    """Raise if the download does not have the published shape and classes."""
    counts = tuple(np.bincount(encode(frame["target"])[0]).tolist())
    found = (len(frame), frame.shape[1] - 1, counts)
    wanted = (source.rows, source.features, source.counts)
    if found != wanted:
        raise DatasetError(
            f"OpenML's {source.name} (id {source.openml_id}) has {_shape(*found)}; "
            f"expected {_shape(*wanted)}; it was changed there; put the file {source.file} into a "
            "folder DIR, and give --data-dir DIR"
        )


def record(path: Path) -> str | None:
    """Return the checksum a download was written with; None if the file was not downloaded."""
    note = _note(path)
    return note.read_text().strip() if note.is_file() else None


def write(frame: "pd.DataFrame", path: Path) -> Path:
    """Write the file and its checksum; a reader sees it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".download-") as folder:
        draft = Path(folder) / path.name
        frame.to_parquet(draft, compression="zstd", index=False)
        _note(draft).write_text(sha256(draft) + "\n")
        os.replace(_note(draft), _note(path))
        os.replace(draft, path)
    return path


def _note(path: Path) -> Path:
    """Return the file that has a file's checksum."""
    return path.with_name(path.name + ".sha256")


def _shape(rows: int, features: int, counts: tuple[int, ...]) -> str:
    """Return a shape as text."""
    return f"{rows} rows, {features} features and classes of {', '.join(map(str, counts))} rows"
