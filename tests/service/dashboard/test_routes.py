"""The stream of the dashboard: a view each second, until somebody ends it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import rbmle
from rbmle.service.dashboard import routes as streaming
from rbmle.service.dashboard.pages import FOLDER, VENDORED
from rbmle.service.dashboard.view import View
from tests.browser import PATIENCE, wait_until
from tests.service.dashboard.samples import (
    NASTY,
    Fake,
    Keys,
    Server,
    application,
    busy,
    overview_of,
    serving,
    sign_in,
)

VENDORED_FOLDER = Path(rbmle.__file__).parent / VENDORED[1]


def test_the_stream_gives_a_view_each_second() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["cache-control"] == "no-store"
            data = (line for line in answer.iter_lines() if line)
            first, second = (next(data).removeprefix("data: ") for _ in range(2))
        view = msgspec.json.decode(first, type=View)
        assert len(view.points) == 7
        assert view.texts["decisions"] == "300"
        assert msgspec.json.decode(second, type=View) == view


def test_a_closed_stream_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_open_streams_do_not_delay_a_stop() -> None:
    with Server(application(Fake())) as server, httpx.Client(base_url=server.address) as client:
        sign_in(client)
        with client.stream("GET", "/dashboard/events") as answer:
            lines = answer.iter_lines()
            next(lines)
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 5
            assert len(list(lines)) <= 3  # it ended, and was not broken off


def test_a_client_that_does_not_read_does_not_delay_a_stop() -> None:
    async def never(*message: object) -> Any:
        await asyncio.Event().wait()

    async def message() -> bytes:
        return b"{}"

    gate = streaming.Gate()
    stream = streaming.EventStream(message=message, is_stopping=lambda: True, gate=gate, headers={})
    asyncio.run(asyncio.wait_for(stream({}, never, never), PATIENCE))
    assert gate.streams == 0


def test_every_response_has_security_headers() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        for path in ("", "/login", "/static/dashboard.js", "/static/none", "/events"):
            with client.stream("GET", f"/dashboard{path}") as answer:
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                # Forms of a page with no-referrer have the origin null, also to their own site.
                allowed = "same-origin" if path == "" else "no-referrer"
                assert answer.headers["referrer-policy"] == allowed


def test_names_from_clients_are_escaped() -> None:
    with serving(Fake(overview_of(busy(), log_unavailable_since=0, log_problem=NASTY))) as client:
        sign_in(client)
        text = client.get("/dashboard", headers={"host": "<script>"}).text
        assert "&lt;script&gt;alert(&#34;1&#34;)" in text
        assert text.count("<script") == 2  # our own two files
        assert 'style="' not in text


def test_the_page_can_be_read_without_a_script() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        text = client.get("/dashboard").text
        for words in (
            "over the baseline action",
            "Why this is not certain yet",
            "Uniform play",
            "with 95 % intervals valid for one look",
            "Defaulted",
            "NeuralRBMLE-PC",
            "fsync, p99",
        ):
            assert words in text


def test_static_files_are_cached_by_etag() -> None:
    with serving(Fake()) as client:
        names = [path.name for folder in (FOLDER, VENDORED_FOLDER) for path in folder.iterdir()]
        assert {"dashboard.js", "uPlot.iife.min.js"} <= set(names)
        for name in sorted(names):
            answer = client.get(f"/dashboard/static/{name}")
            assert answer.status_code == 200
            again = client.get(
                f"/dashboard/static/{name}", headers={"if-none-match": answer.headers["etag"]}
            )
            assert (again.status_code, again.content) == (304, b"")
        for name in ("", "none.js", "../vendored/README.md", "..%2froutes.py", "../routes.py"):
            assert client.get(f"/dashboard/static/{name}").status_code == 404


def test_the_version_and_licence_of_the_chart_library_are_recorded() -> None:
    version = (VENDORED_FOLDER / "uPlot.iife.min.js").read_text().split("(v")[1].split(")")[0]
    assert f"| {version} |" in (VENDORED_FOLDER / "README.md").read_text()
    assert "The MIT License" in (VENDORED_FOLDER / "uPlot.LICENSE.txt").read_text()
