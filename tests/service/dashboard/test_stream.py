"""The stream of the dashboard: a view each second, until somebody ends it."""

import asyncio
import time
from typing import Any

import httpx
import msgspec
import pytest

from rbmle.service.dashboard import stream as streaming
from rbmle.service.dashboard.view import View
from tests.browser import PATIENCE, wait_until
from tests.service.dashboard.samples import (
    Fake,
    Keys,
    Server,
    application,
    serving,
    sign_in,
)


def test_the_stream_gives_a_view_each_second() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["cache-control"] == "no-store"
            data = (line for line in answer.iter_lines() if line)
            first, second = (next(data).removeprefix("data: ") for _ in range(2))
        view = msgspec.json.decode(first, type=View)
        assert view.overview.summary.decisions == 300
        assert view.texts["decisions"] == "300"
        assert msgspec.json.decode(second, type=View).overview == view.overview


def test_who_leaves_makes_place_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MOST_STREAMS", 1)
    with serving(Fake()) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            lines = answer.iter_lines()
            next(lines)
            refused = client.head("/dashboard/events")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        wait_until(lambda: client.head("/dashboard/events").status_code == 200)


def test_a_stream_ends_with_its_session() -> None:
    source = Fake()
    with serving(source) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            source.keys = Keys("another-key-than-before")
            assert len(list(answer.iter_lines())) <= 4
        assert client.head("/dashboard/events").status_code == 401


def test_open_streams_do_not_hold_up_a_stop() -> None:
    with Server(application(Fake())) as server, httpx.Client(base_url=server.address) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            lines = answer.iter_lines()
            next(lines)
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 5
            assert len(list(lines)) <= 3  # it ended, and was not broken off


def test_a_reader_that_does_not_read_does_not_hold_up_a_stop() -> None:
    async def never(*message: object) -> Any:
        await asyncio.Event().wait()

    async def message() -> bytes:
        return b"{}"

    gate = streaming.Gate()
    stream = streaming.EventStream(message=message, is_stopping=lambda: True, gate=gate, headers={})
    asyncio.run(asyncio.wait_for(stream({}, never, never), PATIENCE))
    assert gate.streams == 0
