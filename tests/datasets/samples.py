"""Small data for tests, and where they come from."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rbmle.datasets import Source, Table, load
from rbmle.datasets.preprocessing import preprocess

TINY = Source(
    name="tiny",
    title="Tiny",
    file="tiny.parquet",
    rows=3,
    features=4,
    counts=(1, 2),
    sha256="0" * 64,
    licence="none",
    citation="none",
    doi="none",
    openml_id=7,
    openml_version=1,
    shipped=False,
)


def fetch_tiny(**request: Any) -> Any:
    """Answer as scikit-learn does, with integers as floats and as categories."""
    data = pd.DataFrame(
        {
            "pixel": [0.0, 255.0, 3.0],
            "height": [0.5, 1.0, 2.0],
            "flag": pd.Categorical(["0", "1", "0"]),
            "word": pd.Categorical(["a", None, "b"]),
        }
    )
    return SimpleNamespace(data=data, target=pd.Series(pd.Categorical(["10", "2", "10"])))


def offline(*_: Any, **__: Any) -> Any:
    """Fail as libraries do without a network."""
    raise URLError("no route to host")


def check(source: Source, data_dir: Path | None, preprocessing: str) -> None:
    dataset = load(source.name, preprocessing=preprocessing, data_dir=data_dir)
    assert dataset.digest == source.sha256
    assert dataset.preprocessing == preprocessing
    assert np.bincount(dataset.labels).tolist() == list(source.counts)
    assert dataset.classes == source.classes
    assert len(dataset.X) == source.rows
    unit = {"paper": source.features, "paired": 2 * source.features}
    assert dataset.X.shape[1] == unit.get(preprocessing, dataset.X.shape[1])
    squares = np.einsum("ij,ij->i", dataset.X, dataset.X)
    length = 4.5 if preprocessing not in unit and source.name in ("mnist", "digits") else 1.0
    assert squares.mean(dtype=np.float64) == pytest.approx(length, abs=1e-5)
    if preprocessing not in unit:
        np.testing.assert_allclose(dataset.X[:, -1], 0.5**0.5, rtol=1e-6)
    assert dataset.X.dtype == np.float32
    assert dataset.X.flags.c_contiguous


def table(**columns: Any) -> Table:
    frame = pd.DataFrame(columns)
    labels = np.arange(len(frame)) % 2
    return Table(name="t", frame=frame, labels=labels, classes=("a", "b"), digest="")


def standard(**columns: Any) -> np.ndarray:
    """Return the features before the last step, without the constant."""
    rows = len(next(iter(columns.values())))
    X = preprocess(table(**columns, unit=np.arange(rows) % 2), "standard").X
    return X[:, :-1] / X[1, -2]


def soft(z: np.ndarray) -> np.ndarray:
    """Return z/√(1 + (z/3)²)."""
    return z / (1 + (z / 3) ** 2) ** 0.5


def packed(path: Path, content: bytes) -> Path:
    """Write a file that is compressed as its ending says."""
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(content))
        case ".bz2":
            path.write_bytes(bz2.compress(content))
        case ".xz":
            path.write_bytes(lzma.compress(content))
        case ".zst":
            path.write_bytes(pa.compress(content, codec="zstd", asbytes=True))
        case ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(path.stem, content)
    return path


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return path
