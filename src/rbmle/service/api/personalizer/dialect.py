"""Personalizer's wire format, answered: from a route and a body to the bytes of an answer."""

from functools import partial
from typing import Any

from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.policies.specification import name_of, policy_with, settings_of
from rbmle.service.api.calls import Calls
from rbmle.service.api.faults import Fault, Problem, RefusedError
from rbmle.service.api.personalizer import bodies as personalizer
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
from rbmle.service.api.replies import BYTES, Answer
from rbmle.service.deciding.requests import RankAnswer, RankRequest, RewardRequest

CREATED, NO_CONTENT = 201, 204  # in all versions


class Personalizer:
    """Azure Personalizer's dialects."""

    name = "personalizer"
    checks_rewards = False  # it took all of them
    request_header = personalizer.REQUEST_HEADER.encode()

    def route(self, method: str, raw_path: bytes, query: bytes) -> Route | Problem | None:
        """Return what is asked, or why it cannot be."""
        return personalizer.route(method, raw_path, query)

    async def answer(self, calls: Calls, route: Route, body: bytes, key: str | None) -> Answer:
        """Return the answer of success, or raise what went wrong."""
        answered = await _answered(calls, route, body, key)
        if route.operation is Operation.GET_MODEL:
            return Answer(route.status, answered, kind=BYTES)
        return Answer(route.status, answered)

    def unpack_rank(self, body: bytes) -> RankRequest:
        """Return a rank call whose features nobody has looked at, or raise."""
        return personalizer.unpack_rank(body)

    def ranked(self, answer: RankAnswer) -> Answer:
        """Return the answer of a rank call."""
        return Answer(CREATED, personalizer.encode_rank(answer))

    def reward(self, event: str, body: bytes) -> RewardRequest:
        """Return a reward call, or raise RefusedError."""
        return personalizer.decode_reward(event, body)

    def rewarded(self) -> Answer:
        """Return the answer of a reward call."""
        return Answer(NO_CONTENT)

    def fault(self, what: Fault, message: str) -> Problem:
        """Return a refusal of what can go wrong whatever is asked."""
        return fault(what, message)

    def refuse(self, problem: Problem, raw_path: bytes) -> Answer:
        """Return the answer of a refusal."""
        headers = tuple((name.encode(), value.encode()) for name, value in error_headers(problem))
        body = encode_problem(problem, personalizer.version_of(raw_path))
        return Answer(problem.status, body, headers)


async def _answered(calls: Calls, route: Route, body: bytes, key: str | None) -> bytes:
    """Return the body of success."""
    id = route.id or ""
    match route.operation:
        case Operation.RANK:
            return personalizer.encode_rank(await calls.rank(personalizer.decode_rank(body), key))
        case Operation.RANK_SLOTS:
            request = personalizer.decode_slots_rank(body)
            return personalizer.encode_slots_rank(await calls.rank(request, key))
        case Operation.REWARD:
            await calls.reward(personalizer.decode_reward(id, body), key)
        case Operation.REWARD_SLOTS:
            await calls.reward(personalizer.decode_slots_reward(id, body), key)
        case Operation.ACTIVATE | Operation.ACTIVATE_SLOTS:
            await calls.activate(personalizer.decode_activate(id))
        case _:
            return await _operate(calls, route, body)
    return b""


async def _operate(calls: Calls, route: Route, body: bytes) -> bytes:
    """Return the answer to a call of the operator."""
    match route.operation:
        case Operation.GET_CONFIGURATION:
            return encode_configuration(calls.configuration, route.version)
        case Operation.PUT_CONFIGURATION:
            await calls.configure(partial(decode_configuration, body))
            return encode_configuration(calls.configuration, route.version)
        case Operation.GET_POLICY:
            policy = calls.policy
        case Operation.PUT_POLICY:
            policy = await calls.choose_policy(_policy(decode_policy(body)))
        case Operation.RESET_POLICY:
            policy = await calls.choose_policy(None)
        case Operation.GET_MODEL:
            return await calls.export_model()
        case Operation.PUT_MODEL:
            await calls.import_model(body)
            return b""
        case Operation.RESET_MODEL:
            await calls.reset_model()
            return b""
        case Operation.GET_MODEL_PROPERTIES:
            times = await calls.model_times()
            return encode_model_properties(times.created, times.modified)
        case Operation.GET_LOG_PROPERTIES:
            return encode_log_properties(*await calls.log_times())
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
