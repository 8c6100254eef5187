"""HTTP: who may ask, what is asked in which dialect, and pages to look at."""

import time
from asyncio import to_thread
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route as Page

import rbmle
from rbmle.service.access.budget import WorkBudget
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.throttle import Throttle
from rbmle.service.api.admission import Admission, idempotency_key
from rbmle.service.api.calls import Calls
from rbmle.service.api.dialects import NATIVE, Wire, wire_of
from rbmle.service.api.faults import Fault, GoneError, Problem, RefusedError
from rbmle.service.api.native.openapi import openapi
from rbmle.service.api.personalizer.routes import Operation
from rbmle.service.api.refusals import RETRY_SECONDS, problem_of, refusal
from rbmle.service.api.replies import Answer
from rbmle.service.api.waiting import Waiting
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.routes import routes
from rbmle.service.front_end import FrontEnd
from rbmle.service.http.metrics import Metrics
from rbmle.service.http.overviews import overview_of
from rbmle.service.http.receiving import Receive, Send, receive_body
from rbmle.service.http.receiving import Scope as Connection
from rbmle.service.http.turns import Turns

MOST_BYTES = 2**20  # of a body
MOST_MODEL_BYTES = 2**28
BODY_SECONDS = 10.0
STORE_SECONDS = 0.75  # in which a write is on disk, or refused


class Application:
    """The service behind HTTP; an ASGI application, and what its dashboard shows."""

    def __init__(
        self, service: FrontEnd, keys: KeyRing | None, budget: WorkBudget | None = None
    ) -> None:
        """Answer for a service; without keys everybody may ask, and for as much as they like."""
        self.service = service
        self.admission = Admission(keys, budget=budget or WorkBudget())
        self.metrics = Metrics(service)
        self.stopping: Callable[[], bool] = lambda: False
        self._turns: Turns | None = None
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
        wire = wire_of(scope["raw_path"])
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
        calls = Calls(self.service, Waiting(STORE_SECONDS))
        self._turns = Turns(calls, self.admission, self.metrics)
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
            who = self.admission.admit(wire, headers, _address(scope), route.scope)
            key = idempotency_key(wire, headers)
            limit = MOST_MODEL_BYTES if route.operation is Operation.PUT_MODEL else MOST_BYTES
            body = await receive_body(scope, receive, limit=limit, seconds=BODY_SECONDS)
            if operation.startswith("rank"):
                self.admission.charge(wire, who, body)
            return operation, await wire.answer(self.turns.calls, route, body, key)  # type: ignore[arg-type]  # its own
        except GoneError:
            raise
        except RefusedError as error:
            problem = error.problem
        except Exception as error:
            problem = problem_of(wire, operation, error)
        return operation, refusal(wire, problem, path)

    @property
    def turns(self) -> Turns:
        """Return who takes rank calls, once the server has started."""
        assert self._turns is not None
        return self._turns

    @property
    def keys(self) -> KeyRing | None:
        """Return the keys, for the dashboard."""
        return self.admission.keys

    @property
    def throttle(self) -> Throttle:
        """Return who has guessed too often, for the dashboard."""
        return self.admission.throttle

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
            headers = dict(request.scope["headers"])
            self.admission.admit(NATIVE, headers, _address(request.scope), Scope.READ)
        except RefusedError as error:
            answer = refusal(NATIVE, error.problem, b"/metrics")
            said = {name.decode(): value.decode() for name, value in answer.headers}
            return Response(answer.body, answer.status, said, answer.kind.decode())
        text = await to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


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
