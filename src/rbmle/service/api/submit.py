"""The one way in: admit, route, decode, decide, append, reply.

`submit` takes a request that came whole. Where a body is still on its way, `begin` takes the head and
`proceed` the body; `submit` is no more than the two. Whatever goes wrong on the way ends in `refuse`.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.api.admission import Admission, check_headers, idempotency_key
from rbmle.service.api.base import Decoded, Dialect, Reply, ReplyTo, Request, Route
from rbmle.service.api.batches import Batches
from rbmle.service.api.commits import Commits, Outcome
from rbmle.service.api.dialects import resolve
from rbmle.service.api.faults import Fault, RefusedError
from rbmle.service.api.operations import Operations
from rbmle.service.api.refusals import fault_of, refusal
from rbmle.service.api.work import is_costly, is_light
from rbmle.service.deciding.decider import InFlightError
from rbmle.service.deciding.requests import ActivateRequest, RankAnswer, RankRequest, RewardRequest
from rbmle.service.front_end import FrontEnd
from rbmle.service.log.base import Row
from rbmle.service.log.errors import DuplicateRequest, LogUnavailable

STORE_SECONDS = 0.75  # in which something is on disk, or refused
MOST_QUEUED = 10_000  # requests that wait for the log; more are sent away
MOST_QUICK_BYTES = 2**16  # of a body; it has fewer values than the limit, which need not be counted
IN_FLIGHT = (0.0, 0.01, 0.05, 0.2)  # seconds after which an earlier copy of a request is looked for

Rank = tuple["PendingRequest", RankRequest]
Recorded = Callable[[], RankAnswer | None]  # what an earlier copy of a request was answered
Count = Callable[[str, int, float], None]  # is told the operation, the status and the seconds


@dataclass(slots=True)
class PendingRequest:
    """A request on its way to its reply."""

    request: Request
    dialect: Dialect
    route: Route
    reply_to: ReplyTo
    begun: float  # by time.perf_counter()
    owner: str | None = None  # the key that admitted it; None: the service has no keys
    key: str | None = None  # that makes a repeated request one; None: the client sent none
    body: bytes = b""  # while the features in it may be wrong

    @property
    def operation(self) -> str:
        """Return the name of what is asked."""
        return self.route.endpoint.name

    @property
    def most_bytes(self) -> int:
        """Return how large its body may be."""
        return self.route.endpoint.most_bytes


class Api:
    """The service as its clients see it; one for each loop."""

    def __init__(self, service: FrontEnd, admission: Admission, count: Count) -> None:
        """Make it in the loop; each reply is counted."""
        self.commits = Commits(service.writer, STORE_SECONDS)
        self._service = service
        self._admission = admission
        self._count = count
        self._operations = Operations(service, self.commits)
        self._ranks = Batches(self._decide)
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself does not hold them

    def submit(self, request: Request, reply_to: ReplyTo) -> None:
        """Answer a request that came whole: `reply_to` is called once, now or later."""
        call = self.begin(request, reply_to)
        if call is not None:
            self.proceed(call, request.body)

    def begin(self, request: Request, reply_to: ReplyTo) -> PendingRequest | None:
        """Route and admit a request by its head; None: it is refused, and that was replied."""
        found = resolve(request)
        call = PendingRequest(request, found.dialect, found.route, reply_to, time.perf_counter())
        try:
            if found.problem is not None:
                raise RefusedError(found.problem)
            check_headers(found.dialect, request)
            call.owner = self._admission.admit(
                found.dialect, request.headers, request.address, found.route.endpoint.scope
            )
            call.key = idempotency_key(found.dialect, request.headers)
        except Exception as error:
            self.refuse(call, error)
            return None
        return call

    def proceed(self, call: PendingRequest, body: bytes) -> None:
        """Go on with a request whose body is whole: decode it, and do what it asks."""
        call.begun, call.body = time.perf_counter(), body
        decider = self._service.decider
        try:
            match _decoded(call):
                case RankRequest() as rank:
                    if not is_light(body) and is_costly(rank):
                        self._admission.charge(call.dialect, call.owner, body)
                    self._ranks.add((call, rank))
                case RewardRequest() as reward:
                    if call.dialect.checks_rewards and decider.slots.may_mismatch(reward):
                        self._start(self._check_reward(call, reward))
                    else:
                        self._reward(call, reward)
                case ActivateRequest() as activate:
                    self._append(call, decider.activate_row(activate), lambda: None)
                case None:
                    self._start(self._operate(call))
        except Exception as error:
            self.refuse(call, error)

    def refuse(self, call: PendingRequest, error: BaseException) -> None:
        """Reply why a request is refused."""
        self._reply(call, refusal(call.dialect, call.operation, error, call.request.path))

    def _decide(self, ranks: list[Rank]) -> None:
        """Decide some ranks together; if that fails, each by itself, for one of them has the fault."""
        decider = self._service.decider
        try:
            self._check_queue()
            drafts = decider.draft([(rank, call.key) for call, rank in ranks])
            replies = [
                call.route.encode(draft.answer)
                for (call, _), draft in zip(ranks, drafts, strict=True)
            ]
        except Exception as error:
            if len(ranks) == 1:
                self.refuse(ranks[0][0], _worded(ranks[0][0], error))
                return
            for rank in ranks:
                self._decide([rank])
            return
        for (call, _), draft, reply in zip(ranks, drafts, replies, strict=True):
            self._store(
                call, draft.row, reply, partial(decider.recorded, draft.answer.event, draft.digest)
            )

    async def _check_reward(self, call: PendingRequest, reward: RewardRequest) -> None:
        """Store a reward if its event can have it; to know that may need the log."""
        try:
            await asyncio.to_thread(self._service.decider.slots.check, reward)
            self._reward(call, reward)
        except Exception as error:
            self.refuse(call, error)

    def _reward(self, call: PendingRequest, reward: RewardRequest) -> None:
        decider = self._service.decider
        self._service.check_reward(reward)
        row = decider.reward_row(reward, call.key)
        self._append(call, row, lambda: decider.check_rewarded(reward, call.key))

    def _append(self, call: PendingRequest, row: Row, recorded: Recorded) -> None:
        """Store what needs no decision."""
        self._check_queue()
        self._store(call, row, call.route.encode(None), recorded)

    def _store(self, call: PendingRequest, row: Row, reply: Reply, recorded: Recorded) -> None:
        """Store a row, and reply when it is on disk; if it was there before, as was `recorded`."""

        def committed(outcome: Outcome) -> None:
            if isinstance(outcome, DuplicateRequest):
                self._start(self._repeat(call, recorded))
            elif isinstance(outcome, BaseException):
                self.refuse(call, outcome)
            else:
                self._reply(call, reply)

        self.commits.append(row, committed)

    async def _repeat(self, call: PendingRequest, recorded: Recorded) -> None:
        """Reply to a repeated request what was replied before, unless it is another one."""
        try:
            reply = call.route.encode(await _found(recorded))
        except Exception as error:
            self.refuse(call, error)
        else:
            self._reply(call, reply)

    async def _operate(self, call: PendingRequest) -> None:
        """Do what is neither a rank nor a reward."""
        try:
            reply = await call.route.operate(self._operations, call.body)
        except Exception as error:
            self.refuse(call, error)
        else:
            self._reply(call, reply)

    def _reply(self, call: PendingRequest, reply: Reply) -> None:
        """Reply, and count it; an error here harms no other request."""
        try:
            call.reply_to(reply)
            self._count(call.operation, reply.status, time.perf_counter() - call.begun)
        except Exception as error:
            message = f"a request to {call.operation} could not be replied to"
            context = {"message": message, "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
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


def _decoded(call: PendingRequest) -> Decoded | None:
    """Return what a body asks; features that deciding reads are checked only then."""
    if len(call.body) <= MOST_QUICK_BYTES:
        try:
            decoded = call.route.decode(call.body, is_strict=False)
            if not _has_unread(decoded):
                return decoded
        except (msgspec.MsgspecError, RBMLEError, ValueError, RecursionError):
            pass  # strict decoding names the part that is wrong
    decoded = call.route.decode(call.body, is_strict=True)
    call.body = call.body if decoded is None else b""
    return decoded


def _has_unread(decoded: Decoded | None) -> bool:
    """Return whether there may be features that deciding does not read: those of excluded actions."""
    return isinstance(decoded, RankRequest) and (
        bool(decoded.excluded) or any(slot.excluded for slot in decoded.slots)
    )


def _worded(call: PendingRequest, error: Exception) -> Exception:
    """Return why a rank cannot be decided, with the part that is wrong if its features are."""
    if call.body and fault_of(error) is not Fault.UNAVAILABLE:
        try:
            call.route.decode(call.body, is_strict=True)
        except RefusedError as refused:
            return refused
    return error


async def _found(recorded: Recorded) -> RankAnswer | None:
    """Return what an earlier copy of a request was answered, which may be about to be stored."""
    for seconds in IN_FLIGHT:
        await asyncio.sleep(seconds)
        try:
            return await asyncio.to_thread(recorded)
        except InFlightError as error:
            last = error
    raise last
