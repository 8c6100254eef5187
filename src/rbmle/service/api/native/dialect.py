"""Our own wire format, answered: from a route and a body to the bytes of an answer."""

from functools import partial

from rbmle.service.api.calls import Calls
from rbmle.service.api.faults import Fault, Problem, RefusedError
from rbmle.service.api.native import bodies as native
from rbmle.service.api.native.bodies import Operation, Route
from rbmle.service.api.replies import Answer
from rbmle.service.deciding.requests import RankAnswer, RankRequest, RewardRequest


class Native:
    """Our own dialect."""

    name = "v1"
    checks_rewards = True
    request_header = native.REQUEST_HEADER.encode()

    def route(self, method: str, raw_path: bytes, query: bytes) -> Route | Problem | None:
        """Return what is asked, or why it cannot be."""
        return native.route(method, raw_path, query)

    async def answer(self, calls: Calls, route: Route, body: bytes, key: str | None) -> Answer:
        """Return the answer of success, or raise what went wrong."""
        return Answer(route.status, await _answered(calls, route, body, key))

    def unpack_rank(self, body: bytes) -> RankRequest:
        """Return a rank call whose features nobody has looked at, or raise."""
        return native.unpack_rank(body)

    def ranked(self, answer: RankAnswer) -> Answer:
        """Return the answer of a rank call."""
        return Answer(native.SUCCESS[Operation.RANK], native.encode_rank(answer))

    def reward(self, event: str, body: bytes) -> RewardRequest:
        """Return a reward call, or raise RefusedError."""
        return native.decode_reward(event, body)

    def rewarded(self) -> Answer:
        """Return the answer of a reward call."""
        return Answer(native.SUCCESS[Operation.REWARD])

    def fault(self, what: Fault, message: str) -> Problem:
        """Return a refusal of what can go wrong whatever is asked."""
        return native.fault(what, message)

    def refuse(self, problem: Problem, raw_path: bytes) -> Answer:
        """Return the answer of a refusal."""
        headers = ((b"allow", ", ".join(problem.allow).encode()),) if problem.allow else ()
        return Answer(problem.status, native.encode_problem(problem), headers)


async def _answered(calls: Calls, route: Route, body: bytes, key: str | None) -> bytes:
    """Return the body of success."""
    id = route.id or ""
    match route.operation:
        case Operation.RANK:
            return native.encode_rank(await calls.rank(native.decode_rank(body), key))
        case Operation.REWARD:
            reward = native.decode_reward(id, body)
            with native.refusing():
                await calls.check_reward(reward)
            await calls.reward(reward, key)
            return b""
        case Operation.ACTIVATE:
            await calls.activate(native.decode_activate(id))
            return b""
        case Operation.GET_EVENT:
            found = await calls.event(native.decode_event(id))
            if found is None:
                raise RefusedError(native.fault(Fault.NOT_FOUND, f"there is no event {id!r}"))
            return native.encode_event(found)
        case Operation.GET_CONFIGURATION:
            return native.encode_configuration(calls.configuration)
        case Operation.PUT_CONFIGURATION:
            await calls.configure(partial(native.decode_configuration, body))
            return native.encode_configuration(calls.configuration)
        case Operation.PATCH_CONFIGURATION:
            await calls.configure(partial(native.decode_change, body))
            return native.encode_configuration(calls.configuration)
        case Operation.GET_STATUS:
            return native.encode_status(calls.status())
