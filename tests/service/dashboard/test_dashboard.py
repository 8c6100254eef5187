"""The dashboard: who gets in, what is sent, and how it looks in a real browser."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
import uvicorn
from starlette.applications import Starlette

import rbmle
from rbmle.service.access.keys import Scope
from rbmle.service.access.throttle import Throttle
from rbmle.service.dashboard import Guard, Overview, routes
from rbmle.service.dashboard import stream as streaming
from rbmle.service.dashboard.answers import FOLDER, VENDORED
from rbmle.service.dashboard.headline import headline
from rbmle.service.dashboard.sessions import LIFETIME_SECONDS, MOST_SESSIONS, Sessions
from rbmle.service.dashboard.view import View, view
from rbmle.service.learning.events import Counts
from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play
from rbmle.service.statistics import Statistics
from tests.browser import CHROMIUM, DESK, PATIENCE, PHONE, Browser, wait_until

KEY = "a-key-that-may-read"
VENDORED_FOLDER = Path(rbmle.__file__).parent / VENDORED[1]
NASTY = '<script>alert("1")</script>'
LONG = "action-with-a-long-name-" + "x" * 200


# Getting in


def test_who_is_not_signed_in_is_led_to_the_form() -> None:
    with serving(Fake()) as client:
        assert client.get("/dashboard").headers["location"] == "/dashboard/login"
        assert "<form" in client.get("/dashboard/login").text
        assert client.get("/dashboard/events").status_code == 401


def test_a_key_opens_a_session_with_a_careful_cookie() -> None:
    with serving(Fake()) as client:
        answer = sign_in(client)
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
        _, *flags = answer.headers["set-cookie"].split("; ")
        assert sorted(flags) == ["HttpOnly", "Max-Age=43200", "Path=/dashboard", "SameSite=strict"]
        assert "Average reward" in client.get("/dashboard").text
        assert client.get("/dashboard/login").status_code == 303


def test_over_https_the_cookie_is_for_https_only() -> None:
    with serving(Fake()) as client:
        answer = sign_in(client, headers={"x-forwarded-proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_key_opens_nothing() -> None:
    with serving(Fake()) as client:
        for key in ("wrong", "", "\ud800"):
            answer = sign_in(client, key)
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers
            assert "This key may not see the dashboard" in answer.text


def test_who_fails_too_often_must_wait_unless_the_key_is_right() -> None:
    source = Fake()
    with serving(source) as client:
        for _ in range(source.throttle.attempts):
            assert sign_in(client, "wrong").status_code == 401
        answer = sign_in(client, "wrong")
        assert answer.status_code == 429
        wait = int(answer.headers["retry-after"])
        assert f"in {wait} s" in answer.text
        assert sign_in(client).status_code == 303
        source.seconds += wait
        assert sign_in(client, "wrong").status_code == 401


def test_signing_out_ends_the_session_and_not_only_the_cookie() -> None:
    with serving(Fake()) as client:
        sign_in(client)
        cookies = dict(client.cookies)
        answer = client.post("/dashboard/logout")
        assert 'rbmle_session=""' in answer.headers["set-cookie"]
        assert client.get("/dashboard", headers=cookie(cookies)).status_code == 303


def test_a_session_ends_with_its_time_and_with_its_key() -> None:
    source = Fake()
    with serving(source) as client:
        sign_in(client)
        source.seconds += LIFETIME_SECONDS - 1
        assert client.get("/dashboard").status_code == 200
        source.seconds += 1
        assert client.get("/dashboard").status_code == 303
        sign_in(client)
        source.keys = Keys("another-key-than-before")
        assert client.get("/dashboard").status_code == 303


def test_only_so_many_sessions_are_remembered() -> None:
    sessions = Sessions()
    tokens = [sessions.open(KEY, 0.0) for _ in range(MOST_SESSIONS + 1)]
    assert len(sessions) == MOST_SESSIONS
    assert not sessions.is_open(tokens[0], Keys(KEY), 1.0)
    assert sessions.is_open(tokens[-1], Keys(KEY), 1.0)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "http://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://here.example", "host": "here.example"}, 303),
        ({}, 303),
    ],
)
def test_forms_of_other_sites_are_refused(headers: dict[str, str], status: int) -> None:
    with serving(Fake()) as client:
        assert sign_in(client, headers=headers).status_code == status
        assert client.post("/dashboard/logout", headers=headers).status_code == status


def test_a_form_is_not_read_beyond_its_limit() -> None:
    with serving(Fake()) as client:
        assert sign_in(client, "x" * 5000).status_code == 413


def test_without_keys_everybody_may_look_and_nobody_signs_out() -> None:
    with serving(Fake(keys=None)) as client:
        text = client.get("/dashboard").text
        assert "Average reward" in text
        assert "Sign out" not in text
        assert sign_in(client).headers["location"] == "/dashboard"


# What is sent


def test_every_answer_has_the_headers_that_bind_a_browser() -> None:
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


def test_what_clients_named_is_escaped_everywhere() -> None:
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
            "The policy earns",
            "Uniform play",
            "Defaulted",
            "NeuralRBMLE-PC",
            "fsync, p99",
        ):
            assert words in text


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

    gate = streaming.Gate()
    stream = streaming.EventStream(
        message=lambda: b"{}", is_stopping=lambda: True, gate=gate, headers={}
    )
    asyncio.run(asyncio.wait_for(stream({}, never, never), PATIENCE))
    assert gate.streams == 0


def test_static_files_are_sent_once() -> None:
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


# What it says


def test_the_headline_says_what_matters() -> None:
    assert headline(overview_of(Statistics())).text == "No decision yet."
    waiting = headline(overview_of(played(1, 0), pending=1))
    assert waiting.text == "1 decision, and none is settled yet."
    assert waiting.verdict.endswith("at the end of the reward wait time; pending: 1.")
    early = headline(overview_of(played(4, 4)))
    assert early.text.startswith("The policy earns 0.500 a decision; it is too early to say")
    log = headline(overview_of(played(2, 0), learning_mode="LoggingOnly"))
    assert log.text == "2 decisions in the log; nothing is learned."


@pytest.mark.parametrize(
    ("others", "tone", "verdict"),
    [(0.9, "good", "Better"), (0.1, "bad", "Worse"), (0.5, "plain", "No clear difference")],
)
def test_the_verdict_needs_intervals_that_do_not_overlap(
    others: float, tone: str, verdict: str
) -> None:
    found = headline(overview_of(contested(others)))
    assert found.tone == tone
    assert found.verdict.startswith(verdict)
    assert "the baseline would have earned 0." in found.text


def test_pending_events_are_told_beside_what_counts() -> None:
    shown = view(overview_of(played(4, 4), pending=1_234))
    assert shown.texts["decisions_note"].endswith("a minute; 1,234 pending")
    (pending,) = [row for row in shown.tables["rewards"] if row[0].text == "Pending"]
    assert pending[1].text == "1,234"


def test_an_apprentice_is_told_as_one() -> None:
    statistics = Statistics()
    for preferred in (0, 0, 0, 1):
        play = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0, preferred=preferred)
        count(statistics, play, 0.5)
    found = headline(overview_of(statistics, learning_mode="Apprentice"))
    assert "earns 0.500 a decision" in found.text
    assert "the same in 75 % of them" in found.text


# How it looks

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium here; apt install chromium"
)


@needs_chromium
def test_the_page_draws_and_moves(browser: Browser) -> None:
    source = Fake()
    with shown(browser, source):
        assert browser.run("document.querySelectorAll('canvas').length") == 2
        assert browser.text("[data-text=decisions]") == "300"
        source.shown = overview_of(busy(400))
        browser.wait("document.querySelector('[data-text=decisions]').textContent == '400'")
        assert NASTY in browser.run(
            "[...document.querySelectorAll('th.id .text')].map(e => e.title)"
        )
        assert browser.run("document.querySelectorAll('#main script').length") == 0
        browser.run("document.querySelector('details').open = true")
        browser.wait("document.querySelectorAll('[data-rows=points] tr').length == 7")
        assert browser.problems() == []


@needs_chromium
def test_a_breach_of_the_policy_would_have_been_seen(browser: Browser) -> None:
    with shown(browser, Fake()):
        browser.run("document.body.setAttribute('style', 'color: red')")
        assert "Content Security Policy" in browser.problems()[0]


@needs_chromium
def test_before_the_first_decision_there_is_a_line_to_try(browser: Browser) -> None:
    source = Fake(overview_of(Statistics()))
    with shown(browser, source):
        assert browser.text("h1") == "No decision yet."
        assert "/v1/rank" in browser.text("pre")
        assert browser.is_hidden(".cards")
        source.shown = overview_of(played(3, 3))
        browser.wait("document.querySelectorAll('canvas').length == 2")
        assert browser.is_hidden("pre")
        assert browser.problems() == []


@needs_chromium
def test_a_log_that_cannot_be_written_is_told_until_it_can(browser: Browser) -> None:
    source = Fake(overview_of(busy(), log_unavailable_since=0, log_problem="the disk is full"))
    with shown(browser, source):
        banner = browser.text("[role=alert]")
        assert "cannot be written since 1970-01-01 00:00 UTC" in banner
        assert "the disk is full" in banner
        assert "free space" in banner
        source.shown = overview_of(busy())
        browser.wait("document.querySelector('[role=alert]').hidden")


@needs_chromium
def test_a_lost_stream_is_told_and_found_again(browser: Browser) -> None:
    app = application(Fake())
    with Server(app) as server:
        enter(browser, server)
    browser.wait("document.body.dataset.stream == 'lost'")
    told = browser.text("#lost")
    assert "No connection to the service since" in told
    assert "Next attempt in" in told
    with Server(app, server.port):
        browser.wait("document.body.dataset.stream == 'live'")
        assert browser.is_hidden("#lost")


@needs_chromium
def test_who_is_signed_out_is_told(browser: Browser) -> None:
    source = Fake()
    with shown(browser, source):
        source.keys = Keys("another-key-than-before")
        browser.wait("document.getElementById('lost').textContent.includes('You are signed out')")
        assert not browser.is_hidden("#lost-login")


@needs_chromium
def test_the_form_works_where_browsers_do_not_say_from_where_it_came(browser: Browser) -> None:
    with Server(application(Fake())) as server:
        enter(browser, server, host="lan.test")  # neither https nor this machine
        browser.run("document.querySelector('.top form').requestSubmit()")
        browser.wait("location.pathname == '/dashboard/login'")


@needs_chromium
@pytest.mark.parametrize("decisions", [0, 2, 300])
def test_nothing_is_wider_than_the_screen(browser: Browser, decisions: int) -> None:
    problem = {"log_unavailable_since": 0, "log_problem": "x" * 300, "policy": "P" * 100}
    ends = "[...document.querySelectorAll('main *')].map(e => e.getBoundingClientRect().right)"
    with shown(browser, Fake(overview_of(busy(decisions), **problem))):
        for width, is_dark in ((DESK, True), (PHONE, True), (PHONE, False)):
            browser.screen(width, is_dark)
            browser.wait(f"document.documentElement.scrollWidth == {width}")
            browser.wait(f"Math.max(...{ends}) <= {width}")
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(18, 19, 22)" if is_dark else "rgb(246, 246, 243)")
        assert browser.problems() == []


# Sources


class Keys:
    """One key, which may read."""

    def __init__(self, key: str) -> None:
        self.key = key

    def scope_of(self, presented: str) -> Scope | None:
        return Scope.READ if presented == self.key else None


def count(statistics: Statistics, play: Play, reward: float | None, minute: int = 0) -> None:
    """Count a decision, and its reward if it has one."""
    ids = [NASTY, LONG, *"cdefgh"]
    decided = Decided(
        context=NO_FEATURES,
        actions=[OfferedAction(id=id) for id in ids],
        plays=[play],
        digest="",
        learned=0,
    )
    statistics.decide(minute * 60_000, decided)
    if reward is not None:
        statistics.settle(minute * 60_000, decided, play, reward, True)


def played(decisions: int, rewards: int) -> Statistics:
    """Return statistics of an even game, of which the first plays are rewarded, half of them with 1."""
    statistics = Statistics()
    for number in range(decisions):
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=number // 2 % 2)
        count(statistics, play, float(number % 2) if number < rewards else None)
    return statistics


def busy(decisions: int = 300) -> Statistics:
    """Return statistics of some minutes."""
    statistics = Statistics()
    for number in range(decisions):
        chosen = number % 8
        probabilities = [0.3, *[0.1] * 7]
        play = Play(eligible=list(range(8)), probabilities=probabilities, chosen=chosen)
        count(statistics, play, float(number % 3 == 0), 1000 + number * 7 // decisions)
    return statistics


def contested(others: float) -> Statistics:
    """Return statistics where the baseline pays ½, and all others what is given."""
    statistics = Statistics()
    for number in range(800):
        chosen = number % 2
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=chosen)
        pays = others if chosen else 0.5
        count(statistics, play, float(number // 2 % 10 < 10 * pays))
    return statistics


def overview_of(statistics: Statistics, **more: Any) -> Overview:
    given: dict[str, Any] = {
        "time": 70_000_000,
        "version": "0.1.0",
        "uptime_seconds": 4000.0,
        "policy": "NeuralRBMLE-PC",
        "learning_mode": "Online",
        "exploration": 0.2,
        "summary": statistics.summary(),
        "counts": Counts(joined=3, late=1),
        "pending": 5,
        "records": 900,
        "learned": 890,
        "observations": 290,
        "requests": {"rank": 300},
    }
    return Overview(**given | more)


@dataclass
class Fake:
    """A source whose clock and overview are set by hand."""

    shown: Overview = field(default_factory=lambda: overview_of(busy()))
    keys: Guard | None = field(default_factory=lambda: Keys(KEY))
    throttle: Throttle = field(default_factory=Throttle)
    is_stopping: bool = False
    seconds: float = 0.0  # by which its clock is ahead

    def now(self) -> float:
        return time.monotonic() + self.seconds

    def overview(self) -> Overview:
        return self.shown


@dataclass
class App:
    """An application and its source."""

    source: Fake
    asgi: Starlette


def application(source: Fake) -> App:
    return App(source, Starlette(routes=routes(source)))


class Server:
    """uvicorn in a thread."""

    def __init__(self, app: App, port: int = 0) -> None:
        self.app = app
        self.socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self.socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            app.asgi, lifespan="off", ws="none", loop="asyncio", log_level="critical"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))

    def __enter__(self) -> "Server":
        self.app.source.is_stopping = False
        self.thread.start()
        wait_until(lambda: self.server.started)
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()
        self.socket.close()

    def stop(self) -> None:
        self.app.source.is_stopping = True
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def serving(source: Fake) -> Iterator[httpx.Client]:
    with Server(application(source)) as server, httpx.Client(base_url=server.address) as client:
        yield client


def sign_in(
    client: httpx.Client, key: str = KEY, headers: dict[str, str] | None = None
) -> httpx.Response:
    form = urlencode({"key": key.encode(errors="surrogatepass")})
    return client.post("/dashboard/login", content=form, headers=headers)


def cookie(cookies: dict[str, str]) -> dict[str, str]:
    return {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


@contextmanager
def shown(browser: Browser, source: Fake) -> Iterator[None]:
    """Show the page of a source, signed in and live."""
    with Server(application(source)) as server:
        enter(browser, server)
        yield
        browser.go("about:blank")


def enter(browser: Browser, server: Server, host: str = "127.0.0.1") -> None:
    browser.go(f"http://{host}:{server.port}/dashboard/login")
    browser.run(f"document.getElementById('key').value = {KEY!r}")
    browser.run("document.querySelector('form').requestSubmit()")
    browser.wait("location.pathname == '/dashboard' && document.body.dataset.stream == 'live'")
