"""Files of the user's own: what they may look like, and how they become a dataset."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.datasets import DatasetError, load
from rbmle.datasets.catalog import sha256
from rbmle.datasets.user_file import read_file
from rbmle.environments import Classification
from rbmle.experiments.store import Store
from tests.datasets.samples import packed, written


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
    raw = read_file(path, "class")
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
    raw = read_file(path, "y")
    assert raw.classes == classes
    assert raw.labels.tolist() == [1, 0, 1]


def test_spaces_after_commas_and_a_byte_order_mark_are_ignored(tmp_path: Path) -> None:
    raw = read_file(written(tmp_path, "\ufeffx, y\n1, a\n?, b\n"), "y")
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
        read_file(path, "y")
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
        read_file(tmp_path / name, "y")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is a folder"):
        read_file(tmp_path, "y")


def test_a_column_of_lists_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"x": [[1, 2], [3]], "y": ["a", "b"]}).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(DatasetError, match=r"column 'x' of .* holds ndarray values.*--drop x"):
        read_file(tmp_path / "mine.parquet", "y")


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
        read_file(path, "y")
    path.write_bytes(b"not packed at all, but long enough to be read as something")
    with pytest.raises(DatasetError, match=f"mine.csv{ending}' cannot be (unpacked|read)"):
        read_file(path, "y")


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mine.csv.zip", "w") as archive:
        archive.writestr("one.csv", "x,y\n")
        archive.writestr("two.csv", "x,y\n")
    with pytest.raises(DatasetError, match="holds 2 files; expected one"):
        read_file(tmp_path / "mine.csv.zip", "y")


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
    raw = read_file(path, "y")
    assert list(raw.frame.columns) == ["size, kg", "colour"]
    assert raw.reading is not None
    assert raw.reading.settings == {"separator": named}
    assert f"columns separated by {named}" in raw.reading.notice


def test_decimal_commas_are_read_between_semicolons(tmp_path: Path) -> None:
    raw = read_file(written(tmp_path, "x;y\n1,5;a\n-2,25;b\n"), "y")
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
    raw = read_file(path, "y")
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
    raw = read_file(tmp_path / "mine.parquet", "y")
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
        read_file(path, "y")
    with pytest.raises(DatasetError, match=r"no column left besides.*left out: when"):
        read_file(path, "y", ("when",))


def test_texts_other_than_dates_stay_texts(tmp_path: Path) -> None:
    raw = read_file(written(tmp_path, "when,y\n2024-01-01,a\n2024-01-01 or so,b\n"), "y")
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
    raw = read_file(tmp_path / "mine.csv", "y")
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
    few = read_file(written(tmp_path, "name,y\nann,a\nbob,b\n"), "y")
    assert list(few.frame.columns) == ["name"]  # two rows say nothing


def test_columns_are_dropped_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, "x,z,w,y\n1,2,3,a\n4,5,7,b\n")
    raw = read_file(path, "y", ("w", "x"))
    assert list(raw.frame.columns) == ["z"]
    assert raw.reading is not None
    assert raw.reading.settings == {"dropped": ["w", "x"]}
    assert raw.reading.notice == "mine.csv: 2 rows; target y; left out: w, x"
    assert load(str(path), target="y", drop=["w"]).X.shape != load(str(path), target="y").X.shape
    with pytest.raises(DatasetError, match="no column 'q' to drop; its columns are 'x', 'z', 'w'"):
        read_file(path, "y", ("q",))
    with pytest.raises(DatasetError, match="the target 'y' is also to be dropped"):
        read_file(path, "y", ("y",))


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
        read_file(path, target)


def test_a_log_can_be_read_as_labelled_data_with_drop(tmp_path: Path) -> None:
    path = written(tmp_path, "x,action,reward\n1,a,0\n2,b,1\n")
    assert read_file(path, "action", ("reward",)).classes == ("a", "b")
