"""The datasets that are known by name."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle.core.errors import RBMLEError
from rbmle.datasets import DATASETS, PREPROCESSINGS, DatasetError, digits, load
from rbmle.datasets.catalog import sha256
from rbmle.datasets.load import SHIPPED
from tests.datasets.samples import check

PAPER = ["adult", "covertype", "magic", "mnist", "mushroom", "shuttle"]
LARGE = ("covertype", "mnist")
SMALL = [name for name in DATASETS if name not in LARGE]


def test_the_registry_has_the_six_of_the_paper_and_digits() -> None:
    assert list(DATASETS) == [*PAPER, "digits"]
    for name, source in DATASETS.items():
        assert source.name == name
        assert source.rows == sum(source.counts)
        assert source.url == f"https://doi.org/{source.doi}"
        assert "CC BY" in source.licence


@pytest.mark.parametrize("preprocessing", PREPROCESSINGS)
@pytest.mark.parametrize("name", SMALL)
def test_a_shipped_dataset_is_the_published_one(name: str, preprocessing: str) -> None:
    check(DATASETS[name], None, preprocessing)


@pytest.mark.parametrize("preprocessing", PREPROCESSINGS)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_dataset_is_the_published_one(name: str, preprocessing: str) -> None:
    folder = Path(os.environ.get("RBMLE_DATA", "no such folder"))
    if not (folder / f"{name}.parquet").is_file():
        pytest.skip(f"RBMLE_DATA names no folder that has {name}.parquet")
    check(DATASETS[name], folder, preprocessing)


def test_shipped_files_have_their_checksum_and_their_authors_named() -> None:
    page = (SHIPPED / "ATTRIBUTION.md").read_text()
    shipped = [s for s in DATASETS.values() if s.shipped and s.file]
    assert [s.name for s in shipped] == ["adult", "magic", "mushroom", "shuttle"]
    for source in shipped:
        assert source.file
        assert sha256(SHIPPED / source.file) == source.sha256
        assert source.file in page
        assert source.url in page


def test_digits_are_the_dataset_of_that_name() -> None:
    np.testing.assert_array_equal(digits().X, load("digits").X)
    assert digits().X.shape == (1797, 62)  # three pixels are black in all; a constant is added


def test_a_dataset_is_loaded_once_and_cannot_be_changed() -> None:
    dataset = load("magic")
    assert load("magic") is dataset
    with pytest.raises(ValueError, match="read-only"):
        dataset.X[0, 0] = 1.0


def test_the_repr_of_a_dataset_is_short() -> None:
    assert len(repr(load("magic"))) < 200
    assert load("magic").classes == 2


def test_the_import_is_light() -> None:
    code = "import sys, rbmle.datasets; print({'pandas', 'sklearn', 'pyarrow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "iris",
            {},
            "there is no dataset 'iris'; there are adult, covertype, magic, mnist, mushroom",
        ),
        (
            "magic",
            {"preprocessing": "log"},
            "there is no preprocessing 'log'; there are standard, online, paper",
        ),
        ("magic", {"target": "class"}, "a target can be given only for a file of your own"),
        ("magic", {"drop": ["size"]}, "columns to drop can be given only for a file of your own"),
        ("mine.csv", {}, "'mine.csv' needs a target"),
        ("mine.csv", {"target": "y"}, "'mine.csv' does not exist"),
        ("a/b", {"target": "y"}, "'a/b' does not exist"),
        ("mnist", {}, "URLError.*put the file mnist.parquet into.*--data-dir DIR.*RBMLE_DATA=DIR"),
        ("mnist", {"data_dir": Path("nowhere")}, "folder 'nowhere' does not exist.*mnist.parquet"),
    ],
)
def test_a_failed_load_says_why(
    name: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RBMLE_DATA", raising=False)
    with pytest.raises(DatasetError, match=message) as caught:
        load(name, **options)
    assert isinstance(caught.value, RBMLEError)
    assert "\n" not in str(caught.value)
