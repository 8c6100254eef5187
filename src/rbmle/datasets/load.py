"""A dataset by name or path: from a folder, this package, the cache, or a download."""

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from rbmle.core.checks import no_such
from rbmle.datasets.catalog import (
    DATASETS,
    Dataset,
    DatasetError,
    Source,
    Table,
    first_line,
    sha256,
)
from rbmle.datasets.columns import encode
from rbmle.datasets.preprocessing import PREPROCESSINGS, preprocess
from rbmle.datasets.user_file import EXPECTED, is_table, read_file

if TYPE_CHECKING:
    import pandas as pd


SHIPPED = Path(__file__).parent / "files"


def fetch_openml(**request: Any) -> Any:
    import sklearn.datasets  # it takes a second to import

    return sklearn.datasets.fetch_openml(**request)


def find_file(
    source: Source, data_dir: Path | None, *, fetch: Callable[..., Any] = fetch_openml
) -> Path:
    """Return the file of a dataset after checking its checksum; download it if there is none."""
    if source.file is None:
        raise DatasetError(
            f"{source.name} has no file, as it comes with scikit-learn; call load({source.name!r}) instead"
        )
    check_folder(data_dir, source.file)
    cache = cache_folder()
    for folder in (data_dir, SHIPPED, cache):
        if folder is not None and (path := folder / source.file).is_file():
            expected = read_digest_note(path) if folder == cache else source.sha256
            return check_digest(path, expected or source.sha256)
    return download(source, cache, fetch=fetch)


def cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "rbmle" / "datasets"


def check_folder(data_dir: Path | None, file: str) -> None:
    if data_dir is not None and not data_dir.is_dir():
        raise DatasetError(
            f"the data folder {str(data_dir)!r} does not exist or is not a folder; create it, or give "
            f"--data-dir (or RBMLE_DATA) a folder that has {file}"
        )


def check_digest(path: Path, expected: str) -> Path:
    if (digest := sha256(path)) != expected:
        raise DatasetError(
            f"{str(path)!r} has the sha256 {digest[:12]}…; expected {expected[:12]}…; "
            "it is damaged or a different file: delete it, and get it again"
        )
    return path


def download(source: Source, folder: Path, *, fetch: Callable[..., Any] = fetch_openml) -> Path:
    """Fetch a dataset, check its shape and classes, and write it with its checksum beside it.

    The file that OpenML sends has other bytes than ours, and so another checksum.
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
    frame = arrange_columns(bunch.data, bunch.target)
    check(source, frame)
    try:
        return write_download(frame, folder / source.file)
    except OSError as error:
        raise DatasetError(
            f"cannot write {source.file} to the cache {str(folder)!r} ({first_line(error)}); "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from error


def arrange_columns(features: "pd.DataFrame", target: "pd.Series") -> "pd.DataFrame":
    """Return features and then `target`; numbers written as categories become numbers."""
    import pandas as pd

    columns = {str(name): compact_column(column) for name, column in features.items()}
    return pd.DataFrame({**columns, "target": compact_column(target)})


def compact_column(column: "pd.Series") -> "pd.Series":
    """Return a column of whole numbers in the smallest integer type; others as they are."""
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
    actual = (len(frame), frame.shape[1] - 1, counts)
    expected = (source.rows, source.features, source.counts)
    if actual != expected:
        raise DatasetError(
            f"OpenML's {source.name} (id {source.openml_id}) has {_shape(*actual)}; "
            f"expected {_shape(*expected)}; it was changed there; put the file {source.file} into a "
            "folder DIR, and give --data-dir DIR"
        )


def read_digest_note(path: Path) -> str | None:
    """Return the checksum a download was written with; None if the file was not downloaded."""
    note = _note(path)
    return note.read_text().strip() if note.is_file() else None


def write_download(frame: "pd.DataFrame", path: Path) -> Path:
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
    return path.with_name(path.name + ".sha256")


def _shape(rows: int, features: int, counts: tuple[int, ...]) -> str:
    return f"{rows} rows, {features} features and classes of {', '.join(map(str, counts))} rows"


def from_openml(number: str, *, fetch: Callable[..., Any] = fetch_openml) -> "pd.DataFrame":
    """Download features and the column `target` from OpenML."""
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
    return arrange_columns(bunch.data, bunch.target)


def fetch_pmlb(name: str) -> Any:
    import pmlb

    return pmlb.fetch_data(name)


def from_pmlb(name: str, *, fetch: Callable[[str], Any] = fetch_pmlb) -> "pd.DataFrame":
    """Download features and the column `target` with the package `pmlb`."""
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


TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A collection of datasets that can be downloaded by name."""

    prefix: str  # of a dataset's name, before a colon; its files are in a folder of this name
    names: str  # regular expression for the names of its datasets
    example: str
    fetch: Callable[[str], "pd.DataFrame"]  # features and the column `target`, by name


COLLECTIONS: dict[str, Collection] = {
    collection.prefix: collection
    for collection in (
        Collection(prefix="pmlb", names=r"[\w.-]*\w", example="pmlb:letter", fetch=from_pmlb),
        Collection(prefix="openml", names=r"[1-9][0-9]*", example="openml:61", fetch=from_openml),
    )
}


def is_collected(name: str) -> bool:
    prefix, colon, _ = name.partition(":")
    return bool(colon) and prefix in COLLECTIONS


def read_collected(name: str, data_dir: Path | None) -> Table:
    """Return the raw rows of a dataset in a collection, from a file if there is one, else a download."""
    prefix, _, item = name.partition(":")
    collection = COLLECTIONS[prefix]
    if not re.fullmatch(collection.names, item):
        raise DatasetError(
            f"{name!r} is not the name of a dataset of {prefix}; write it as in {collection.example}"
        )
    file = f"{prefix}/{item}.parquet"
    check_folder(data_dir, file)
    table = read_file(_find_or_fetch(collection, item, file, data_dir), TARGET)
    is_plain = table.reading is None or not (table.reading.settings or table.reading.suspects)
    return replace(table, name=name, reading=None if is_plain else table.reading)


def _find_or_fetch(collection: Collection, item: str, file: str, data_dir: Path | None) -> Path:
    """Return the path of a dataset's file; download it into the cache if there is none."""
    if data_dir is not None and (path := data_dir / file).is_file():
        return path
    path = cache_folder() / file
    if path.is_file():
        digest = read_digest_note(path)
        return path if digest is None else check_digest(path, digest)
    return write_download(collection.fetch(item), path)


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
    The last two datasets are cached, so that trials in one process share read-only arrays.
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
    """Return a dataset; `here` is part of the cache key, because relative paths depend on it."""
    if preprocessing not in PREPROCESSINGS:
        raise DatasetError(no_such("preprocessing", preprocessing, PREPROCESSINGS))
    if find_spec("pandas") is None:
        raise DatasetError("datasets need pandas; run pip install 'rbmle[experiments]'")
    dataset = preprocess(_table(name, target, drop, data_dir), preprocessing)
    dataset.X.flags.writeable = False  # trials share it
    dataset.labels.flags.writeable = False
    return dataset


def _table(name: str, target: str | None, drop: tuple[str, ...], data_dir: Path | None) -> Table:
    if name in DATASETS or is_collected(name):
        if target is not None or drop:
            what = "a target" if target is not None else "columns to drop"
            raise DatasetError(
                f"{name} is a published dataset, and {what} can be given only for a file of your own; leave "
                "that out"
            )
        if is_collected(name):
            return read_collected(name, data_dir)
        return digits_table() if name == "digits" else _read_registered(DATASETS[name], data_dir)
    path = Path(name).expanduser()
    if not is_table(path) and not path.is_file() and "/" not in name and "\\" not in name:
        raise DatasetError(
            no_such("dataset", name, DATASETS, ", pmlb:NAME and openml:ID")
            + f"; a file of your own must end in {EXPECTED}"
        )
    if target is None:
        raise DatasetError(
            f"{name!r} needs a target, the column that holds the class: give --target COLUMN (in Python, "
            "target='COLUMN')"
        )
    return read_file(path, target, drop)


def _read_registered(source: Source, data_dir: Path | None) -> Table:
    import pandas as pd

    path = find_file(source, data_dir)
    frame = pd.read_parquet(path)
    labels, classes = encode(frame.pop("target"))
    return Table(name=source.name, frame=frame, labels=labels, classes=classes, digest=sha256(path))


def digits_table() -> Table:
    from sklearn.datasets import load_digits  # it takes a second to import

    pixels, labels = load_digits(return_X_y=True, as_frame=True)
    pixels, labels = pixels.astype(np.uint8), labels.to_numpy(np.int64)
    content = pixels.to_numpy().tobytes() + labels.astype(np.uint8).tobytes()
    return Table(
        name="digits",
        frame=pixels,
        labels=labels,
        classes=tuple(str(digit) for digit in range(10)),
        digest=hashlib.sha256(content).hexdigest(),
    )


def digits() -> Dataset:
    """Return 1,797 digits, each brought to length 2, and a constant."""
    return preprocess(digits_table(), "standard")
