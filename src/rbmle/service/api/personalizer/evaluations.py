"""Answers about Personalizer's offline evaluations, in the two shapes they have."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import msgspec

from rbmle.evaluation.weight_sums import WeightSums
from rbmle.service.api.personalizer.versions import Version
from rbmle.service.evaluations.jobs import Job
from rbmle.service.iso8601 import format_date, format_duration
from rbmle.service.log.records import FeatureScore, PolicyEstimate
from rbmle.service.statistics.estimates import snips

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXPANDING_MINUTES = 5  # before anything is found


class Progress(Enum):
    """How far an evaluation is; its names in v1 and in 2022-09-01-preview."""

    RUNNING = ("pending", "Running")
    DONE = ("completed", "Succeeded")
    FAILED = ("failed", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationAnswer:
    """An evaluation and what it has found."""

    id: str
    name: str
    start: datetime
    end: datetime
    created: datetime
    progress: Progress
    estimates: Sequence[PolicyEstimate] = ()
    scores: Sequence[FeatureScore] = ()
    description: str = ""  # why it failed, or what must be known of its estimates


def answer_of(job: Job) -> EvaluationAnswer:
    """Return what is told of an evaluation."""
    asked, done = job.asked, job.done
    progress = Progress.RUNNING if done is None else Progress.DONE
    return EvaluationAnswer(
        id=asked.id,
        name=asked.name,
        start=_date(asked.start),
        end=_date(asked.end),
        created=_date(job.created),
        progress=Progress.FAILED if done is not None and done.problem else progress,
        estimates=() if done is None else done.estimates,
        scores=() if done is None else done.scores,
        description="" if done is None else " ".join(done.doubts),
    )


def encode_importance(evaluation: EvaluationAnswer) -> bytes:
    """Return the answer of GET /featureImportances/{id}."""
    return msgspec.json.encode(_importance(evaluation))


def encode_importances(evaluations: Sequence[EvaluationAnswer]) -> bytes:
    """Return the answer of GET /featureImportances."""
    return encode_page([_importance(evaluation) for evaluation in evaluations], Version.V2022)


def _importance(evaluation: EvaluationAnswer) -> dict[str, Any]:
    details = _details(evaluation, Version.V2022)
    del details["evaluationType"]
    found = [
        {"namespace": one.namespace, "featureName": one.name, "score": one.score}
        for one in evaluation.scores
    ]
    return details | {"featureScores": found}


def encode_evaluation(evaluation: EvaluationAnswer, version: Version) -> bytes:
    """Return the answer of GET /evaluations/{id}, and of POST /evaluations."""
    details = _details(evaluation, version)
    if version is Version.V2022:
        details["content"] = {
            "startTime": format_date(evaluation.start),
            "endTime": format_date(evaluation.end),
            "intervalInMinutes": max((one.minutes for one in evaluation.estimates), default=0)
            or EXPANDING_MINUTES,
            "value": [_estimate_2022(estimate) for estimate in evaluation.estimates],
        }
    return msgspec.json.encode(details)


def encode_evaluations(evaluations: Sequence[EvaluationAnswer], version: Version) -> bytes:
    """Return the answer of GET /evaluations: a list in v1, a page later."""
    found = [_details(evaluation, version) for evaluation in evaluations]
    return encode_page(found, version)


def encode_page(items: Sequence[dict[str, Any]], version: Version) -> bytes:
    """Return a list in v1, and later a page, which is the only one."""
    return msgspec.json.encode({"value": items} if version is Version.V2022 else items)


def _details(evaluation: EvaluationAnswer, version: Version) -> dict[str, Any]:
    old, new = evaluation.progress.value
    common: dict[str, Any] = {
        "id": evaluation.id,
        "name": evaluation.name,
        "startTime": format_date(evaluation.start),
        "endTime": format_date(evaluation.end),
        "creationTime": format_date(evaluation.created),
        "evaluationType": "Manual",
        "status": new if version is Version.V2022 else old,
    }
    if version is Version.V2022:
        told = {"description": evaluation.description, "optimalPolicy": _best(evaluation)}
        return common | {name: text for name, text in told.items() if text}
    results = [_estimate_v1(estimate, evaluation) for estimate in evaluation.estimates]
    return common | {"jobId": evaluation.id, "policyResults": results, "featureImportance": []}


def _estimate_v1(estimate: PolicyEstimate, evaluation: EvaluationAnswer) -> dict[str, Any]:
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
        "totalSummary": _summary(evaluation.start, evaluation.end - evaluation.start, total),
        "warnings": estimate.warnings,
    }


def _summary(start: datetime, length: timedelta, sums: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of some time, by its end."""
    return {
        "timeStamp": format_date(start + length),
        "aggregateTimeWindow": format_duration(length),
        **sums,
    }


def _sums_v1(sums: WeightSums) -> dict[str, Any]:
    mean, half = _mean(sums)
    return {
        "ipsEstimatorNumerator": sums.wr,
        "ipsEstimatorDenominator": float(sums.plays),
        "snipsEstimatorDenominator": sums.w,
        "confidenceInterval": half,
        "averageReward": mean,
    }


def _mean(sums: WeightSums) -> tuple[float | None, float | None]:
    """Return the estimate of SNIPS, and half of its interval."""
    found = snips(sums)
    return found.value, None if found.high is None else found.high - (found.value or 0.0)


def _best(evaluation: EvaluationAnswer) -> str:
    """Return the name of the policy with the largest estimate; empty if nothing was found."""
    known = [(one.average_reward, one.name) for one in evaluation.estimates]
    found = [(mean, name) for mean, name in known if mean is not None]
    return max(found, key=lambda one: one[0])[1] if found else ""


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _estimate_2022(estimate: PolicyEstimate) -> dict[str, Any]:
    return {
        "name": estimate.name,
        "arguments": estimate.arguments,
        "policySource": estimate.source,
        "summary": _expected(estimate.average_reward, estimate.half_width),
        "timeseries": {"data": _expanding(estimate)},
        "warnings": estimate.warnings,
    }


def _expanding(estimate: PolicyEstimate) -> list[dict[str, Any]]:
    """Return the estimate from the start to the end of each window."""
    window, so_far, found = timedelta(minutes=estimate.minutes), WeightSums(), []
    for number, sums in estimate.windows.items():
        so_far = so_far.merged(sums)
        time = format_date((number + 1) * window + EPOCH)
        found.append({"timeStamp": time, **_expected(*_mean(so_far))})
    return found


def _expected(mean: float | None, half: float | None) -> dict[str, Any]:
    ends = [] if mean is None or half is None else [mean - half, mean + half]
    return {"expectedReward": mean, "confidenceInterval": ends}
