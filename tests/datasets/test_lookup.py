"""Where the file of a dataset is looked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rbmle.datasets import DATASETS, DatasetError, load
from rbmle.datasets.catalog import sha256
from rbmle.datasets.load import SHIPPED, find_file
from tests.datasets.samples import TINY, fetch_tiny, offline


def test_the_environment_variable_is_the_default_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RBMLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match="nowhere' does not exist"):
        load("mnist")


def test_the_users_folder_comes_first_then_the_package(tmp_path: Path) -> None:
    magic = DATASETS["magic"]
    assert find_file(magic, None) == SHIPPED / "magic.parquet"
    assert find_file(magic, tmp_path) == SHIPPED / "magic.parquet"  # the folder has none
    (tmp_path / "magic.parquet").write_bytes((SHIPPED / "magic.parquet").read_bytes())
    assert find_file(magic, tmp_path) == tmp_path / "magic.parquet"


def test_then_the_cache_and_last_the_network(cache: Path) -> None:
    path = find_file(TINY, None, fetch=fetch_tiny)
    assert path == cache / "tiny.parquet"
    assert find_file(TINY, None, fetch=offline) == path
    path.unlink()
    with pytest.raises(DatasetError, match="cannot download tiny from OpenML"):
        find_file(TINY, None, fetch=offline)


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "magic.parquet").write_bytes(b"something else")
    with pytest.raises(DatasetError, match=r"sha256 \w{12}…; expected aaa2ee1390d9….*delete it"):
        find_file(DATASETS["magic"], tmp_path)


def test_a_download_gets_our_layout_and_its_own_checksum(cache: Path) -> None:
    path = find_file(TINY, None, fetch=fetch_tiny)
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
        find_file(TINY, None, fetch=offline)


def test_a_file_put_into_the_cache_by_hand_has_the_published_checksum(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.parquet").write_bytes(b"by hand")
    by_hand = replace(TINY, sha256=sha256(cache / "tiny.parquet"))
    assert find_file(by_hand, None, fetch=offline) == cache / "tiny.parquet"
    with pytest.raises(DatasetError, match="damaged or a different file"):
        find_file(TINY, None, fetch=offline)


@pytest.mark.parametrize("change", [{"rows": 4}, {"features": 5}, {"counts": (2, 1)}])
def test_a_download_that_has_changed_is_refused(cache: Path, change: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match="3 rows, 4 features and classes of 1, 2 rows; expected"):
        find_file(replace(TINY, **change), None, fetch=fetch_tiny)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(
        DatasetError, match=r"cannot write tiny\.parquet to the cache.*XDG_CACHE_HOME"
    ):
        find_file(TINY, None, fetch=fetch_tiny)


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
