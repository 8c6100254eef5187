"""HTTP: who may ask, what is asked in which dialect, and pages to look at."""

import time
import traceback
from asyncio import to_thread
from collections.abc import Callable
from dataclasses import replace

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route as Page

import rbmle
from rbmle.core.errors import FileError, SettingError
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.routes import routes
from rbmle.service.decider import ConflictError, InFlightError
from rbmle.service.dialects.base import Fault, Problem, RefusedError
from rbmle.service.dialects.native_openapi import openapi
from rbmle.service.dialects.personalizer import KEY_HEADER
from rbmle.service.dialects.personalizer_routes import Operation
from rbmle.service.features import FeatureError
from rbmle.service.http.answers import Answer
from rbmle.service.http.answers_native import Native
from rbmle.service.http.answers_personalizer import Personalizer
from rbmle.service.http.calls import Calls
from rbmle.service.http.metrics import Metrics
from rbmle.service.http.overviews import overview_of
from rbmle.service.http.receiving import (
    GoneError,
    Receive,
    Send,
    TooLargeError,
    TooSlowError,
    receive_body,
)
from rbmle.service.http.receiving import Scope as Connection
from rbmle.service.http.waiting import Waiting
from rbmle.service.logs.errors import LogUnavailable
from rbmle.service.security.keys import KeyRing, Scope
from rbmle.service.security.throttle import Throttle
from rbmle.service.service import NotReadyError, Service

MOST_BYTES = 2**20  # of a body
MOST_MODEL_BYTES = 2**28
BODY_SECONDS = 10.0
STORE_SECONDS = 0.75  # in which a write is on disk, or refused
RETRY_SECONDS = 1
LONGEST_KEY = 256  # of an idempotency key

FAULTS: dict[type[Exception], Fault] = {
    FeatureError: Fault.MALFORMED,
    FileError: Fault.MALFORMED,
    SettingError: Fault.MALFORMED,
    ConflictError: Fault.CONFLICT,
    TooLargeError: Fault.TOO_LARGE,
    TooSlowError: Fault.TIMEOUT,
    LogUnavailable: Fault.UNAVAILABLE,
    NotReadyError: Fault.UNAVAILABLE,
    InFlightError: Fault.UNAVAILABLE,
}

Wire = Native | Personalizer
_WIRES: dict[bytes, Wire] = {b"v1": Native(), b"personalizer": Personalizer()}
_log = structlog.get_logger()


class Application:
    """The service behind HTTP; an ASGI application, and what its dashboard shows."""

    def __init__(self, service: Service, keys: KeyRing | None) -> None:
        """Answer for a service; without keys everybody may ask."""
        self.service = service
        self.keys = keys
        self.throttle = Throttle()
        self.metrics = Metrics(service)
        self.stopping: Callable[[], bool] = lambda: False
        self._calls: Calls | None = None
        self._pages = Starlette(
            routes=[
                Page("/", _home),
                Page("/healthz", _health),
                Page("/readyz", self._readiness),
                Page("/metrics", self._figures),
                Page("/openapi.json", _openapi),
                *routes(self),
            ]
        )

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server from start to stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        wire = _WIRES.get(scope["raw_path"].lstrip(b"/").partition(b"/")[0].lower())
        if wire is None:
            await self._pages(scope, receive, send)
            return
        begun = time.perf_counter()
        try:
            operation, answer = await self._answer(wire, scope, receive)
        except GoneError:
            return
        self.metrics.count(operation, answer.status, time.perf_counter() - begun)
        await _send(send, answer)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin in the loop of the server, and close the service in the end."""
        await receive()
        self._calls = Calls(self.service, Waiting(STORE_SECONDS))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.service.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, wire: Wire, scope: Connection, receive: Receive) -> tuple[str, Answer]:
        """Return what was asked, and the answer."""
        path: bytes = scope["raw_path"]
        operation = "none"
        try:
            route = wire.route(scope["method"], path, scope["query_string"])
            if route is None or isinstance(route, Problem):
                raise RefusedError(route or wire.fault(Fault.NOT_FOUND, "there is nothing here"))
            operation = route.operation.name.lower()
            headers = dict(scope["headers"])
            self._admit(
                wire, headers, _address(scope), Scope.READ if route.is_read else Scope.ADMIN
            )
            key = _idempotency_key(wire, headers)
            limit = MOST_MODEL_BYTES if route.operation is Operation.PUT_MODEL else MOST_BYTES
            body = await receive_body(scope, receive, limit=limit, seconds=BODY_SECONDS)
            assert self._calls is not None  # the server has started
            return operation, await wire.answer(self._calls, route, body, key)  # type: ignore[arg-type]  # its own
        except GoneError:
            raise
        except RefusedError as error:
            problem = error.problem
        except Exception as error:
            problem = _problem(wire, operation, error)
        return operation, _refusal(wire, problem, path)

    def _admit(self, wire: Wire, headers: dict[bytes, bytes], address: str, needed: Scope) -> None:
        """Raise RefusedError unless there is a key that allows what is asked."""
        if self.keys is None:
            return
        seconds = self.throttle.retry_after(address, self.now())
        if seconds:
            message = f"too many attempts with a wrong key; try again in {seconds} s"
            problem = wire.fault(Fault.THROTTLED, message)
            raise RefusedError(replace(problem, retry_after=seconds))
        presented = _presented(headers)
        scope = None if presented is None else self.keys.scope_of(presented)
        if scope is None:
            if presented is not None:
                self.throttle.failed(address, self.now())
            raise RefusedError(
                wire.fault(
                    Fault.UNAUTHORIZED,
                    "there is no key, or it is none of this service; send one as "
                    "Authorization: Bearer KEY, or as Ocp-Apim-Subscription-Key: KEY",
                )
            )
        if scope < needed:
            message = "this key is for reading only; use an admin key"
            raise RefusedError(wire.fault(Fault.FORBIDDEN, message))

    @property
    def is_stopping(self) -> bool:
        """Return whether the server waits for open answers to end."""
        return self.stopping()

    def now(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    def overview(self) -> Overview:
        """Return how the service is, for the dashboard."""
        return overview_of(self.service, self.metrics)

    async def _readiness(self, request: Request) -> Response:
        problem = self.service.problem
        if problem is None:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(problem + "\n", 503, {"retry-after": str(RETRY_SECONDS)})

    async def _figures(self, request: Request) -> Response:
        """Return the metrics, to who may read."""
        try:
            self._admit(
                _WIRES[b"v1"], dict(request.scope["headers"]), _address(request.scope), Scope.READ
            )
        except RefusedError as error:
            answer = _refusal(_WIRES[b"v1"], error.problem, b"/metrics")
            headers = {name.decode(): value.decode() for name, value in answer.headers}
            return Response(answer.body, answer.status, headers, answer.kind.decode())
        text = await to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _problem(wire: Wire, operation: str, error: Exception) -> Problem:
    """Return the refusal of what went wrong; what nobody foresaw is logged, without the request."""
    what = next((FAULTS[kind] for kind in FAULTS if isinstance(error, kind)), None)
    if what is None:
        frames = traceback.format_tb(error.__traceback__)  # the message may have features in it
        _log.error("unforeseen", operation=operation, error=type(error).__name__, frames=frames)
        return wire.fault(Fault.INTERNAL, "the service has a fault of its own; its log has more")
    problem = wire.fault(what, str(error))
    return replace(problem, retry_after=RETRY_SECONDS) if what is Fault.UNAVAILABLE else problem


def _refusal(wire: Wire, problem: Problem, path: bytes) -> Answer:
    """Return the answer of a refusal."""
    answer = wire.refuse(problem, path)
    headers = answer.headers
    if problem.retry_after is not None:
        headers += ((b"retry-after", b"%d" % problem.retry_after),)
    if problem.status == Fault.TIMEOUT.value:
        headers += ((b"connection", b"close"),)  # the rest of its body is not waited for
    return replace(answer, headers=headers)


def _presented(headers: dict[bytes, bytes]) -> str | None:
    """Return the key that a client presents, in either of the two ways."""
    key = headers.get(KEY_HEADER.encode())
    if key is None:
        kind, _, key = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            return None
    return key.strip().decode("latin-1")


def _idempotency_key(wire: Wire, headers: dict[bytes, bytes]) -> str | None:
    """Return the key that makes a repeated request one."""
    given = headers.get(wire.request_header)
    if not given:
        return None
    if len(given) > LONGEST_KEY or not given.isascii():
        message = (
            f"the header {wire.request_header.decode()} has {len(given)} bytes; send at most "
            f"{LONGEST_KEY}, all of them ASCII"
        )
        raise RefusedError(wire.fault(Fault.MALFORMED, message))
    return given.decode()


def _address(scope: Connection) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _send(send: Send, answer: Answer) -> None:
    headers = [(b"content-length", b"%d" % len(answer.body)), *answer.headers]
    if answer.body:
        headers.append((b"content-type", answer.kind))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _home(request: Request) -> Response:
    return RedirectResponse("/dashboard")


async def _health(request: Request) -> Response:
    return PlainTextResponse("alive\n")


async def _openapi(request: Request) -> Response:
    return JSONResponse(openapi(rbmle.__version__))
