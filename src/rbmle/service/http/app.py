"""The ASGI application: the API, health and metrics, and the dashboard."""

import asyncio
import time
from asyncio import to_thread
from collections.abc import Callable
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request as PageRequest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route as Page
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

import rbmle
from rbmle.policies.registry import name_of
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.limits import Throttle, WorkBudget
from rbmle.service.api.admission import Admission, check_headers
from rbmle.service.api.base import (
    BodyNotReceivedError,
    GoneError,
    RefusedError,
    Reply,
    ReplyTo,
    Request,
    TooLargeError,
    TooSlowError,
    repeated_headers,
)
from rbmle.service.api.native import NATIVE
from rbmle.service.api.openapi import openapi
from rbmle.service.api.routes import find_route, is_api
from rbmle.service.api.submit import RETRY_SECONDS, Api, refusal
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.routes import routes
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.http.metrics import Metrics, WorkerCounters
from rbmle.service.settings import ServiceConfiguration

BODY_SECONDS = 10.0  # for a body to arrive


async def serve_api(api: Api, scope: ASGIScope, receive: Receive, send: Send) -> None:
    """Submit a request and send its reply; the body is received only if the head is admitted."""
    replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    call = api.begin(request_of(scope), lambda reply: _resolve(replied, reply))
    if call is not None:
        try:
            body = await receive_body(scope, receive, limit=call.most_bytes, seconds=BODY_SECONDS)
        except GoneError:
            return
        except BodyNotReceivedError as error:
            api.refuse(call, error)
        else:
            api.proceed(call, body)
    await send_reply(send, await replied)


def request_of(scope: ASGIScope) -> Request:
    return Request(
        route=find_route(scope["method"], scope["raw_path"], scope["query_string"]),
        headers=dict(scope["headers"]),
        address=_address_of(scope),
        repeated=repeated_headers(scope["headers"]),
    )


def _address_of(scope: ASGIScope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


async def send_reply(send: Send, reply: Reply) -> None:
    headers = [(b"content-length", b"%d" % len(reply.body)), *reply.headers]
    if reply.body:
        headers.append((b"content-type", reply.kind))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _resolve(replied: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not replied.done():  # else the server stopped, and cancelled it
        replied.set_result(reply)


async def receive_body(scope: ASGIScope, receive: Receive, *, limit: int, seconds: float) -> bytes:
    """Return the body; raise BodyNotReceivedError if it is larger or slower than allowed.

    A body that is announced as too large is refused before it is read.
    """
    if int(dict(scope["headers"]).get(b"content-length", 0)) > limit:
        raise TooLargeError(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneError("the client left before its body arrived")
                body += message.get("body", b"")
                if len(body) > limit:
                    raise TooLargeError(limit)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise TooSlowError(
            f"the body did not arrive within {seconds:g} s; send it at once, or over a faster connection"
        ) from None


class Application:
    """The service behind HTTP: an ASGI application, and the source of its dashboard."""

    now = staticmethod(time.monotonic)
    wall_clock = staticmethod(time.time)

    def __init__(
        self,
        service: FrontEnd,
        keys: KeyRing | None,
        budget: WorkBudget | None = None,
        counters: WorkerCounters | None = None,
    ) -> None:
        """Create it; without keys, everybody may call the service, without limits."""
        self.service = service
        self.keys = keys
        self.admission = Admission(keys, budget=budget or WorkBudget())
        self.metrics = Metrics(service, counters)
        self.sessions_path = service.data / "sessions-ended"
        self.stopping: Callable[[], bool] = lambda: False
        self.api: Api  # from the start of the server on
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

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server from start to stop."""
        if scope["type"] == "lifespan":
            await receive()
            self.api = Api(self.service, self.admission, self.metrics.count)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.service.close()
            await send({"type": "lifespan.shutdown.complete"})
        elif is_api(scope["raw_path"]):
            await serve_api(self.api, scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    def submit(self, request: Request, reply_to: ReplyTo) -> None:
        """Answer a complete request of the API."""
        self.api.submit(request, reply_to)

    @property
    def throttle(self) -> Throttle:
        """Counts wrong keys, for the dashboard."""
        return self.admission.throttle

    @property
    def is_stopping(self) -> bool:
        """Whether the server waits for open responses to end."""
        return self.stopping()

    async def _readiness(self, request: PageRequest) -> Response:
        problem = self.service.problem
        if problem is None and not self.metrics.counters.others_are_warm:
            problem = "another worker is still starting"
        if problem is None:
            degraded = self.service.degraded
            return PlainTextResponse("ready\n" + (f"degraded: {degraded}\n" if degraded else ""))
        return PlainTextResponse(problem + "\n", 503, {"retry-after": str(RETRY_SECONDS)})

    async def _figures(self, request: PageRequest) -> Response:
        """Return the metrics; this needs a read key."""
        headers, address = request.scope["headers"], _address_of(request.scope)
        try:
            check_headers(NATIVE, repeated_headers(headers))
            self.admission.admit(NATIVE, dict(headers), address, Scope.READ)
        except RefusedError as error:
            reply = refusal(NATIVE, "metrics", error)
            headers = {name.decode(): value.decode() for name, value in reply.headers}
            return Response(reply.body, reply.status, headers, reply.kind.decode())
        text = await to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def overview(self) -> Overview:
        """Return the state of the service, for the dashboard."""
        service, metrics = self.service, self.metrics
        writer, report, published = service.writer, service.report, service.published
        configuration = (
            ServiceConfiguration() if published is None else service.decider.configuration
        )
        now, failure = time.time(), writer.failure
        return Overview(
            time=int(now * 1000),
            uptime_seconds=(datetime.now(UTC) - service.started).total_seconds(),
            policy="" if published is None else name_of(published.model.policy),
            configuration=configuration,
            report=report,
            status=service.status(),
            model_age_seconds=None if published is None else max(0.0, now - published.time / 1000),
            log_unavailable_since=int(1000 * failure.since)
            if failure
            else report.unavailable_since,
            log_problem=report.broken or (failure.why if failure else report.unavailable_why),
            fsync_p99_seconds=writer.timings.quantile(0.99),
            latency_p50_seconds=metrics.timings.quantile(0.5),
            latency_p99_seconds=metrics.timings.quantile(0.99),
            requests=dict(metrics.requests),
            errors=dict(metrics.errors),
            workers=metrics.counters.workers,
            days=service.days,
            notices=service.notices,
        )


async def _home(request: PageRequest) -> Response:
    return RedirectResponse("/dashboard")


async def _health(request: PageRequest) -> Response:
    return PlainTextResponse("alive\n")


async def _openapi(request: PageRequest) -> Response:
    return JSONResponse(openapi(rbmle.__version__))
