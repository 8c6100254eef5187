"""The ASGI application: the API, pages for machines, and the dashboard."""

import time
from asyncio import to_thread
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request as PageRequest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route as Page
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

import rbmle
from rbmle.policies.specification import name_of
from rbmle.service.access.budget import WorkBudget
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.throttle import Throttle
from rbmle.service.api.admission import Admission, check_headers
from rbmle.service.api.base import ReplyTo, Request
from rbmle.service.api.dialects import dialect_of
from rbmle.service.api.faults import RefusedError
from rbmle.service.api.native.dialect import NATIVE
from rbmle.service.api.native.openapi import openapi
from rbmle.service.api.refusals import RETRY_SECONDS, refusal
from rbmle.service.api.submit import Api
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.dashboard.overview import Overview
from rbmle.service.dashboard.routes import routes
from rbmle.service.front_end import FrontEnd
from rbmle.service.http.asgi import request_of, serve_api
from rbmle.service.http.metrics import Metrics
from rbmle.service.http.worker_counters import WorkerCounters


class Application:
    """The service behind HTTP; an ASGI application, and what its dashboard shows."""

    def __init__(
        self,
        service: FrontEnd,
        keys: KeyRing | None,
        budget: WorkBudget | None = None,
        counters: WorkerCounters | None = None,
    ) -> None:
        """Answer for a service; without keys everybody may ask, and for as much as they like."""
        self.service = service
        self.admission = Admission(keys, budget=budget or WorkBudget())
        self.metrics = Metrics(service, counters)
        self.stopping: Callable[[], bool] = lambda: False
        self._api: Api | None = None
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
            await self._live(receive, send)
        elif dialect_of(scope["raw_path"]) is None:
            await self._pages(scope, receive, send)
        else:
            await serve_api(self.api, scope, receive, send)

    def submit(self, request: Request, reply_to: ReplyTo) -> None:
        """Answer a request of the API that came whole."""
        self.api.submit(request, reply_to)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin in the loop of the server, and close the service in the end."""
        await receive()
        self._api = Api(self.service, self.admission, self.metrics.count)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.service.close()
        await send({"type": "lifespan.shutdown.complete"})

    @property
    def api(self) -> Api:
        """Return the way to the service, once the server has started."""
        assert self._api is not None
        return self._api

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
        """Return whether the server waits for open replies to end."""
        return self.stopping()

    def now(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    def wall_clock(self) -> float:
        """Return the seconds since the epoch, for sessions of the dashboard."""
        return time.time()

    @property
    def sessions_path(self) -> Path:
        """Return the file of sessions that were signed out."""
        return self.service.data / "sessions-ended"

    def overview(self) -> Overview:
        """Return how the service is, for the dashboard."""
        return _overview(self.service, self.metrics)

    async def _readiness(self, request: PageRequest) -> Response:
        problem = self.service.problem
        if problem is None and not self.metrics.counters.others_are_warm:
            problem = "another worker is still starting"
        if problem is None:
            degraded = self.service.degraded
            return PlainTextResponse("ready\n" + (f"degraded: {degraded}\n" if degraded else ""))
        return PlainTextResponse(problem + "\n", 503, {"retry-after": str(RETRY_SECONDS)})

    async def _figures(self, request: PageRequest) -> Response:
        """Return the metrics, to who may read."""
        asked = request_of(request.scope)
        try:
            check_headers(NATIVE, asked)
            self.admission.admit(NATIVE, asked.headers, asked.address, Scope.READ)
        except RefusedError as error:
            reply = refusal(NATIVE, "metrics", error, asked.path)
            headers = {name.decode(): value.decode() for name, value in reply.headers}
            return Response(reply.body, reply.status, headers, reply.kind.decode())
        text = await to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _home(request: PageRequest) -> Response:
    return RedirectResponse("/dashboard")


async def _health(request: PageRequest) -> Response:
    return PlainTextResponse("alive\n")


async def _openapi(request: PageRequest) -> Response:
    return JSONResponse(openapi(rbmle.__version__))


def _overview(service: FrontEnd, metrics: Metrics) -> Overview:
    """Return all that the dashboard shows."""
    writer, report, published = service.writer, service.report, service.published
    configuration = ServiceConfiguration() if published is None else service.decider.configuration
    status, now = service.status(), time.time()
    failure = None if writer.failure is None else int(writer.failure.since * 1000)
    return Overview(
        time=int(now * 1000),
        version=status.version,
        uptime_seconds=(datetime.now(UTC) - service.started).total_seconds(),
        policy="" if published is None else name_of(published.model.policy),
        learning_mode=configuration.learning_mode.value,
        settle=configuration.settle.value,
        exploration=configuration.exploration,
        summary=report.summary,
        lifts=report.lifts,
        reset_times=report.reset_times,
        resets=report.resets,
        counts=report.counts,
        pending=report.pending,
        records=status.records,
        learned=status.learned,
        observations=status.observations,
        model_age_seconds=None if published is None else max(0.0, now - published.time / 1000),
        log_bytes=report.log_bytes,
        log_unavailable_since=report.unavailable_since if failure is None else failure,
        log_problem=report.broken
        or (report.unavailable_why if writer.failure is None else writer.failure.why),
        fsync_p99_seconds=writer.timings.quantile(0.99),
        latency_p50_seconds=metrics.timings.quantile(0.5),
        latency_p99_seconds=metrics.timings.quantile(0.99),
        requests=dict(metrics.requests),
        errors=dict(metrics.errors),
        workers=metrics.counters.workers,
        days=service.days,
        notices=service.notices,
    )
