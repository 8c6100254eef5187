"""Services that a dashboard shows, and a server for it."""

import hashlib
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
import uvicorn
from starlette.applications import Starlette

from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.limits import Throttle
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.routes import routes
from rbmle.service.front.requests import StatusAnswer
from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play
from rbmle.service.model.report import Counts, Report
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.summary import Statistics
from tests.browser import PATIENCE, Browser, wait_until

KEY = "a-key-that-may-read"
NASTY = '<script>alert("1")</script>'
LONG = "action-with-a-long-name-" + "x" * 200


class Keys(KeyRing):
    """One key, which may read."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.path = Path("data/keys.json")

    def scope_of(self, presented: str) -> Scope | None:
        return Scope.READ if presented == self.key else None

    def digests(self, needed: Scope) -> list[bytes]:
        return [hashlib.sha256(self.key.encode()).digest()]


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


def decided_of(action: str) -> Decided:
    """Return a decision of an action that was the only one."""
    play = Play(eligible=[0], probabilities=[1.0], chosen=0)
    actions = [OfferedAction(id=action)]
    return Decided(context=NO_FEATURES, actions=actions, plays=[play], digest="", learned=0)


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


def overview_of(statistics: Statistics, **changes: Any) -> Overview:
    """Return an overview; changes may be of its report and of its configuration too."""

    def take(kind: Any) -> dict[str, Any]:
        return {name: changes.pop(name) for name in kind if name in changes}

    time = changes.pop("time", 70_000_000)
    configuration = ServiceConfiguration(exploration=0.2, **take(["learning_mode", "settle"]))
    report: dict[str, Any] = {"pending": 5, "counts": Counts(joined=3, late=1)}
    report |= {"summary": statistics.summary()} | take(set(Report.__struct_fields__) - {"notices"})
    status = StatusAnswer(version="0.1.0", records=900, learned=890, backlog=10, observations=290)
    others: dict[str, Any] = {"policy": "NeuralRBMLE-PC", "requests": {"rank": 300}} | changes
    return Overview(
        time=time,
        uptime_seconds=4000.0,
        configuration=configuration,
        report=Report(time=time, **report),
        status=status,
        days=statistics.ranges.by_day(),
        **others,
    )


@dataclass
class Fake:
    """A source whose clock and overview are set by hand."""

    shown: Overview = field(default_factory=lambda: overview_of(busy()))
    keys: KeyRing | None = field(default_factory=lambda: Keys(KEY))
    throttle: Throttle = field(default_factory=Throttle)
    is_stopping: bool = False
    sessions_path: Path | None = None
    seconds: float = 0.0  # by which its clock is ahead

    def now(self) -> float:
        return time.monotonic() + self.seconds

    def wall_clock(self) -> float:
        return time.time() + self.seconds

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
