"""Where a server listens, and what cannot be a binding."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rbmle.service.http.binding import Binding, ServerError
from tests.service.http.samples import GET, QUICK, running
from tests.service.wire import close_after, connect, received


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"host": ""}, "host '' is neither a name"),
        ({"host": "[::1]"}, "give 127.0.0.1, ::1"),
        ({"host": "http://a"}, "is neither a name nor an address"),
        ({"port": 65_536}, "port 65536 does not exist"),
        ({"port": -1}, "port -1 does not exist"),
        ({"private_key": Path("key")}, "but no certificate"),
        ({"head_seconds": 0.0}, "head_seconds is 0.0"),
        ({"head_seconds": float("nan")}, "head_seconds is nan"),
        ({"connections": 0}, "connections is 0"),
        ({"proxies": "10.0.0.1, everyone"}, "proxy 'everyone'"),
    ],
)
def test_a_binding_that_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ServerError) as caught:
        Binding(**wrong)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_public"),
    [
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("localhost", False),
        ("LOCALHOST", False),
        ("a.localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.168.0.1", True),
        ("::ffff:192.0.2.1", True),
        ("localhost.example.org", True),
    ],
)
def test_only_what_is_surely_loopback_is_not_public(host: str, is_public: bool) -> None:
    assert Binding(host=host).is_public is is_public


def test_an_address_can_be_opened_as_it_is() -> None:
    assert Binding(host="::1").address(80) == "http://[::1]:80"
    assert Binding(certificate=Path("a")).address(443) == "https://127.0.0.1:443"
    with running(replace(QUICK, host="localhost")) as port:
        assert received(connect(port, close_after(GET))).startswith(b"HTTP/1.1 200")
