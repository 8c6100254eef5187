"""Every log keeps every promise, and each promise has a liar that breaks it."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rbmle.service.log import LogError, Row, open_log
from rbmle.service.log.backend import EncodedRow
from rbmle.service.log.base import mask_passwords
from rbmle.service.log.memory import MemoryLog
from tests.contract.log_liars import LIARS, InMemory
from tests.contract.log_promises import PROMISES, Place, Promise, row


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_log_keeps_every_promise(place: Place, promise: Promise) -> None:
    promise(place)


@pytest.mark.parametrize(("liar", "promise"), LIARS, ids=lambda part: part.__name__)
def test_a_liar_is_caught(liar: Callable[[list[EncodedRow]], MemoryLog], promise: Promise) -> None:
    with pytest.raises((AssertionError, LogError)):
        promise(InMemory(kind=liar))


def test_each_promise_has_a_liar() -> None:
    assert {promise for _, promise in LIARS} == set(PROMISES)


@pytest.mark.parametrize("text", ["\ud800", "x" * 2049, "é" * 1025])
def test_text_that_a_log_cannot_keep_is_no_row(text: str) -> None:
    for texts in ((text, "", ""), ("", text, ""), ("", "", text)):
        with pytest.raises(ValueError, match=r"surrogate|at most"):
            Row(*texts, 0, b"")


def test_a_time_of_more_than_64_bits_is_no_row() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        Row("kind", "event", None, 2**63, b"")


def test_a_log_is_opened_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("a.db", f"{tmp_path}/b.db", "sqlite:///c.db", f"sqlite:///{tmp_path}/d%20e.db"):
        with closing(open_log(url)) as log:
            log.append([row()])
    assert {path.name for path in tmp_path.glob("*.db")} == {"a.db", "b.db", "c.db", "d e.db"}
    assert isinstance(open_log("memory:"), MemoryLog)
    for url in ("mysql://host/log", "sqlite:", "sqlite://host/log"):
        with pytest.raises(ValueError, match="give"):
            open_log(url)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:secret@host/data", "postgresql://me:***@host/data"),
        ("postgres://:secret@host", "postgres://:***@host"),
        ("POSTGRESQL://me:se@cr:et@host", "POSTGRESQL://me:***@host"),
        ("postgresql://host/x?user=me&password=secret&a=b", "postgresql://host/x?user=me&password=***&a=b"),
        ('in URI: "postgresql://me:secret@[::1/x"', 'in URI: "postgresql://me:***@[::1/x"'),
        ("postgresql://me@host:5432/data", "postgresql://me@host:5432/data"),
        ("postgresql://host:5432/data", "postgresql://host:5432/data"),
        ("rbmle-data/log.db", "rbmle-data/log.db"),
    ],
)  # fmt: skip
def test_a_password_is_masked_and_nothing_else(text: str, shown: str) -> None:
    assert mask_passwords(text) == shown
