"""Where a dataset's file is: a folder of the user's, this package, the cache, or OpenML."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbmle.datasets.base import Source
from rbmle.datasets.digest import sha256
from rbmle.datasets.download import download, openml, record
from rbmle.datasets.errors import DatasetError

SHIPPED = Path(__file__).parent / "files"


def find(source: Source, data_dir: Path | None, *, fetch: Callable[..., Any] = openml) -> Path:
    """Return the first file there is, its checksum tested; download it if there is none.

    `fetch` stands in for scikit-learn's `fetch_openml`.
    """
    if source.file is None:
        raise DatasetError(
            f"{source.name} has no file, as it comes with scikit-learn; call load({source.name!r}) instead"
        )
    check_folder(data_dir, source.file)
    cache = cache_folder()
    for folder in (data_dir, SHIPPED, cache):
        if folder is not None and (path := folder / source.file).is_file():
            wanted = record(path) if folder == cache else source.sha256
            return checked(path, wanted or source.sha256)
    return download(source, cache, fetch=fetch)


def cache_folder() -> Path:
    """Return the folder for downloads of this user; it need not exist."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "rbmle" / "datasets"


def check_folder(data_dir: Path | None, file: str) -> None:
    """Raise if the folder that should have a file does not exist."""
    if data_dir is not None and not data_dir.is_dir():
        raise DatasetError(
            f"the data folder {str(data_dir)!r} does not exist or is not a folder; create it, or give "
            f"--data-dir (or RBMLE_DATA) a folder that has {file}"
        )


def checked(path: Path, wanted: str) -> Path:
    """Return the path, or raise if the file has another checksum."""
    if (digest := sha256(path)) != wanted:
        raise DatasetError(
            f"{str(path)!r} has the sha256 {digest[:12]}…; expected {wanted[:12]}…; "
            "it is damaged or a different file: delete it, and get it again"
        )
    return path
