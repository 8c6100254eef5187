"""Ranks and rewards that are whole when they are read; all ranks of one turn of the loop are decided together.

A call takes no task, no ASGI and no future of its own here, and kernels are called once for all. What
is not as expected is let go, and answered, or refused in words, on the ordinary way.
"""

import asyncio
import time
from functools import lru_cache
from typing import Protocol

import httptools
import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.access.keys import Scope
from rbmle.service.api.admission import Admission, idempotency_key
from rbmle.service.api.calls import Calls
from rbmle.service.api.dialects import Wire, wire_of
from rbmle.service.api.faults import Problem
from rbmle.service.api.native.bodies import Route as NativeRoute
from rbmle.service.api.personalizer.routes import Route
from rbmle.service.api.refusals import problem_of, refusal
from rbmle.service.api.replies import Answer
from rbmle.service.api.waiting import Outcome, Slip
from rbmle.service.api.work import is_costly, is_light
from rbmle.service.deciding.requests import RankRequest
from rbmle.service.http.metrics import Metrics
from rbmle.service.log.base import Row
from rbmle.service.log.errors import DuplicateRequest

MOST_BYTES = 2**16  # of a body; it has fewer values than the limit, and need not be counted
AT_ONCE = 32  # calls that are decided together; the log begins to write them before the next
BUSY, BUSY_SECONDS = 4, 0.02  # so many together, so short a time ago
GATHER_SECONDS = (
    0.002  # in busy times; larger batches cost less, so answers come sooner nevertheless
)
RANK, REWARD = "RANK", "REWARD"  # operations of both dialects


class Asker(Protocol):
    """A connection that has asked something, and waits."""

    url: bytes
    headers: list[tuple[bytes, bytes]]

    @property
    def address(self) -> str | None:
        """Return who asks; None if only the application can tell."""
        ...

    def answer(self, answer: Answer) -> None:
        """Send an answer."""
        ...

    def let_go(self) -> None:
        """Let the application answer."""
        ...

    def drop(self) -> None:
        """Hang up."""
        ...


class Taken(Slip):
    """A call that is answered when what it led to is on disk."""

    __slots__ = ("answer", "asker", "begun", "operation", "turns", "wire")

    def __init__(self, turns: "Turns", asker: Asker, wire: Wire, operation: str) -> None:
        super().__init__(turns.calls.waiting)
        self.turns = turns
        self.asker = asker
        self.wire = wire
        self.operation = operation
        self.begun = time.perf_counter()
        self.answer: Answer | None = None  # of success; None: it is not decided yet

    def end(self, outcome: Outcome) -> None:
        """Answer, or hang up if that cannot be done: nobody waits for ever."""
        asker, answer = self.asker, self.answer
        del self.asker, self.answer  # it may be watched for a while, and need not hold them
        try:
            self._answer(asker, answer, outcome)
        except Exception:
            asker.drop()
            raise

    def _answer(self, asker: Asker, answer: Answer | None, outcome: Outcome) -> None:
        """Answer, unless an earlier copy of the request was: the ordinary way looks for that."""
        if isinstance(outcome, DuplicateRequest) or answer is None:
            asker.let_go()
            return
        if isinstance(outcome, BaseException):
            problem = problem_of(self.wire, self.operation, outcome)
            answer = refusal(self.wire, problem, httptools.parse_url(asker.url).path)
        seconds = time.perf_counter() - self.begun
        self.turns.metrics.count(self.operation, answer.status, seconds)
        asker.answer(answer)


class Turns:
    """Takes rank calls, and decides all of them that one turn of the loop brings; and rewards."""

    def __init__(self, calls: Calls, admission: Admission, metrics: Metrics) -> None:
        """Make it in the loop."""
        self.calls = calls
        self.metrics = metrics
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._planned: asyncio.Handle  # of the next decision, if something waits for it
        self._together, self._decided = 0, 0.0  # how many were decided last, and when
        self._ranks: list[tuple[Taken, RankRequest, str | None]] = []  # to be decided, with keys

    def wants(self, url: bytes) -> bool:
        """Return whether a POST to this may be taken."""
        return b"/rank" in url or b"/reward" in url

    def take(self, asker: Asker, body: bytes) -> bool:
        """Take a call, which will be answered or let go; or return False."""
        headers = dict(asker.headers)
        if len(body) > MOST_BYTES or not self._admission.allows(headers, Scope.DECIDE):
            return False
        try:
            wire, route = _rank_route(asker.url) if b"/rank" in asker.url else _route(asker.url)
            key, operation = idempotency_key(wire, headers), route.operation.name
            if operation == RANK:
                request = wire.unpack_rank(body)
                if _has_unread(request) or (not is_light(body) and is_costly(request)):
                    return False
                self._rank(Taken(self, asker, wire, RANK.lower()), request, key)
            elif operation == REWARD:
                self.calls.check_queue()
                reward = wire.reward(route.id or "", body)
                if wire.checks_rewards and self.calls.service.decider.slots.may_mismatch(reward):
                    return False
                row = self.calls.service.decider.reward_row(reward, key)
                taken = Taken(self, asker, wire, REWARD.lower())
                self._store(taken, row, wire.rewarded())
            else:
                return False
        except (msgspec.MsgspecError, RBMLEError, ValueError, RecursionError):
            return False  # what is wrong is said on the ordinary way
        return True

    def _rank(self, taken: Taken, request: RankRequest, key: str | None) -> None:
        """Decide a call soon, with all that come until then."""
        self._ranks.append((taken, request, key))
        if len(self._ranks) == 1:
            self._plan()
        elif len(self._ranks) == AT_ONCE:
            self._planned.cancel()
            self._planned = self._loop.call_soon(self._decide)

    def _plan(self) -> None:
        """Decide at the end of this turn; in busy times a moment later, for then more will come."""
        if self._together >= BUSY and self._loop.time() - self._decided < BUSY_SECONDS:
            self._planned = self._loop.call_later(GATHER_SECONDS, self._decide)
        else:
            self._planned = self._loop.call_soon(self._decide)

    def _decide(self) -> None:
        """Decide some of what was taken; the log writes these while the next are decided."""
        ranks, self._ranks = self._ranks[:AT_ONCE], self._ranks[AT_ONCE:]
        self._together, self._decided = len(ranks), self._loop.time()
        if self._ranks:
            self._planned = self._loop.call_soon(self._decide)
        try:
            self._draft(ranks)
        except Exception:  # one of them has the fault
            for one in ranks:
                self._decide_alone(one)

    def _decide_alone(self, one: tuple[Taken, RankRequest, str | None]) -> None:
        """Decide a call, or let it go: what is wrong is said on the ordinary way."""
        try:
            self._draft([one])
        except Exception as error:
            self.calls.waiting.finish(one[0], error)

    def _draft(self, ranks: list[tuple[Taken, RankRequest, str | None]]) -> None:
        """Decide some calls, and write what was decided; or raise, and nothing was written."""
        self.calls.check_queue()
        drafts = self.calls.service.decider.draft([(request, key) for _, request, key in ranks])
        answers = [one[0].wire.ranked(d.answer) for one, d in zip(ranks, drafts, strict=True)]
        for (taken, _, _), draft, answer in zip(ranks, drafts, answers, strict=True):
            self._store(taken, draft.row, answer)

    def _store(self, taken: Taken, row: Row, answer: Answer) -> None:
        """Write a row, and answer when it is on disk."""
        taken.answer = answer
        self.calls.waiting.watch(taken)
        self.calls.service.writer.submit([row], taken)


def _has_unread(request: RankRequest) -> bool:
    """Return whether there may be features that deciding does not read: those of excluded actions."""
    return bool(request.excluded) or any(slot.excluded for slot in request.slots)


def _route(url: bytes) -> tuple[Wire, Route | NativeRoute]:
    """Return the dialect and what is asked of it; raise ValueError if that is nothing."""
    parsed = httptools.parse_url(url)
    wire = wire_of(parsed.path or b"")
    route = None if wire is None else wire.route("POST", parsed.path, parsed.query or b"")
    if wire is None or route is None or isinstance(route, Problem):
        raise ValueError("nothing is there")
    return wire, route


_rank_route = lru_cache(maxsize=256)(_route)  # there are few, with no ids in them
