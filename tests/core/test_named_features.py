"""Features by name: dictionaries, series and data frames as contexts of a bandit."""

import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rbmle import Bandit, LinUCB, NeuralUCB
from rbmle.core.encoding import Encoder, Names, Places
from rbmle.core.errors import ContextError, FileError, SettingError
from tests.samples import bytes_of

NAMES = ["age", "income"]


class Polars:
    """A data frame as polars has it: columns are a list, and there is no index."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return pd.Series(self._columns[name])

    def __iter__(self) -> Any:
        return iter(self._columns.values())

    def to_numpy(self) -> np.ndarray:
        return np.array(list(self._columns.values())).T


def named(**settings: Any) -> Bandit:
    return Bandit(LinUCB(), features=NAMES, **{"arms": ["a", "b"], **settings})


@pytest.mark.parametrize(
    "x",
    [
        {"age": 31, "income": 2.5},
        {"income": np.float32(2.5), "age": np.int64(31)},
        pd.Series({"age": 31, "income": 2.5}),
        pd.Series({"income": 2.5, "age": 31}, dtype=object),
        pd.DataFrame({"income": [0.0, 2.5], "age": [0, 31]}).iloc[1],
        [31, 2.5],
        np.array([31, 2.5]),
    ],
)
def test_one_context_by_name_in_any_order(x: Any) -> None:
    bandit = named()
    assert bandit.decide(x).context.dense().tolist() == [[31.0, 2.5]]
    other = named()
    bandit.learn(x, arm="b", reward=1.0)
    other.learn([31.0, 2.5], arm="b", reward=1.0)
    assert bytes_of(bandit) == bytes_of(other)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"age": [31, 0], "income": [2.5, -1.0]}),
        pd.DataFrame({"income": [2.5, -1.0], "age": [31, 0]}, index=["x", "y"]),
        Polars({"income": [2.5, -1.0], "age": [31, 0]}),
        [{"age": 31, "income": 2.5}, pd.Series({"income": -1.0, "age": 0})],
        [[31, 2.5], [0, -1.0]],
    ],
)
def test_many_contexts_by_name_in_any_order(X: Any) -> None:
    expected = np.array([[31, 2.5], [0, -1.0]])
    bandit, other = named(), named()
    bandit.partial_fit(X, ["a", "b"], [0.0, 1.0])
    other.partial_fit(expected, ["a", "b"], [0.0, 1.0])
    assert bytes_of(bandit) == bytes_of(other)
    decided = [decision.context.dense()[0].tolist() for decision in bandit.decide_many(X)]
    assert decided == expected.tolist()
    per_arm = named(encoding="per-arm")
    assert per_arm.decide(X, id="x").indices.tolist() == pytest.approx(
        per_arm.decide(expected, id="x").indices.tolist(), abs=0
    )


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"age": 1}, r"missing: 'income'\); give 'age', 'income' and no others"),
        ({"age": 1, "incme": 2}, r"missing: 'income'; not a feature of this bandit: 'incme'"),
        ({"age": 1, "income": 2, "x": 3}, r"\(not a feature of this bandit: 'x'\)"),
        (pd.Series([1.0, 2.0]), r"missing: 'age', 'income'; not a feature of this bandit: 0, 1"),
        (pd.Series([1, 2, 3], ["age", "age", "income"]), "the name 'age' is there twice"),
        ({"age": 1, "income": math.nan}, "feature 'income' is nan, but a finite number"),
        ({"age": None, "income": 1}, "feature 'age' is None, but a finite number"),
        ({"age": 1e13, "income": 1}, "feature 'age' is 10000000000000.0, but .* scale large ones"),
        ({"age": "old", "income": 1}, r"feature 'age' is 'old', .* features=Hashing\(\)"),
        ({"age": [1, 2], "income": 1}, r"feature 'age' is \[1, 2\], but a finite number"),
        ([1.0, 2.0, 3.0], r"has the shape \(3,\), but a vector of shape \(2,\) is expected"),
    ],
)
def test_a_context_with_other_names_or_no_numbers_is_refused(x: Any, message: str) -> None:
    bandit = named()
    before = bytes_of(bandit)
    with pytest.raises(ContextError, match=message):
        bandit.decide(x)
    with pytest.raises(ContextError, match=message):
        bandit.learn(x, arm="a", reward=1.0)
    assert bytes_of(bandit) == before


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"age": [1]}), "missing: 'income'"),
        (pd.DataFrame({"age": [1], "income": [1], "x": [1]}), "not a feature of this bandit: 'x'"),
        (pd.DataFrame([[1, 2, 3]], columns=["age", "age", "income"]), "column 'age' is there"),
        (pd.DataFrame({"age": [1], "income": [None]}), "feature 'income' is None"),
        (pd.DataFrame({"age": ["old"], "income": [1]}), "feature 'age' is 'old'"),
        ([{"age": 1}], "missing: 'income'"),
    ],
)
def test_a_data_frame_with_other_columns_or_no_numbers_is_refused(X: Any, message: str) -> None:
    bandit = named()
    before = bytes_of(bandit)
    with pytest.raises(ContextError, match=message):
        bandit.partial_fit(X, ["a"], [1.0])
    assert bytes_of(bandit) == before


def test_names_are_refused_where_there_is_only_a_number_of_features() -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2)
    advice = r"make it with features=\['income', 'age'\], or give x.to_numpy\(\)"
    with pytest.raises(ContextError, match=advice):
        bandit.decide(pd.Series({"income": 2.5, "age": 31}))
    for frame in (
        pd.DataFrame({"income": [2.5], "age": [31]}),
        Polars({"income": [1], "age": [2]}),
    ):
        with pytest.raises(ContextError, match=advice):
            bandit.partial_fit(frame, ["a"], [1.0])
    with pytest.raises(ContextError, match=r"features=\[…names…\] or features=Hashing\(\)"):
        bandit.decide({"income": 2.5, "age": 31})


def test_columns_that_are_only_counted_are_places() -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2)
    assert bandit.decide(pd.Series([1.0, 2.0])).context.dense().tolist() == [[1.0, 2.0]]
    other = Bandit(LinUCB(), arms=["a", "b"], features=2)
    bandit.partial_fit(pd.DataFrame(np.eye(2)), ["a", "b"], [0.0, 1.0])
    other.partial_fit(np.eye(2), ["a", "b"], [0.0, 1.0])
    assert bytes_of(bandit) == bytes_of(other)


@pytest.mark.parametrize(
    "wrong", ["age", [], ["age", "age"], ["age", 3], {"age": 3, 4: 5}, None, 0, 1.5, math.nan]
)
def test_invalid_feature_settings_are_refused(wrong: Any) -> None:
    with pytest.raises(SettingError, match="`features` must be"):
        Bandit(LinUCB(), arms=2, features=wrong)


def test_a_number_or_names_of_other_kinds_are_taken() -> None:
    columns = pd.DataFrame({"age": [1], "income": [2]}).columns
    assert Bandit(LinUCB(), arms=2, features=columns).encoder == Names(names=("age", "income"))
    assert Bandit(LinUCB(), arms=2, features=np.int64(3)).encoder == Places(size=3)  # type: ignore[arg-type]  # numpy's
    assert Bandit(LinUCB(), arms=2, features=3).features == 3


def test_names_come_back_from_a_file(tmp_path: Path) -> None:
    bandit = named()
    bandit.learn({"age": 1.0, "income": 2.0}, arm="a", reward=1.0)
    bandit.save(tmp_path / "b.rbmle")
    loaded = Bandit.load(tmp_path / "b.rbmle")
    assert loaded.encoder == bandit.encoder
    x = {"income": 1.0, "age": 3.0}
    assert loaded.decide(x, id="x").arm == bandit.decide(x, id="x").arm
    assert bytes_of(loaded) == bytes_of(bandit)


def test_a_file_without_names_has_the_number_of_features(tmp_path: Path) -> None:
    Bandit(LinUCB(), arms=2, features=2).save(tmp_path / "b.rbmle")
    with zipfile.ZipFile(tmp_path / "b.rbmle") as zipped:
        assert json.loads(zipped.read("manifest.json"))["features"] == 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """An encoder of a user's own: numbers and their squares."""

    numbers: int

    @property
    def size(self) -> int:
        return 2 * self.numbers

    def row(self, x: Any, arm: Any) -> Any:
        return self.rows([x], None)[0]

    def rows(self, X: Any, arms: Any) -> Any:
        X = np.asarray(X, np.float64)
        return np.hstack([X, X**2])


def test_a_users_own_encoder_has_to_be_passed_to_load(tmp_path: Path) -> None:
    doubled = Doubled(numbers=2)
    assert isinstance(doubled, Encoder)
    bandit = Bandit(NeuralUCB(), arms=2, features=doubled)
    decision = bandit.decide([1.0, 3.0])
    assert decision.context.dense().tolist() == [[1.0, 3.0, 1.0, 9.0]]
    bandit.learn(decision, 1.0)
    path = tmp_path / "b.rbmle"
    bandit.save(path)
    with pytest.raises(FileError, match=r"Doubled in its features.*load\(path, features=…\)"):
        Bandit.load(path)
    with pytest.raises(FileError, match=r"saved with the features Doubled\(numbers=2\), not"):
        Bandit.load(path, features=Doubled(numbers=1))
    assert bytes_of(Bandit.load(path, features=doubled)) == bytes_of(bandit)
