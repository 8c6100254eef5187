"""The path of every request of the API: admit, decode, decide, append to the log, reply.

`submit` takes a request with its body. When the body is still arriving, `begin` takes the head and `proceed`
the body. Every error ends in `refuse`.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from rbmle.core.errors import FeatureError, FileError, RBMLEError, SettingError
from rbmle.service.api.admission import (
    Admission,
    check_headers,
    idempotency_key,
    is_costly,
    is_light,
)
from rbmle.service.api.base import (
    Decoded,
    Dialect,
    Fault,
    Refusal,
    RefusedError,
    Reply,
    ReplyTo,
    Request,
    Route,
    TooLargeError,
    TooSlowError,
)
from rbmle.service.api.commits import Commits, Outcome
from rbmle.service.api.decoding import target_of
from rbmle.service.api.operations import Operations
from rbmle.service.front.decider import ConflictError, InFlightError
from rbmle.service.front.front_end import FrontEnd, NotReadyError
from rbmle.service.front.requests import (
    ActivateRequest,
    RankAnswer,
    RankRequest,
    RequestError,
    RewardRequest,
)
from rbmle.service.log.base import DuplicateRequest, LogUnavailable, Row
from rbmle.service.model.features import TooManyProductsError

MOST = 32  # requests in a batch; the log starts to write them while the next are decided
BUSY, BUSY_SECONDS = 4, 0.02  # busy: so many requests in the last batch, so short a time ago
GATHER_SECONDS = (
    0.002  # to wait for more when busy; larger batches cost less, so replies come sooner
)

RETRY_SECONDS = 1
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

STORE_SECONDS = 0.75  # in which a row is on disk, or its request refused
MOST_QUEUED = 10_000  # requests that wait for the log; more are refused
MOST_QUICK_BYTES = (
    2**16
)  # a smaller body has fewer values than the limit, which need not be counted
IN_FLIGHT = (0.0, 0.01, 0.05, 0.2)  # seconds between looks for the first copy of a request

_log = structlog.get_logger()

Item = TypeVar("Item")
Repeat = Callable[[], RankAnswer | None]  # returns the answer to the first copy of a request
Count = Callable[[str, int, float], None]  # takes the operation, the status and the seconds


class Batches(Generic[Item]):
    """Gathers what arrives within one turn of the loop, and when busy for a moment longer."""

    def __init__(self, decide: Callable[[list[Item]], None]) -> None:
        """Create it in the loop; `decide` takes each batch."""
        self._decide = decide
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Item] = []
        self._planned: asyncio.Handle  # of the next batch, while something is waiting
        self._last, self._decided = 0, 0.0  # the size and the time of the last batch

    def add(self, item: Item) -> None:
        """Decide an item soon, in a batch."""
        self._waiting.append(item)
        if len(self._waiting) == 1:
            if self._last >= BUSY and self._loop.time() - self._decided < BUSY_SECONDS:
                self._planned = self._loop.call_later(GATHER_SECONDS, self._next)
            else:
                self._planned = self._loop.call_soon(self._next)
        elif len(self._waiting) == MOST:
            self._planned.cancel()
            self._planned = self._loop.call_soon(self._next)

    def _next(self) -> None:
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._last, self._decided = len(batch), self._loop.time()
        if self._waiting:
            self._planned = self._loop.call_soon(self._next)
        self._decide(batch)


def refusal(dialect: Dialect, operation: str, error: BaseException) -> Reply:
    """Return the reply that refuses an operation because of an error."""
    problem = _problem(dialect, operation, error)
    reply = dialect.refuse(problem)
    headers = reply.headers
    if problem.retry_after is not None:
        headers += ((b"retry-after", b"%d" % problem.retry_after),)
    if problem.status == Fault.TIMEOUT.value:
        headers += ((b"connection", b"close"),)  # the rest of its body is not read
    return msgspec.structs.replace(reply, headers=headers)


def _problem(dialect: Dialect, operation: str, error: BaseException) -> Refusal:
    """Return why a request is refused; an unexpected error is logged without the request."""
    if isinstance(error, RefusedError):
        return error.problem
    if isinstance(error, RequestError):
        target = target_of(error.target, {}) or None
        return replace(dialect.fault(Fault.MALFORMED, str(error)), target=target)
    fault = _fault_of(error)
    if fault is None:
        frames = traceback.format_tb(error.__traceback__)  # the message may contain features
        _log.error(
            "unexpected error", operation=operation, error=type(error).__name__, frames=frames
        )
        return dialect.fault(
            Fault.INTERNAL, "the service failed on this request; its own log says why"
        )
    message = error.public_message if isinstance(error, LogUnavailable) else str(error)
    problem = dialect.fault(fault, message)
    if isinstance(error, TooManyProductsError):
        problem = replace(problem, target="actions")
    return replace(problem, retry_after=RETRY_SECONDS) if fault is Fault.UNAVAILABLE else problem


def _fault_of(error: BaseException) -> Fault | None:
    return next((fault for kind, fault in FAULTS.items() if isinstance(error, kind)), None)


@dataclass(slots=True)
class PendingCall:
    """An admitted request on the way to its reply."""

    route: Route
    reply_to: ReplyTo
    begun: float  # by time.perf_counter()
    owner: str | None = None  # the key that admitted it; None: the service has no keys
    key: str | None = None  # the idempotency key
    body: bytes = b""
    is_checked: bool = False  # its features were decoded strictly

    @property
    def most_bytes(self) -> int:
        """How large its body may be."""
        return self.route.endpoint.most_bytes


class Api:
    """The service as its clients see it; one for each loop."""

    def __init__(self, service: FrontEnd, admission: Admission, count: Count) -> None:
        """Create it in the loop; `count` is told of each reply."""
        self.commits = Commits(service.writer, STORE_SECONDS)
        self._service = service
        self._decider = service.decider
        self._admission = admission
        self._count = count
        self._operations = Operations(service, self.commits)
        self._ranks = Batches(self._decide)
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself does not keep them alive

    def submit(self, request: Request, reply_to: ReplyTo) -> None:
        """Answer a complete request; `reply_to` is called once, now or later."""
        call = self.begin(request, reply_to)
        if call is not None:
            self.proceed(call, request.body)

    def begin(self, request: Request, reply_to: ReplyTo) -> PendingCall | None:
        """Admit a request by its head; return None if it was refused, and replied to."""
        route = request.route
        call = PendingCall(route, reply_to, time.perf_counter())
        try:
            if route.problem is not None:
                raise RefusedError(route.problem)
            check_headers(route.dialect, request.repeated)
            call.owner = self._admission.admit(
                route.dialect, request.headers, request.address, route.endpoint.scope
            )
            call.key = idempotency_key(route.dialect, request.headers)
        except Exception as error:
            self.refuse(call, error)
            return None
        return call

    def proceed(self, call: PendingCall, body: bytes) -> None:
        """Decode the body of an admitted request, and do what it asks."""
        call.begun, call.body = time.perf_counter(), body
        try:
            match _decode(call):
                case RankRequest() as rank:
                    if not is_light(body) and is_costly(rank):
                        self._admission.charge(call.route.dialect, call.owner, rank)
                    self._ranks.add((call, rank))
                case RewardRequest() as reward:
                    checks_rewards = call.route.dialect.checks_rewards
                    if checks_rewards and self._decider.slots.may_mismatch(reward):
                        self._start(call, self._check_reward(call, reward))
                    else:
                        self._reward(call, reward)
                case ActivateRequest() as activate:
                    self._append(call, self._decider.activate_row(activate), lambda: None)
                case None:
                    self._start(call, self._operate(call))
        except Exception as error:
            self.refuse(call, error)

    def refuse(self, call: PendingCall, error: BaseException) -> None:
        """Reply why a request is refused."""
        self._reply(call, refusal(call.route.dialect, call.route.endpoint.name, error))

    def _decide(self, ranks: list[tuple[PendingCall, RankRequest]]) -> None:
        """Decide a batch; if that fails, one by one, because one request is at fault."""
        try:
            self._check_queue()
            drafts = self._decider.draft([(rank, call.key, call.body) for call, rank in ranks])
            replies = [
                call.route.encode(draft.answer)
                for (call, _), draft in zip(ranks, drafts, strict=True)
            ]
        except Exception as error:
            if len(ranks) == 1:
                self.refuse(ranks[0][0], _explain(ranks[0][0], error))
                return
            for pair in ranks:
                self._decide([pair])
            return
        for (call, rank), draft, reply in zip(ranks, drafts, replies, strict=True):
            repeat = partial(self._decider.repeat, draft.answer.event, rank, call.body)
            self._store(call, draft.row, reply, repeat)

    async def _check_reward(self, call: PendingCall, reward: RewardRequest) -> None:
        """Store a reward if its event can have it, which may need a look at the log."""
        await asyncio.to_thread(self._decider.slots.check, reward)
        self._reward(call, reward)

    def _reward(self, call: PendingCall, reward: RewardRequest) -> None:
        self._service.check_reward(reward)
        row = self._decider.reward_row(reward, call.key)
        self._append(call, row, lambda: self._decider.check_rewarded(reward, call.key))

    def _append(self, call: PendingCall, row: Row, repeat: Repeat) -> None:
        """Store a row that needs no decision."""
        self._check_queue()
        self._store(call, row, call.route.encode(None), repeat)

    def _store(self, call: PendingCall, row: Row, reply: Reply, repeat: Repeat) -> None:
        """Store a row, and reply when it is on disk; if it was stored before, as `repeat` says."""

        def finish(outcome: Outcome) -> None:
            if isinstance(outcome, DuplicateRequest):
                self._start(call, self._reply_again(call, repeat))
            elif isinstance(outcome, BaseException):
                self.refuse(call, outcome)
            else:
                self._reply(call, reply)

        self.commits.append(row, finish)

    async def _reply_again(self, call: PendingCall, repeat: Repeat) -> None:
        """Reply to a repeated request; its first copy may be about to be stored."""
        for seconds in IN_FLIGHT:
            await asyncio.sleep(seconds)
            try:
                answer = await asyncio.to_thread(repeat)
            except InFlightError as error:
                last = error
            else:
                self._reply(call, call.route.encode(answer))
                return
        raise last

    async def _operate(self, call: PendingCall) -> None:
        endpoint = call.route.endpoint
        assert endpoint.operate is not None
        body = await endpoint.operate(self._operations, call.route.id, call.body)
        self._reply(call, Reply(endpoint.status, body, kind=endpoint.kind))

    def _reply(self, call: PendingCall, reply: Reply) -> None:
        """Reply, and count it; an error here harms no other request."""
        try:
            call.reply_to(reply)
            seconds = time.perf_counter() - call.begun
            self._count(call.route.endpoint.name, reply.status, seconds)
        except Exception as error:
            message = f"a request to {call.route.endpoint.name} could not be replied to"
            context = {"message": message, "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _start(self, call: PendingCall, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that ends with the reply to a request; refuse it if that fails."""

        async def run() -> None:
            try:
                await coroutine
            except Exception as error:
                self.refuse(call, error)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _check_queue(self) -> None:
        """Raise LogUnavailable if too many requests wait for the log."""
        queued = self._service.writer.waiting
        if queued > MOST_QUEUED:
            raise LogUnavailable(
                f"{queued} requests are waiting for the log; send the same request again later",
                is_public=True,
            )


def _decode(call: PendingCall) -> Decoded | None:
    """Decode a body, quickly if that suffices: features that are used in the decision are checked there."""
    if len(call.body) <= MOST_QUICK_BYTES:
        try:
            decoded = call.route.decode(call.body, is_strict=False)
            if not _has_unused_features(decoded):
                return decoded
        except (msgspec.MsgspecError, RBMLEError, ValueError, RecursionError):
            pass  # strict decoding names the invalid part
    decoded = call.route.decode(call.body, is_strict=True)
    call.is_checked = decoded is not None
    return decoded


def _has_unused_features(decoded: Decoded | None) -> bool:
    """Return whether a rank has excluded actions, whose features the decision does not read."""
    return isinstance(decoded, RankRequest) and (
        bool(decoded.excluded) or any(slot.excluded for slot in decoded.slots)
    )


def _explain(call: PendingCall, error: Exception) -> Exception:
    """Return why a rank cannot be decided, with the invalid part if its features are invalid."""
    if not call.is_checked and _fault_of(error) is not Fault.UNAVAILABLE:
        try:
            call.route.decode(call.body, is_strict=True)
        except RefusedError as refused:
            return refused
    return error
