"""Where data come from, what a user's file may look like, and the numbers a policy sees."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import RBMLEError
from rbmle.datasets import (
    DATASETS,
    PREPROCESSINGS,
    DatasetError,
    Source,
    Table,
    digits,
    load,
    online,
)
from rbmle.datasets.digest import sha256
from rbmle.datasets.lookup import SHIPPED, find
from rbmle.datasets.preprocessing import preprocess
from rbmle.datasets.standard import standard as encoded
from rbmle.datasets.user_file import read
from rbmle.environments import Classification
from rbmle.experiments.store import Store

PAPER = ["adult", "covertype", "magic", "mnist", "mushroom", "shuttle"]
LARGE = ("covertype", "mnist")
SMALL = [name for name in DATASETS if name not in LARGE]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    return tmp_path / "cache" / "rbmle" / "datasets"


# The registry.


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


def test_a_dataset_says_little_of_itself() -> None:
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
        ("magic", {"target": "class"}, "a target can be given for a file of your own only"),
        ("magic", {"drop": ["size"]}, "columns to drop can be given for a file of your own only"),
        ("mine.csv", {}, "'mine.csv' needs a target"),
        ("mine.csv", {"target": "y"}, "'mine.csv' does not exist"),
        ("a/b", {"target": "y"}, "'a/b' does not exist"),
        ("mnist", {}, "URLError.*put the file mnist.parquet into.*--data-dir DIR.*RBMLE_DATA=DIR"),
        ("mnist", {"data_dir": Path("nowhere")}, "folder 'nowhere' does not exist.*mnist.parquet"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    name: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RBMLE_DATA", raising=False)
    with pytest.raises(DatasetError, match=message) as caught:
        load(name, **options)
    assert isinstance(caught.value, RBMLEError)
    assert "\n" not in str(caught.value)


# Where a file is looked for.


def test_the_environment_names_a_folder_where_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RBMLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match="nowhere' does not exist"):
        load("mnist")


def test_the_users_folder_comes_first_then_the_package(tmp_path: Path) -> None:
    magic = DATASETS["magic"]
    assert find(magic, None) == SHIPPED / "magic.parquet"
    assert find(magic, tmp_path) == SHIPPED / "magic.parquet"  # the folder has none
    (tmp_path / "magic.parquet").write_bytes((SHIPPED / "magic.parquet").read_bytes())
    assert find(magic, tmp_path) == tmp_path / "magic.parquet"


def test_then_the_cache_and_last_the_network(cache: Path) -> None:
    path = find(TINY, None, fetch=fetch_tiny)
    assert path == cache / "tiny.parquet"
    assert find(TINY, None, fetch=offline) == path
    path.unlink()
    with pytest.raises(DatasetError, match="cannot download tiny from OpenML"):
        find(TINY, None, fetch=offline)


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "magic.parquet").write_bytes(b"something else")
    with pytest.raises(DatasetError, match=r"sha256 \w{12}…; expected aaa2ee1390d9….*delete it"):
        find(DATASETS["magic"], tmp_path)


def test_a_download_gets_our_layout_and_its_own_checksum(cache: Path) -> None:
    path = find(TINY, None, fetch=fetch_tiny)
    frame = pd.read_parquet(path)
    assert list(frame.columns) == ["pixel", "height", "flag", "word", "target"]
    assert [kind.name for kind in frame.dtypes[:3]] == ["uint8", "float64", "uint8"]
    assert frame["word"].dtype.name == "category"
    assert frame["target"].tolist() == [10, 2, 10]  # numbers, so 2 comes before 10
    names = sorted(file.name for file in cache.iterdir())
    assert names == ["tiny.parquet", "tiny.parquet.sha256"]
    assert (cache / "tiny.parquet.sha256").read_text().strip() == sha256(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="damaged"):
        find(TINY, None, fetch=offline)


def test_a_file_put_into_the_cache_by_hand_has_the_published_checksum(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.parquet").write_bytes(b"by hand")
    by_hand = replace(TINY, sha256=sha256(cache / "tiny.parquet"))
    assert find(by_hand, None, fetch=offline) == cache / "tiny.parquet"
    with pytest.raises(DatasetError, match="damaged or a different file"):
        find(TINY, None, fetch=offline)


@pytest.mark.parametrize("change", [{"rows": 4}, {"features": 5}, {"counts": (2, 1)}])
def test_a_download_that_has_changed_is_refused(cache: Path, change: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match="3 rows, 4 features and classes of 1, 2 rows; expected"):
        find(replace(TINY, **change), None, fetch=fetch_tiny)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(
        DatasetError, match=r"cannot write tiny\.parquet to the cache.*XDG_CACHE_HOME"
    ):
        find(TINY, None, fetch=fetch_tiny)


def test_the_default_download_asks_openml_for_the_version_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = {}

    def fetch(**request: Any) -> Any:
        asked.update(request)
        return fetch_tiny(**request)

    monkeypatch.delenv("RBMLE_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(DatasetError, match="expected 581012 rows, 54 features"):
        load("covertype")
    assert asked == {"data_id": 1596, "as_frame": True, "parser": "auto"}


# Preprocessing, by hand. The column `unit` is 0/1, and shows by what all rows were multiplied.


def test_numbers_are_centred_at_the_median_and_scaled_by_their_quartiles() -> None:
    """Median 2, quartiles 1 and 3: z = (x − 2) / (2 / 1.349), and then the soft bound."""
    X = standard(a=[0, 1, 2, 3, 4])
    np.testing.assert_allclose(X[:, 0], soft(1.349 / 2 * np.array([-2, -1, 0, 1, 2])), rtol=1e-6)


def test_numbers_are_also_given_by_rank() -> None:
    """Shares 0.1, 0.3, 0.5, 0.7, 0.9, less ½, times √12, whatever the distances are."""
    for last in (4, 1e300):
        X = standard(a=[2, 0, 3, 1, last])
        np.testing.assert_allclose(
            X[:, 1], 12**0.5 * np.array([0, -0.4, 0.2, -0.2, 0.4]), rtol=1e-6
        )


def test_equal_numbers_share_the_middle_of_their_ranks() -> None:
    """Four 5s have the shares 0 … 0.8, middle 0.4; the 9 has 0.8 … 1, middle 0.9."""
    X = standard(a=[5, 5, 9, 5, 5])
    np.testing.assert_allclose(
        X[:, 1], 12**0.5 * np.array([-0.1, -0.1, 0.4, -0.1, -0.1]), rtol=1e-6
    )


def test_ranks_of_many_numbers_have_the_variance_one() -> None:
    X = standard(a=np.random.default_rng(0).normal(size=1000))
    assert X[:, 1].var() == pytest.approx(1.0, abs=1e-4)
    assert 1.72 < X[:, 1].max() < 3**0.5


@pytest.mark.parametrize("huge", [1e10, 1e300, np.finfo(np.float64).max])
def test_outliers_are_bounded_by_three(huge: float) -> None:
    z = soft(np.array([-1.349, -0.6745, 0, 0.6745]))
    np.testing.assert_allclose(standard(a=[0, 1, 2, 3, huge])[:, 0], [*z, 3], rtol=1e-6)
    np.testing.assert_allclose(standard(a=[0, -1, -2, -3, -huge])[:, 0], [*-z, -3], rtol=1e-6)


def test_the_soft_bound_keeps_the_order() -> None:
    """A clip makes all of 3 and beyond one number; 4 and 10 deviations stay two."""
    steps = standard(a=np.linspace(-10, 10, 101) ** 3)
    assert (np.diff(steps[:, 0]) > 0).all()
    wild = standard(a=np.sort(np.random.default_rng(0).standard_cauchy(10_000)) ** 5)
    assert (np.diff(wild[:, 0]) >= 0).all()
    assert (np.diff(wild[:, 1]) > 0).all()
    assert np.abs(wild[:, 0]).max() <= 3 * (1 + 1e-6)


def test_equal_quartiles_give_way_to_the_standard_deviation() -> None:
    """Mean 0.8, variance 2.56, deviation 1.6: z = 4 / 1.6 = 2.5, and 2.5/√(1 + 25/36) = 15/√61."""
    X = standard(a=[0, 0, 0, 0, 4])
    np.testing.assert_allclose(X[:, 0], [0, 0, 0, 0, 15 / 61**0.5], rtol=1e-6)


def test_a_missing_number_is_zero_by_value_and_by_rank_and_is_shown() -> None:
    """Median, scale and ranks are those of the others."""
    X = standard(a=[0, 1, np.nan, 2, 3, 4], b=[0.0, 1, 1, np.nan, 0, 1])
    z = soft(1.349 / 2 * np.array([1, 2]))
    np.testing.assert_allclose(X[:, 0], [-z[1], -z[0], 0, 0, z[0], z[1]], rtol=1e-6)
    np.testing.assert_allclose(X[:, 1], 12**0.5 * np.array([-0.4, -0.2, 0, 0, 0.2, 0.4]), rtol=1e-6)
    np.testing.assert_array_equal(X[:, 2], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(X[:, 3], [0, 1, 1, 0, 0, 1])
    np.testing.assert_array_equal(X[:, 4], [0, 0, 0, 1, 0, 0])
    assert X.shape == (6, 6)


def test_categories_are_one_hot_and_missing_is_one_of_them() -> None:
    X = standard(c=["b", "?", "a", None, "missing", "b"])
    np.testing.assert_array_equal(
        X[:, :3], [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    )


def test_zeros_and_ones_stay_and_constants_go() -> None:
    X = standard(a=[0, 1, 1], b=[7, 7, 7], c=["x", "x", "x"], d=[True, False, False], e=[None] * 3)
    np.testing.assert_array_equal(X[:, :2], [[0, 1], [1, 0], [1, 0]])
    assert X.shape == (3, 3)


def test_a_constant_with_gaps_is_only_its_gaps() -> None:
    np.testing.assert_array_equal(standard(a=[1, np.nan, 1])[:, 0], [0, 1, 0])


def test_a_constant_has_half_of_the_mean_squared_length_and_the_features_the_other() -> None:
    """Of 0, 1, 1, 1 the mean square is ¾, and √(½ / ¾) = √⅔."""
    X = preprocess(table(a=[0, 1, 1, 1]), "standard").X
    np.testing.assert_allclose(X[:, 0], (2 / 3) ** 0.5 * np.array([0, 1, 1, 1]), rtol=1e-6)
    np.testing.assert_allclose(X[:, 1], [0.5**0.5] * 4, rtol=1e-7)
    assert X.shape == (4, 2)


def test_all_features_have_one_scale() -> None:
    """Rows keep their different lengths."""
    X = preprocess(table(a=[0, 1, 2, 3, 4], b=[0, 0, 0, 1, 1]), "standard").X
    z, share = soft(1.349 / 2 * np.array([1, 2])), 12**0.5 * np.array([0.2, 0.4])
    total = 2 * (z**2).sum() + 2 * (share**2).sum() + 2
    scale = (total / 5 * 2) ** -0.5
    np.testing.assert_allclose(X[4], [scale * z[1], scale * share[1], scale, 0.5**0.5], rtol=1e-6)
    np.testing.assert_allclose(X[2], [0, 0, 0, 0.5**0.5], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_images_have_length_two(kind: type) -> None:
    pixels: np.ndarray = np.random.default_rng(0).integers(0, 256, (30, 70)).astype(kind)
    pixels[0, 0] = 0
    pixels[:, 5] = 0
    pixels[:, 6] //= 32  # a dark one stays dark
    pixels[7] = 0  # a black image stays black
    X = preprocess(table(**{f"p{i}": pixels[:, i] for i in range(70)}), "standard").X
    lit = np.delete(pixels, 5, axis=1).astype(float)
    length = np.maximum((lit**2).sum(axis=1, keepdims=True) ** 0.5, 1)
    np.testing.assert_allclose(X[:, :-1], 2 * lit / length, rtol=1e-6)
    np.testing.assert_allclose(X[:, -1], 0.5**0.5, rtol=1e-7)


def test_many_integers_of_many_scales_are_no_image() -> None:
    X = standard(**{f"c{i}": [0, 1, 2, 3, 250 if i < 9 else 4] for i in range(70)})
    last = X[:, 2 * 69]  # each is there by value and by rank
    np.testing.assert_allclose(last, soft(1.349 / 2 * np.array([-2, -1, 0, 1, 2])), rtol=1e-6)


def test_paired_rows_are_those_of_the_paper_twice_at_the_same_length() -> None:
    X = preprocess(table(a=[3.0, 1.0], c=["z", "y"]), "paired").X
    np.testing.assert_allclose(X[0], np.array([3, 1, 3, 1]) / 20**0.5, rtol=1e-6)
    np.testing.assert_allclose(X[1], np.array([1, 0, 1, 0]) / 2**0.5, rtol=1e-6)


def test_the_paper_has_codes_minus_ones_and_rows_of_length_one() -> None:
    X = preprocess(
        table(
            a=[3.0, np.nan, 0.0, 1e300],
            c=["z", "y", "x", "?"],
            d=pd.Categorical(
                ["q", "missing", "p", None], categories=["unused", "q", "p", "missing"]
            ),
        ),
        "paper",
    ).X
    np.testing.assert_allclose(
        X,
        [
            np.array([3, 2, 1]) / 14**0.5,
            np.array([-1, 1, -1]) / 3**0.5,
            np.array([0, 0, 0]),
            np.array([1, 0, 0]),
        ],
        rtol=1e-6,
    )


@pytest.mark.parametrize("method", PREPROCESSINGS)
def test_labels_have_no_say_in_features(method: str) -> None:
    one = table(a=[0, 1, 5, 3], c=["x", "y", "y", "z"])
    other = replace(one, labels=one.labels[::-1])
    X = preprocess(one, method).X
    np.testing.assert_array_equal(X, preprocess(other, method).X)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous


def test_online_features_are_those_of_the_rows_so_far() -> None:
    """Fitted in rounds 0, 1, 2 and 4, to what has come and the row at hand."""
    frame = table(a=[0, 1, 2, 3, 4], c=["x", "y", "y", "x", "y"]).frame
    order = np.array([2, 0, 4, 1, 3])
    X = online(frame, order)
    so_far = frame.iloc[order[:3]]  # 2, 0, 4, when row 4 comes
    np.testing.assert_allclose(X[4, :2], encoded(so_far)[2, :2], rtol=1e-6)
    np.testing.assert_allclose(X[3], encoded(frame)[3], rtol=1e-6)  # the last one has seen all
    assert X[2, :2].tolist() == [0, 0]  # nothing is known of the first one's size
    assert X.shape == encoded(frame).shape
    later = frame.assign(a=[0, -50, 2, 3, 4])  # row 1 comes fourth
    np.testing.assert_allclose(online(later, order)[[2, 0, 4]], X[[2, 0, 4]], rtol=1e-6)


def test_online_features_of_images_need_nothing_fitted() -> None:
    images = load("digits", preprocessing="online")
    assert images.frame is not None
    order = np.arange(len(images.labels))[::-1]
    np.testing.assert_array_equal(online(images.frame, order), images.X)


def test_an_environment_prepares_rows_as_its_seed_orders_them() -> None:
    world = Classification(dataset="magic", preprocessing="online")
    rounds = [world.round(3, seed=seed).x for seed in (0, 1, 0)]
    np.testing.assert_array_equal(rounds[0], rounds[2])
    assert len(rounds[0]) == world.features
    assert world.settings["preprocessing"] == "online"
    assert not np.array_equal(rounds[0], Classification(dataset="magic").round(3, seed=0).x)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 1, 1]}, "no feature varies: all 1 columns are constant"),
        ({"a": [1.0, np.inf, 2.0]}, "column 'a' is inf in row 2; expected finite"),
        (
            {"key": [f"row {i}" for i in range(1001)]},
            "column 'key' has 1001 categories.*--drop key",
        ),
    ],
)
def test_features_that_cannot_be_scaled_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        preprocess(table(**columns), "standard")


# Files of the user's own.


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_users_file_becomes_a_dataset(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame(
        {
            "size": [1.5, 2.5, None, 4.0],
            "class": ["no", "yes", "no", "maybe"],
            "colour": ["red", "?", None, "blue"],
        }
    )
    path = tmp_path / f"mine{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    raw = read(path, "class")
    assert raw.classes == ("maybe", "no", "yes")
    assert raw.labels.tolist() == [1, 2, 1, 0]
    assert list(raw.frame.columns) == ["size", "colour"]
    dataset = load(str(path), target="class")
    assert (dataset.name, dataset.classes, dataset.digest) == ("mine", 3, sha256(path))
    # size by value and by rank, is it missing, blue, red, missing, the constant
    assert dataset.X.shape == (4, 7)
    np.testing.assert_array_equal(dataset.X[:, 5] > 0, [False, True, True, False])


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ("10,9,10", ("9", "10")),
        ("2.0,1.0,2.0", ("1", "2")),
        ("2.0,0.5,2.0", ("0.5", "2")),
        ("True,False,True", ("False", "True")),
        ("b,a,b", ("a", "b")),
    ],
)
def test_classes_stand_in_order(tmp_path: Path, values: str, classes: tuple[str, ...]) -> None:
    path = written(
        tmp_path, "y,x\n" + "".join(f"{v},{i}\n" for i, v in enumerate(values.split(",")))
    )
    raw = read(path, "y")
    assert raw.classes == classes
    assert raw.labels.tolist() == [1, 0, 1]


def test_spaces_after_commas_and_a_byte_order_mark_are_no_harm(tmp_path: Path) -> None:
    raw = read(written(tmp_path, "\ufeffx, y\n1, a\n?, b\n"), "y")
    assert raw.classes == ("a", "b")
    np.testing.assert_array_equal(raw.frame["x"], [1.0, np.nan])


def test_a_relative_path_means_the_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, rows in (("one", "1,a\n2,b\n"), ("two", "1,a\n2,b\n3,c\n")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, "x,y\n" + rows)
        monkeypatch.chdir(tmp_path / folder)
        assert len(load("mine.csv", target="y").X) == rows.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a header"),
        ("\n\n", "is empty; expected a header"),
        ("x,y\n", "has no rows"),
        ("x,z\n1,2\n", "no column 'y'; its columns are 'x', 'z'; give one of them"),
        ("x:y\n1:2\n", "columns are 'x:y'; give .* separated by commas, semicolons, tabs or"),
        ("y\na\nb\n", "no column left besides the target 'y'"),
        ("1,2\n3,4\n", "the first line must hold the names of the columns"),
        ("x,y\n1,a\n2,b,c\n", r"Expected 2 fields in line 3, saw 3"),
        ("x,y\n1,a,7\n2,b,8\n", "rows with more fields than its header"),
        ("y,x\na,1\nb\n", "line 3 of .* has 1 fields; expected 2"),
        (f'x,y\n1,a\n,"{"b" * 200_000}"\n', "not a well-formed table .field larger.*quotes"),
        ('x,y\n1,"a\n2,b\n', "is not a well-formed table .*EOF inside string"),
        ("x,y\n1,a\n2,a\n", "'a' in every row; expected at least two classes"),
        ("x,y\n1,a\n2,\n3,?\n4,b\n", "'y' of .* is missing in 2 rows, first in row 2.*delete"),
        (
            "x,y\n" + "".join(f"{i % 2},{i / 7}\n" for i in range(1001)),
            "1001 classes; expected at most 1000; it is probably a number",
        ),
    ],
)
def test_a_csv_file_that_is_wrong_gets_one_clear_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DatasetError, match=message) as caught:
        read(path, "y")
    assert "\n" not in str(caught.value)
    assert "mine.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.parquet", b"no parquet", "cannot be read as Parquet"),
        ("mine.csv", b"x,y\n1,\xff\n", "is not UTF-8 text .byte 0xff.*; save it"),
        ("mine.xlsx", b"x", "ends in '.xlsx'; expected .csv, .tsv.*saving it as CSV"),
        ("mine.parquet", b"", "is empty"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read(tmp_path / name, "y")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is a folder"):
        read(tmp_path, "y")


def test_a_column_of_lists_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"x": [[1, 2], [3]], "y": ["a", "b"]}).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(DatasetError, match=r"column 'x' of .* holds ndarray values.*--drop x"):
        read(tmp_path / "mine.parquet", "y")


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_a_compressed_file_is_read_as_the_plain_one(tmp_path: Path, ending: str) -> None:
    rows = "x,y\n" + "".join(f"{i / 7},{'ab'[i % 2]}\n" for i in range(50))
    path = packed(tmp_path / f"mine.csv{ending}", rows.encode())
    found = load(str(path), target="y")
    plain = load(str(written(tmp_path, rows)), target="y")
    assert found.name == plain.name == "mine"
    np.testing.assert_array_equal(found.X, plain.X)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, ending: str) -> None:
    random = np.random.default_rng(0).random((20_000, 2))
    rows = b"x,y\n" + b"".join(b"%f,%f\n" % (a, b) for a, b in random)
    path = packed(tmp_path / f"mine.csv{ending}", rows)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DatasetError, match=f"mine.csv{ending}' cannot be (unpacked|read)"):
        read(path, "y")
    path.write_bytes(b"not packed at all, but long enough to be read as something")
    with pytest.raises(DatasetError, match=f"mine.csv{ending}' cannot be (unpacked|read)"):
        read(path, "y")


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mine.csv.zip", "w") as archive:
        archive.writestr("one.csv", "x,y\n")
        archive.writestr("two.csv", "x,y\n")
    with pytest.raises(DatasetError, match="holds 2 files; expected one"):
        read(tmp_path / "mine.csv.zip", "y")


@pytest.mark.parametrize(
    ("name", "separator", "named"),
    [
        ("mine.csv", ";", "semicolons"),
        ("mine.tsv", "\t", "tabs"),
        ("mine.txt", "|", "vertical bars"),
    ],
)
def test_the_separator_is_found_in_the_header(
    tmp_path: Path, name: str, separator: str, named: str
) -> None:
    path = tmp_path / name
    path.write_text("size, kg;colour;y\n1.5;red;a\n2.5;blue;b\n".replace(";", separator))
    raw = read(path, "y")
    assert list(raw.frame.columns) == ["size, kg", "colour"]
    assert raw.reading is not None
    assert raw.reading.settings == {"separator": named}
    assert f"columns separated by {named}" in raw.reading.notice


def test_decimal_commas_are_read_between_semicolons(tmp_path: Path) -> None:
    raw = read(written(tmp_path, "x;y\n1,5;a\n-2,25;b\n"), "y")
    assert raw.frame["x"].tolist() == [1.5, -2.25]
    assert raw.reading is not None
    assert raw.reading.settings == {"separator": "semicolons", "decimal": "comma"}
    assert raw.reading.notice == (
        "mine.csv: 2 rows; target y; columns separated by semicolons, decimal commas"
    )


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2024-02-29", "1969-12-31"], [19782, -1]),
        (["2024/2/29", "1969/12/31"], [19782, -1]),
        (["29.2.2024", "31.12.1969"], [19782, -1]),
        (["29/02/2024", "01/02/1970"], [19782, 31]),
        (["02/29/2024", "02/01/1970"], [19782, 31]),
        (["2024-02-29T06:00:00Z", "1970-01-01 12:00"], [19782.25, 0.5]),
        (["2024-02-29 06:00:00.25+02:00", "1970-01-01 12:00-0300"], [19782 + 1 / 6, 0.625]),
        (["9999-12-31", "0001-01-01"], [2932896, -719162]),
    ],
)
def test_dates_become_numbers(tmp_path: Path, texts: list[str], days: list[float]) -> None:
    """Days are counted from 1970; 29 February 2024 was a Thursday."""
    path = written(tmp_path, "when,y\n" + "".join(f"{text},{text}\n" for text in texts) + ",c\n")
    raw = read(path, "y")
    np.testing.assert_allclose(raw.frame["when (day)"], [*days, np.nan], rtol=1e-12)
    has_hours = any(":" in text for text in texts)
    names = ["when (day)", "when (month)", "when (weekday)", "when (hour)"]
    assert list(raw.frame.columns) == names[: 3 + has_hours]
    if "2024" in texts[0]:
        assert raw.frame["when (month)"].iloc[0] == "02"
        assert raw.frame["when (weekday)"].iloc[0] == "4"
    assert raw.frame["when (month)"].isna().tolist() == [False, False, True]
    assert raw.reading is not None
    assert raw.reading.settings == {"dates": ["when"]}
    assert "when read as a date" in raw.reading.notice


def test_dates_of_parquet_files_are_read_alike(tmp_path: Path) -> None:
    days = pd.to_datetime(["2024-02-29 06:00", "1970-01-02 00:00"])
    frame = pd.DataFrame(
        {
            "plain": days,
            "zoned": days.tz_localize("Europe/Paris"),
            "day": days.date,
            "took": days - days[1],
            "y": ["a", "b"],
        }
    )
    frame.to_parquet(tmp_path / "mine.parquet")
    raw = read(tmp_path / "mine.parquet", "y")
    assert raw.frame["plain (day)"].tolist() == [19782.25, 1]
    assert raw.frame["zoned (hour)"].tolist() == [5, 23]
    assert raw.frame["day (day)"].tolist() == [19782, 1]
    assert raw.frame["took"].tolist() == [19781.25 * 86400, 0]
    assert raw.reading is not None
    assert raw.reading.dates == ("plain", "zoned", "day")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("03/04/2024", "'03/04/2024', in which day and month.*YYYY-MM-DD.*--drop when"),
        ("2024-02-30", "'2024-02-30', which is not in the calendar.*--drop when"),
    ],
)
def test_dates_that_are_unclear_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, f"when,y\n{text},a\n{text},b\n")
    with pytest.raises(DatasetError, match=message):
        read(path, "y")
    with pytest.raises(DatasetError, match=r"no column left besides.*left out: when"):
        read(path, "y", ("when",))


def test_texts_that_are_no_dates_stay_texts(tmp_path: Path) -> None:
    raw = read(written(tmp_path, "when,y\n2024-01-01,a\n2024-01-01 or so,b\n"), "y")
    assert list(raw.frame.columns) == ["when"]


def test_columns_that_name_rows_are_left_out(tmp_path: Path) -> None:
    rows = 12
    frame = pd.DataFrame(
        {
            "Unnamed: 0": range(rows),
            "shuffled": np.random.default_rng(0).permutation(rows) + 100,
            "userId": np.arange(rows) * 7,
            "name": [None, *(f"name {i}" for i in range(1, rows))],
            "visitor_id": [i // 2 for i in range(rows)],
            "squares": np.arange(rows) ** 2,
            "time": np.arange(rows) / 2,
            "paid": [i % 3 for i in range(rows)],
            "signed": [f"2024-01-{i + 1:02d}" for i in range(rows)],
            "y": ["a", "b"] * (rows // 2),
        }
    )
    frame.to_csv(tmp_path / "mine.csv", index=False)
    raw = read(tmp_path / "mine.csv", "y")
    signed = ["signed (day)", "signed (month)", "signed (weekday)"]
    assert list(raw.frame.columns) == ["visitor_id", "squares", "time", "paid", *signed]
    assert raw.reading is not None
    assert raw.reading.ids == (
        ("Unnamed: 0", "it numbers the rows"),
        ("shuffled", "it numbers the rows"),
        ("userId", "an id"),
        ("name", "all values differ"),
    )
    left_out = [name for name, _ in raw.reading.ids]
    assert raw.reading.settings == {"left_out": left_out, "dates": ["signed"]}
    assert raw.reading.notice == (
        "mine.csv: 12 rows; target y; left out: Unnamed: 0 (it numbers the rows), shuffled (it numbers "
        "the rows), userId (an id), name (all values differ); signed read as a date; if visitor_id "
        "only names rows, leave it out with --drop visitor_id"
    )
    few = read(written(tmp_path, "name,y\nann,a\nbob,b\n"), "y")
    assert list(few.frame.columns) == ["name"]  # two rows say nothing


def test_columns_are_dropped_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, "x,z,w,y\n1,2,3,a\n4,5,7,b\n")
    raw = read(path, "y", ("w", "x"))
    assert list(raw.frame.columns) == ["z"]
    assert raw.reading is not None
    assert raw.reading.settings == {"dropped": ["w", "x"]}
    assert raw.reading.notice == "mine.csv: 2 rows; target y; left out: w, x"
    assert load(str(path), target="y", drop=["w"]).X.shape != load(str(path), target="y").X.shape
    with pytest.raises(DatasetError, match="no column 'q' to drop; its columns are 'x', 'z', 'w'"):
        read(path, "y", ("q",))
    with pytest.raises(DatasetError, match="the target 'y' is also to be dropped"):
        read(path, "y", ("y",))


def test_a_dropped_column_makes_another_trial(tmp_path: Path) -> None:
    path = written(tmp_path, "x,z,y\n1,2,a\n4,5,b\n")
    whole, less = (
        Classification(dataset=str(path), target="y", drop=drop) for drop in ((), ("z",))
    )
    assert "dropped" not in whole.settings
    assert less.settings["dropped"] == ["z"]
    assert less.settings["content"] != whole.settings["content"]
    assert less.notice == "mine.csv: 2 rows; target y; left out: z"
    assert Classification(dataset="magic").notice == ""


def test_a_run_says_first_how_a_file_was_read(tmp_path: Path) -> None:
    rows = "".join(f"u{i},{i % 5},2024-01-{i + 1:02d},{i % 3},{'ab'[i % 2]}\n" for i in range(20))
    path = written(tmp_path, f"user,age,joined,notes,kind\n{rows}")
    what = ["--dataset", str(path), "--target", "kind", "--drop", "notes", "--policy", "uniform"]
    how = ["--rounds", "20", "--seeds", "1", "--executor", "serial", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, ["run", *what, *how])
    assert found.exit_code == 0, found.output
    assert found.output.splitlines()[0] == (
        "mine.csv: 20 rows; target kind; left out: notes, user (all values differ); joined read as a date"
    )
    (record,) = Store(folder=tmp_path / "out" / "runs").all()
    environment = record.settings["environment"]
    assert environment["dropped"] == ["notes"]
    assert environment["left_out"] == ["user"]
    assert environment["dates"] == ["joined"]


@pytest.mark.parametrize(
    ("header", "target"),
    [("x,action,reward,propensity", "reward"), ("x,Arm,Clicked", "Clicked"), ("x,arm,pscore", "x")],
)
def test_the_log_of_a_bandit_is_not_taken_for_labelled_data(
    tmp_path: Path, header: str, target: str
) -> None:
    values = ",".join("1" for _ in header.split(","))
    path = written(tmp_path, f"{header}\n{values}\n{values}\n")
    with pytest.raises(DatasetError, match=r"log of a bandit.*Bandit\.partial_fit.*--drop"):
        read(path, target)


def test_a_log_can_be_read_as_labelled_data_all_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, "x,action,reward\n1,a,0\n2,b,1\n")
    assert read(path, "action", ("reward",)).classes == ("a", "b")


# Helpers.

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


def offline(**request: Any) -> Any:
    """Fail as scikit-learn does without a network."""
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
