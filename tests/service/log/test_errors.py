"""Messages about logs show no password."""

import pytest

from rbmle.service.log.errors import masked


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
    assert masked(text) == shown
