"""Azure Personalizer's dialects: `/personalizer`."""

from functools import partial
from typing import Any

from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.policies.specification import name_of, policy_with, settings_of
from rbmle.service.api.base import BYTES, JSON, MOST_BYTES, Decoded, Reply
from rbmle.service.api.faults import Fault, Problem, RefusedError
from rbmle.service.api.operations import Operations
from rbmle.service.api.personalizer import bodies
from rbmle.service.api.personalizer.errors import (
    ErrorCode,
    encode_problem,
    error_headers,
    fault,
    problem,
)
from rbmle.service.api.personalizer.evaluations import encode_page
from rbmle.service.api.personalizer.routes import Operation, Route
from rbmle.service.api.personalizer.settings import (
    LearningSettings,
    decode_configuration,
    decode_policy,
    encode_configuration,
    encode_log_properties,
    encode_model_properties,
    encode_policy,
)
from rbmle.service.deciding.requests import RankAnswer

MOST_MODEL_BYTES = 2**28


class Personalizer:
    """Azure Personalizer's wire format in its three versions; keeps the promise of a dialect."""

    checks_rewards = False  # Personalizer took all of them
    request_header = bodies.REQUEST_HEADER.encode()

    def route(self, method: str, path: bytes, query: bytes) -> Route | Problem:
        """Return what is asked, or why that cannot be."""
        route = bodies.route(method, path, query)
        return self.fault(Fault.NOT_FOUND, "there is nothing here") if route is None else route

    def most_bytes(self, route: Route) -> int:
        """Return how large the body of such a request may be."""
        return MOST_MODEL_BYTES if route.operation is Operation.PUT_MODEL else MOST_BYTES

    def decode(self, route: Route, body: bytes, *, is_strict: bool) -> Decoded | None:
        """Return a rank, reward or activate request, or raise; None for any other operation."""
        match route.operation:
            case Operation.RANK:
                return bodies.decode_rank(body) if is_strict else bodies.unpack_rank(body)
            case Operation.REWARD:
                return bodies.decode_reward(route.id or "", body)
            case Operation.RANK_SLOTS:
                return bodies.decode_slots_rank(body)
            case Operation.REWARD_SLOTS:
                return bodies.decode_slots_reward(route.id or "", body)
            case Operation.ACTIVATE | Operation.ACTIVATE_SLOTS:
                return bodies.decode_activate(route.id or "")
            case _:
                return None

    def encode(self, route: Route, answer: RankAnswer | None) -> Reply:
        """Return the reply of success to a decoded request."""
        if answer is None:
            return Reply(route.status)
        if route.operation is Operation.RANK_SLOTS:
            return Reply(route.status, bodies.encode_slots_rank(answer))
        return Reply(route.status, bodies.encode_rank(answer))

    async def operate(self, operations: Operations, route: Route, body: bytes) -> Reply:
        """Do any other operation, and return the reply of success, or raise."""
        kind = BYTES if route.operation is Operation.GET_MODEL else JSON
        return Reply(route.status, await _operate(operations, route, body), kind=kind)

    def fault(self, what: Fault, message: str) -> Problem:
        """Return the refusal of what can go wrong whatever is asked."""
        return fault(what, message)

    def refuse(self, problem: Problem, path: bytes) -> Reply:
        """Return the reply of a refusal."""
        headers = tuple((name.encode(), value.encode()) for name, value in error_headers(problem))
        body = encode_problem(problem, bodies.version_of(path))
        return Reply(problem.status, body, headers)


async def _operate(operations: Operations, route: Route, body: bytes) -> bytes:
    """Do what is neither a rank nor a reward, and return the body of the reply."""
    match route.operation:
        case Operation.GET_CONFIGURATION:
            return encode_configuration(operations.configuration, route.version)
        case Operation.PUT_CONFIGURATION:
            await operations.configure(partial(decode_configuration, body))
            return encode_configuration(operations.configuration, route.version)
        case Operation.GET_POLICY:
            policy = operations.policy
        case Operation.PUT_POLICY:
            policy = await operations.choose_policy(_policy(decode_policy(body)))
        case Operation.RESET_POLICY:
            policy = await operations.choose_policy(None)
        case Operation.GET_MODEL:
            return await operations.export_model()
        case Operation.PUT_MODEL:
            await operations.import_model(body)
            return b""
        case Operation.RESET_MODEL:
            await operations.reset_model()
            return b""
        case Operation.GET_MODEL_PROPERTIES:
            times = await operations.model_times()
            return encode_model_properties(times.created, times.modified)
        case Operation.GET_LOG_PROPERTIES:
            return encode_log_properties(*await operations.log_times())
        case _:
            return _evaluate(route)
    return encode_policy(LearningSettings(name=name_of(policy), arguments=settings_of(policy)))


def _evaluate(route: Route) -> bytes:
    """Answer what there is of evaluations, which is none, and refuse what cannot be done."""
    match route.operation:
        case Operation.LIST_EVALUATIONS | Operation.LIST_FEATURE_IMPORTANCES:
            return encode_page([], route.version)
        case Operation.GET_EVALUATION | Operation.DELETE_EVALUATION:
            code = ErrorCode.EVALUATION_NOT_FOUND
            raise RefusedError(problem(code, f"there is no evaluation {route.id!r}"))
        case Operation.GET_FEATURE_IMPORTANCE | Operation.DELETE_FEATURE_IMPORTANCE:
            code = ErrorCode.RESOURCE_NOT_FOUND
            raise RefusedError(problem(code, f"there is no feature importance {route.id!r}"))
        case Operation.DELETE_LOGS:
            message = "the log is what the model is made of; stop the service and delete its folder"
        case _:
            message = (
                "this service makes no offline evaluations; export its log with `rbmle log export`, and "
                "evaluate that"
            )
    raise RefusedError(fault(Fault.NOT_IMPLEMENTED, message))


def _policy(settings: LearningSettings) -> Policy[Any]:
    """Return the policy of learning settings; those of Vowpal Wabbit are of another learner."""
    try:
        return policy_with(settings.name, settings.arguments)
    except RBMLEError as error:
        raise RefusedError(
            problem(
                ErrorCode.INVALID_POLICY_CONFIGURATION,
                f"{error}; send the name of a policy, and as arguments key=value with spaces between",
                target="arguments",
            )
        ) from None
