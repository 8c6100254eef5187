"""Personalizer's offline evaluations and feature importances, in the two formats of its versions."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from rbmle.core.policy import Policy
from rbmle.evaluation.sums import WeightSums
from rbmle.service.api.base import Operate, RefusedError
from rbmle.service.api.decoding import decode_body
from rbmle.service.api.operations import Operations, date_of
from rbmle.service.api.personalizer.bodies import Label, PolicyBody, policy_of, refusing
from rbmle.service.api.personalizer.errors import ErrorCode, Version, problem
from rbmle.service.exports.evaluator import Job
from rbmle.service.iso8601 import format_date, format_duration, parse_date
from rbmle.service.log.records import EvaluationAsked, NamedPolicy, PolicyEstimate
from rbmle.service.statistics.estimates import snips_estimate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXPANDING_MINUTES = 5  # the interval until there are estimates

MOST_POLICIES = 20
APPLIED = ("Custom", "OfflineExperimentation")  # sources whose policies can decide


class EvaluationBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /evaluations and PUT /evaluations/{id}."""

    name: Label
    start_time: str
    end_time: str
    policies: list[PolicyBody] | None = None
    enable_offline_experimentation: bool | None = None  # its name in v1
    enable_policy_optimization: bool | None = None


class AppliedBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /configurations/applyFromEvaluation."""

    evaluation_id: str
    policy_name: str


_EVALUATION = msgspec.json.Decoder(EvaluationBody)
_APPLIED = msgspec.json.Decoder(AppliedBody)


class State(Enum):
    """The state of an evaluation, by its names in v1 and in 2022-09-01-preview."""

    RUNNING = ("pending", "Running")
    DONE = ("completed", "Succeeded")
    FAILED = ("failed", "Failed")


def _state_of(job: Job) -> State:
    if job.done is None:
        return State.RUNNING
    return State.FAILED if job.done.problem else State.DONE


def _encode_importance(job: Job) -> bytes:
    return msgspec.json.encode(_importance(job))


def _importance(job: Job) -> dict[str, Any]:
    details = _details(job, Version.V2022)
    del details["evaluationType"]
    scores = [
        {"namespace": score.namespace, "featureName": score.name, "score": score.score}
        for score in (() if job.done is None else job.done.scores)
    ]
    return details | {"featureScores": scores}


def encode_evaluation(job: Job, version: Version) -> bytes:
    """Return the answer of GET /evaluations/{id}, and of POST /evaluations."""
    details = _details(job, version)
    if version is Version.V2022:
        estimates = _estimates_of(job)
        details["content"] = {
            "startTime": details["startTime"],
            "endTime": details["endTime"],
            "intervalInMinutes": max((e.minutes for e in estimates), default=0)
            or EXPANDING_MINUTES,
            "value": [_estimate_2022(estimate) for estimate in estimates],
        }
    return msgspec.json.encode(details)


def encode_evaluations(jobs: Sequence[Job], version: Version) -> bytes:
    """Return the answer of GET /evaluations."""
    return encode_page([_details(job, version) for job in jobs], version)


def encode_page(items: Sequence[dict[str, Any]], version: Version) -> bytes:
    """Return a list: in v1 as it is, in 2022 as the only page."""
    return msgspec.json.encode({"value": items} if version is Version.V2022 else items)


def _estimates_of(job: Job) -> Sequence[PolicyEstimate]:
    return () if job.done is None else job.done.estimates


def _details(job: Job, version: Version) -> dict[str, Any]:
    asked, (old, new) = job.asked, _state_of(job).value
    common: dict[str, Any] = {
        "id": asked.id,
        "name": asked.name,
        "startTime": format_date(date_of(asked.start)),
        "endTime": format_date(date_of(asked.end)),
        "creationTime": format_date(date_of(job.created)),
        "evaluationType": "Manual",
        "status": new if version is Version.V2022 else old,
    }
    if version is Version.V2022:
        description = "" if job.done is None else " ".join(job.done.doubts)
        texts = {"description": description, "optimalPolicy": _best(_estimates_of(job))}
        return common | {name: text for name, text in texts.items() if text}
    start, end = date_of(asked.start), date_of(asked.end)
    results = [_estimate_v1(estimate, start, end) for estimate in _estimates_of(job)]
    return common | {"jobId": asked.id, "policyResults": results, "featureImportance": []}


def _estimate_v1(estimate: PolicyEstimate, start: datetime, end: datetime) -> dict[str, Any]:
    window = timedelta(minutes=estimate.minutes)
    total = {
        "ipsEstimatorNumerator": estimate.ips_numerator,
        "ipsEstimatorDenominator": estimate.ips_denominator,
        "snipsEstimatorDenominator": estimate.snips_denominator,
        "confidenceInterval": estimate.half_width,
        "averageReward": estimate.average_reward,
    }
    return {
        "name": estimate.name,
        "arguments": estimate.arguments,
        "policySource": estimate.source,
        "summary": [
            _summary(number * window + EPOCH, window, _sums_v1(sums))
            for number, sums in estimate.windows.items()
        ],
        "totalSummary": _summary(start, end - start, total),
        "warnings": estimate.warnings,
    }


def _summary(start: datetime, length: timedelta, sums: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a period, which is named by its end."""
    return {
        "timeStamp": format_date(start + length),
        "aggregateTimeWindow": format_duration(length),
        **sums,
    }


def _sums_v1(sums: WeightSums) -> dict[str, Any]:
    mean, half = _snips(sums)
    return {
        "ipsEstimatorNumerator": sums.wr,
        "ipsEstimatorDenominator": float(sums.plays),
        "snipsEstimatorDenominator": sums.w,
        "confidenceInterval": half,
        "averageReward": mean,
    }


def _snips(sums: WeightSums) -> tuple[float | None, float | None]:
    """Return the SNIPS estimate, and half the width of its interval."""
    estimate = snips_estimate(sums)
    half = None if estimate.high is None else estimate.high - (estimate.value or 0.0)
    return estimate.value, half


def _best(estimates: Sequence[PolicyEstimate]) -> str:
    """Return the name of the policy with the largest estimate; empty if there are no estimates."""
    known = [e for e in estimates if e.average_reward is not None]
    return max(known, key=lambda e: e.average_reward or 0.0).name if known else ""


def _estimate_2022(estimate: PolicyEstimate) -> dict[str, Any]:
    return {
        "name": estimate.name,
        "arguments": estimate.arguments,
        "policySource": estimate.source,
        "summary": _interval_fields(estimate.average_reward, estimate.half_width),
        "timeseries": {"data": _expanding(estimate)},
        "warnings": estimate.warnings,
    }


def _expanding(estimate: PolicyEstimate) -> list[dict[str, Any]]:
    """Return the estimate from the start to the end of each window."""
    window, total, points = timedelta(minutes=estimate.minutes), WeightSums(), []
    for number, sums in estimate.windows.items():
        total = total.merged(sums)
        time = format_date((number + 1) * window + EPOCH)
        points.append({"timeStamp": time, **_interval_fields(*_snips(total))})
    return points


def _interval_fields(mean: float | None, half: float | None) -> dict[str, Any]:
    ends = [] if mean is None or half is None else [mean - half, mean + half]
    return {"expectedReward": mean, "confidenceInterval": ends}


async def create(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Start an evaluation of policies; in v1 its id is made up here."""
    asked = _decode_evaluation(id or str(uuid.uuid4()), body, is_importance=False)
    return encode_evaluation(await _ask(operations, asked), version)


async def create_importance(operations: Operations, id: str, body: bytes) -> bytes:
    """Start an evaluation of features."""
    asked = _decode_evaluation(id, body, is_importance=True)
    return _encode_importance(await _ask(operations, asked))


async def get(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Answer GET /evaluations/{id}."""
    return encode_evaluation(await _find(operations, id, is_importance=False), version)


async def get_importance(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer GET /featureImportances/{id}."""
    return _encode_importance(await _find(operations, id, is_importance=True))


async def list_all(version: Version, operations: Operations, id: str, body: bytes) -> bytes:
    """Answer GET /evaluations."""
    jobs = await operations.evaluations(is_importance=False)
    return encode_evaluations(jobs, version)


async def list_importances(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer GET /featureImportances."""
    jobs = await operations.evaluations(is_importance=True)
    return encode_page([_importance(job) for job in jobs], Version.V2022)


def _deletion(*, is_importance: bool) -> Operate:
    async def delete(operations: Operations, id: str, body: bytes) -> bytes:
        await operations.delete_evaluation(await _find(operations, id, is_importance=is_importance))
        return b""

    return delete


delete, delete_importance = _deletion(is_importance=False), _deletion(is_importance=True)


async def apply(operations: Operations, id: str, body: bytes) -> bytes:
    """Start a model of a policy that was evaluated."""
    with refusing(ErrorCode.INVALID_POLICY_CONTRACT):
        wanted = decode_body(_APPLIED, body)
    job = await _find(operations, wanted.evaluation_id, is_importance=False)
    estimates = () if job.done is None else job.done.estimates
    known = {estimate.name: estimate for estimate in estimates if estimate.source in APPLIED}
    if wanted.policy_name not in known:
        names = ", ".join(known) or ("none" if job.done else "not ended yet")
        message = (
            f"the evaluation has judged no policy {wanted.policy_name!r} that can be applied; it has "
            f"{names}"
        )
        code = ErrorCode.INVALID_POLICY_CONFIGURATION
        raise RefusedError(problem(code, message, target="policyName"))
    await operations.choose_policy(_policy(wanted.policy_name, known[wanted.policy_name].arguments))
    return b""


def _policy(name: str, arguments: str) -> Policy[Any]:
    """Return the policy that a name such as 'lin-ucb wide' begins with; raise RefusedError."""
    return policy_of(name.partition(" ")[0], arguments)


def _decode_evaluation(id: str, body: bytes, *, is_importance: bool) -> EvaluationAsked:
    with refusing(ErrorCode.BAD_REQUEST):
        evaluation = decode_body(_EVALUATION, body)
    start = _parse_time(evaluation.start_time, "startTime")
    end = _parse_time(evaluation.end_time, "endTime")
    if not start < end:
        times = f"from {evaluation.start_time} to {evaluation.end_time}"
        raise _bad_request(f"it is {times}; the end must be after the start", "endTime")
    policies = evaluation.policies or []
    names = [policy.name for policy in policies]
    if len(set(names)) < len(names) or len(names) > MOST_POLICIES:
        message = (
            f"the policies are {', '.join(names)}; send at most {MOST_POLICIES}, each with a name of its own, "
            "as in 'lin-ucb' and 'lin-ucb wide'"
        )
        raise _bad_request(message, "policies")
    for policy in policies:
        _policy(policy.name, policy.arguments)
    return EvaluationAsked(
        id=id,
        name=evaluation.name,
        start=start,
        end=end,
        policies=[NamedPolicy(name=p.name, arguments=p.arguments) for p in policies],
        is_optimizing=bool(
            evaluation.enable_offline_experimentation or evaluation.enable_policy_optimization
        ),
        is_importance=is_importance,
    )


def _parse_time(text: str, field: str) -> int:
    """Return a date in milliseconds."""
    try:
        return int(parse_date(text).timestamp() * 1000)
    except ValueError as error:
        raise _bad_request(str(error), field) from None


def _bad_request(message: str, target: str) -> RefusedError:
    return RefusedError(problem(ErrorCode.BAD_REQUEST, message, target=target))


async def _ask(operations: Operations, asked: EvaluationAsked) -> Job:
    job = await operations.ask(asked)
    if job is None:
        message = (
            f"there is another evaluation {asked.id!r}; delete it, or give this one another id"
        )
        raise RefusedError(problem(ErrorCode.CONFLICT, message))
    return job


async def _find(operations: Operations, id: str, *, is_importance: bool) -> Job:
    job = await operations.evaluation(id, is_importance=is_importance)
    if job is None:
        code = ErrorCode.RESOURCE_NOT_FOUND if is_importance else ErrorCode.EVALUATION_NOT_FOUND
        kind = "feature importance" if is_importance else "evaluation"
        raise RefusedError(problem(code, f"there is no {kind} {id!r}"))
    return job
