"""Our own dialect: `/v1`."""

from functools import partial

from rbmle.service.api.base import MOST_BYTES, Decoded, Reply
from rbmle.service.api.faults import Fault, Problem, RefusedError
from rbmle.service.api.native import bodies, routes
from rbmle.service.api.native.routes import Operation, Route
from rbmle.service.api.operations import Operations
from rbmle.service.deciding.requests import RankAnswer


class Native:
    """Our own wire format; keeps the promise of a dialect."""

    checks_rewards = True
    request_header = routes.REQUEST_HEADER.encode()

    def route(self, method: str, path: bytes, query: bytes) -> Route | Problem:
        """Return what is asked, or why that cannot be."""
        route = routes.route(method, path, query)
        return self.fault(Fault.NOT_FOUND, "there is nothing here") if route is None else route

    def most_bytes(self, route: Route) -> int:
        """Return how large the body of such a request may be."""
        return MOST_BYTES

    def decode(self, route: Route, body: bytes, *, is_strict: bool) -> Decoded | None:
        """Return a rank, reward or activate request, or raise; None for any other operation."""
        match route.operation:
            case Operation.RANK:
                return bodies.decode_rank(body) if is_strict else bodies.unpack_rank(body)
            case Operation.REWARD:
                return bodies.decode_reward(route.id or "", body)
            case Operation.ACTIVATE:
                return bodies.decode_activate(route.id or "")
            case _:
                return None

    def encode(self, route: Route, answer: RankAnswer | None) -> Reply:
        """Return the reply of success to a decoded request."""
        return Reply(route.status, b"" if answer is None else bodies.encode_rank(answer))

    async def operate(self, operations: Operations, route: Route, body: bytes) -> Reply:
        """Do any other operation, and return the reply of success, or raise."""
        match route.operation:
            case Operation.GET_EVENT:
                id = bodies.decode_event(route.id or "")
                found = await operations.event(id)
                if found is None:
                    raise RefusedError(self.fault(Fault.NOT_FOUND, f"there is no event {id!r}"))
                encoded = bodies.encode_event(found)
            case Operation.PUT_CONFIGURATION:
                await operations.configure(partial(bodies.decode_configuration, body))
                encoded = bodies.encode_configuration(operations.configuration)
            case Operation.PATCH_CONFIGURATION:
                await operations.configure(partial(bodies.decode_change, body))
                encoded = bodies.encode_configuration(operations.configuration)
            case Operation.GET_CONFIGURATION:
                encoded = bodies.encode_configuration(operations.configuration)
            case _:
                encoded = bodies.encode_status(operations.status())
        return Reply(route.status, encoded)

    def fault(self, what: Fault, message: str) -> Problem:
        """Return the refusal of what can go wrong whatever is asked."""
        return routes.fault(what, message)

    def refuse(self, problem: Problem, path: bytes) -> Reply:
        """Return the reply of a refusal."""
        headers = ((b"allow", ", ".join(problem.allow).encode()),) if problem.allow else ()
        return Reply(problem.status, bodies.encode_problem(problem), headers)
