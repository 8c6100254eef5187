"""Personalizer's calls about evaluations: create, list, get and delete them, and apply what they found."""

import uuid
from typing import Any

import msgspec

from rbmle.core.policy import Policy
from rbmle.service.api.base import Operate
from rbmle.service.api.decoding import decoded
from rbmle.service.api.faults import RefusedError
from rbmle.service.api.operations import Operations
from rbmle.service.api.personalizer.bodies import refusing
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.api.personalizer.evaluations import (
    answer_of,
    encode_evaluation,
    encode_evaluations,
    encode_importance,
    encode_importances,
)
from rbmle.service.api.personalizer.operating import policy_of
from rbmle.service.api.personalizer.versions import Version
from rbmle.service.api.personalizer.wire import AppliedBody, EvaluationBody
from rbmle.service.evaluations.jobs import Job
from rbmle.service.iso8601 import parse_date
from rbmle.service.log.records import EvaluationAsked, NamedPolicy

MOST_POLICIES = 20
APPLIED = ("Custom", "OfflineExperimentation")  # sources whose policies can decide

_EVALUATION = msgspec.json.Decoder(EvaluationBody)
_APPLIED = msgspec.json.Decoder(AppliedBody)


async def create(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Ask for an evaluation of policies; in v1 it gets an id here."""
    asked = _asked(id or str(uuid.uuid4()), body, is_importance=False)
    return encode_evaluation(answer_of(await _created(operations, asked)), version)


async def create_importance(operations: Operations, id: str, body: bytes) -> bytes:
    """Ask which features matter."""
    asked = _asked(id, body, is_importance=True)
    return encode_importance(answer_of(await _created(operations, asked)))


async def get(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Answer what an evaluation has found."""
    job = await _found(operations, id, is_importance=False)
    return encode_evaluation(answer_of(job), version)


async def get_importance(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer which features matter."""
    return encode_importance(answer_of(await _found(operations, id, is_importance=True)))


async def list_all(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Answer which evaluations there are."""
    jobs = await operations.evaluations(is_importance=False)
    return encode_evaluations([answer_of(job) for job in jobs], version)


async def list_importances(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer which evaluations of features there are."""
    jobs = await operations.evaluations(is_importance=True)
    return encode_importances([answer_of(job) for job in jobs])


def _deleting(*, is_importance: bool) -> Operate:
    async def delete(operations: Operations, id: str, body: bytes) -> bytes:
        job = await _found(operations, id, is_importance=is_importance)
        await operations.delete_evaluation(job)
        return b""

    return delete


delete, delete_importance = _deleting(is_importance=False), _deleting(is_importance=True)


async def apply(operations: Operations, id: str, body: bytes) -> bytes:
    """Begin a model of a policy that an evaluation has judged."""
    with refusing(ErrorCode.INVALID_POLICY_CONTRACT):
        wanted = decoded(_APPLIED, body)
    job = await _found(operations, wanted.evaluation_id, is_importance=False)
    judged = () if job.done is None else job.done.estimates
    known = {one.name: one for one in judged if one.source in APPLIED}
    if wanted.policy_name not in known:
        raise RefusedError(
            problem(
                ErrorCode.INVALID_POLICY_CONFIGURATION,
                f"the evaluation has judged no policy {wanted.policy_name!r} that can be applied; it has "
                f"{', '.join(known) or 'none' if job.done else 'not ended yet'}",
                target="policyName",
            )
        )
    await operations.choose_policy(_policy(wanted.policy_name, known[wanted.policy_name].arguments))
    return b""


def _policy(name: str, arguments: str) -> Policy[Any]:
    """Return a policy whose name begins with its own, as in 'lin-ucb wide', or refuse it."""
    return policy_of(name.partition(" ")[0], arguments)


def _asked(id: str, body: bytes, *, is_importance: bool) -> EvaluationAsked:
    """Return what is asked, or refuse it."""
    with refusing(ErrorCode.BAD_REQUEST):
        given = decoded(_EVALUATION, body)
    start, end = _time(given.start_time, "startTime"), _time(given.end_time, "endTime")
    if not start < end:
        raise _refused(
            f"it is from {given.start_time} to {given.end_time}; the end must be after the start",
            "endTime",
        )
    policies = given.policies or []
    names = [policy.name for policy in policies]
    if len(set(names)) < len(names) or len(names) > MOST_POLICIES:
        raise _refused(
            f"the policies are {', '.join(names)}; send at most {MOST_POLICIES}, each with a name of its own, "
            "as in 'lin-ucb' and 'lin-ucb wide'",
            "policies",
        )
    for policy in policies:
        _policy(policy.name, policy.arguments)
    return EvaluationAsked(
        id=id,
        name=given.name,
        start=start,
        end=end,
        policies=[NamedPolicy(name=one.name, arguments=one.arguments) for one in policies],
        is_optimizing=bool(
            given.enable_offline_experimentation or given.enable_policy_optimization
        ),
        is_importance=is_importance,
    )


def _time(text: str, name: str) -> int:
    """Return a date in milliseconds."""
    try:
        return int(parse_date(text).timestamp() * 1000)
    except ValueError as error:
        raise _refused(str(error), name) from None


def _refused(message: str, target: str) -> RefusedError:
    return RefusedError(problem(ErrorCode.BAD_REQUEST, message, target=target))


async def _created(operations: Operations, asked: EvaluationAsked) -> Job:
    job = await operations.ask(asked)
    if job is None:
        raise RefusedError(
            problem(
                ErrorCode.CONFLICT,
                f"there is another evaluation {asked.id!r}; delete it, or give this one another id",
            )
        )
    return job


async def _found(operations: Operations, id: str, *, is_importance: bool) -> Job:
    job = await operations.evaluation(id, is_importance=is_importance)
    if job is None:
        code = ErrorCode.RESOURCE_NOT_FOUND if is_importance else ErrorCode.EVALUATION_NOT_FOUND
        what = "feature importance" if is_importance else "evaluation"
        raise RefusedError(problem(code, f"there is no {what} {id!r}"))
    return job
