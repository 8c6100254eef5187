"""Datasets of the Penn Machine Learning Benchmarks and of OpenML, by one door."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.datasets import DatasetError, load
from rbmle.datasets.load import from_openml, from_pmlb
from rbmle.environments import Classification, problem
from rbmle.experiments.trial import Trial
from rbmle.policies import LinUCB
from tests.datasets.samples import offline


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of data, and no network for pmlb either."""
    monkeypatch.delenv("RBMLE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pmlb", SimpleNamespace(fetch_data=offline))


@pytest.mark.parametrize("name", ["pmlb:shapes", "pmlb:shapes-2.1", "openml:61"])
def test_a_dataset_of_a_collection_is_read_from_the_folder(name: str, tmp_path: Path) -> None:
    prefix, _, item = name.partition(":")
    put(tmp_path / "data" / prefix / f"{item}.parquet")
    data = load(name, data_dir=tmp_path / "data")
    assert data.name == name
    assert data.classes == 3
    assert data.X.shape == (30, 6)  # two numbers by value and by rank, a flag, and a constant
    assert data.reading is None


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "data" / "pmlb" / "shapes.parquet")
    monkeypatch.setenv("RBMLE_DATA", str(tmp_path / "data"))
    assert load("pmlb:shapes").classes == 3
    assert problem("pmlb:shapes+noise").settings["name"] == "pmlb:shapes+noise"


def test_a_trial_does_not_depend_on_where_the_file_is(tmp_path: Path) -> None:
    ids = set()
    for folder in ("here", "there"):
        put(tmp_path / folder / "pmlb" / "shapes.parquet")
        world = Classification(dataset="pmlb:shapes", data_dir=tmp_path / folder)
        assert world.file is None
        ids.add(Trial(policy=LinUCB(), name="lin-ucb", environment=world, horizon=5, seed=0).id)
    assert len(ids) == 1


def test_a_missing_dataset_is_downloaded_once_into_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pmlb", SimpleNamespace(fetch_data=lambda name: shapes()))
    fetched = load("pmlb:fetched")
    names = sorted(file.name for file in (cache / "pmlb").iterdir())
    assert names == ["fetched.parquet", "fetched.parquet.sha256"]
    monkeypatch.setitem(sys.modules, "pmlb", SimpleNamespace(fetch_data=offline))
    again = load("pmlb:fetched", preprocessing="paper")
    assert again.digest == fetched.digest
    (cache / "pmlb" / "fetched.parquet").write_bytes(b"damaged")
    with pytest.raises(DatasetError, match="it is damaged or a different file"):
        load("pmlb:fetched", data_dir=tmp_path)  # another folder, so that it is read again


def test_openml_is_asked_by_number(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def fetch(**request: Any) -> Any:
        asked.update(request)
        frame = shapes()
        return SimpleNamespace(target=frame.pop("target").astype("category"), data=frame)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    assert load("openml:4321").classes == 3
    assert asked == {"data_id": 4321, "as_frame": True, "parser": "auto"}
    assert (cache / "openml" / "4321.parquet").is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "pmlb:letter",
            r"cannot get letter of the Penn.*URLError.*put the file pmlb/letter\.parquet",
        ),
        ("openml:61", r"cannot download the dataset 61.*put the file openml/61\.parquet"),
        ("openml:iris", "'openml:iris' is not the name of a dataset of openml; .* openml:61"),
        ("pmlb:../adult", "is not the name of a dataset of pmlb"),
        ("pmlb:", "is not the name of a dataset of pmlb"),
    ],
)
def test_a_failed_download_is_reported_in_one_line(name: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        load(name)
    assert "\n" not in str(caught.value)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pmlb", None)
    with pytest.raises(DatasetError, match=r"pip install 'rbmle\[pmlb\]'.*pmlb/letter\.parquet"):
        load("pmlb:letter")


def test_a_name_that_the_collection_does_not_have_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"ValueError: Dataset not found.*check the name"):
        from_pmlb("no-such-set", fetch=unknown)


def test_an_openml_dataset_must_have_a_target_of_its_own() -> None:
    none = SimpleNamespace(data=pd.DataFrame({"a": [1, 2]}), target=None)
    with pytest.raises(DatasetError, match="has no default target"):
        from_openml("1", fetch=lambda **_: none)
    two = SimpleNamespace(data=pd.DataFrame({"target": [1, 2]}), target=pd.Series([1, 2]))
    with pytest.raises(DatasetError, match="has a feature called 'target'"):
        from_openml("1", fetch=lambda **_: two)


def test_a_target_that_is_a_quantity_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pmlb" / "prices.parquet"
    path.parent.mkdir()
    pd.DataFrame({"a": np.arange(2000.0) ** 2, "target": np.arange(2000.0)}).to_parquet(path)
    with pytest.raises(DatasetError, match="2000 classes; expected at most 1000"):
        load("pmlb:prices", data_dir=tmp_path)


def test_a_target_is_refused_for_a_collection(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="pmlb:shapes is a published dataset"):
        load("pmlb:shapes", target="word", data_dir=tmp_path)


def test_run_plays_a_dataset_of_a_collection(tmp_path: Path) -> None:
    put(tmp_path / "data" / "pmlb" / "shapes.parquet")
    options = ["--rounds", "20", "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    named = ["--dataset", "pmlb:shapes,pmlb:shapes+rare", "--data-dir", str(tmp_path / "data")]
    result = CliRunner().invoke(app, ["run", *named, "--policy", "lin-ucb,uniform", *options])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "pmlb-shapes+rare.png").is_file()
    page = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert "| Policy | Wins − losses |" in page.output
    assert "2 policies on 2 problems" in page.output


def shapes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "height": rng.normal(size=30).round(3),
            "corners": rng.integers(3, 9, size=30),
            "filled": rng.integers(0, 2, size=30),
            "target": np.arange(30) % 3,
        }
    )


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shapes().to_parquet(path)


def unknown(_: str) -> Any:
    raise ValueError("Dataset not found in PMLB.")
