"""Answers about Personalizer's offline evaluations, in the two shapes they have."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from rbmle.service.api.personalizer.versions import Version
from rbmle.service.iso8601 import format_date, format_duration

EXPANDING_MINUTES = 5


class Progress(Enum):
    """How far an evaluation is; its names in v1 and in 2022-09-01-preview."""

    RUNNING = ("pending", "Running")
    DONE = ("completed", "Succeeded")
    FAILED = ("failed", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEstimate:
    """What a policy would have earned, by the IPS and SNIPS estimators."""

    name: str
    arguments: str
    source: str  # Online, Baseline, Random or Custom
    ips_numerator: float
    ips_denominator: float
    snips_denominator: float
    average_reward: float
    half_width: float  # of its 95 % confidence interval


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationAnswer:
    """An evaluation and what it has found."""

    id: str
    name: str
    start: datetime
    end: datetime
    created: datetime
    progress: Progress
    estimates: tuple[PolicyEstimate, ...] = ()


def encode_evaluation(evaluation: EvaluationAnswer, version: Version) -> bytes:
    """Return the answer of GET /evaluations/{id}, and of POST /evaluations."""
    details = _details(evaluation, version)
    if version is Version.V2022:
        details["content"] = {
            "startTime": format_date(evaluation.start),
            "endTime": format_date(evaluation.end),
            "intervalInMinutes": EXPANDING_MINUTES,
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
        return common
    results = [_estimate_v1(estimate, evaluation) for estimate in evaluation.estimates]
    return common | {"jobId": evaluation.id, "policyResults": results, "featureImportance": []}


def _estimate_v1(estimate: PolicyEstimate, evaluation: EvaluationAnswer) -> dict[str, Any]:
    summary = {
        "timeStamp": format_date(evaluation.end),
        "ipsEstimatorNumerator": estimate.ips_numerator,
        "ipsEstimatorDenominator": estimate.ips_denominator,
        "snipsEstimatorDenominator": estimate.snips_denominator,
        "aggregateTimeWindow": format_duration(evaluation.end - evaluation.start),
        "confidenceInterval": estimate.half_width,
        "averageReward": estimate.average_reward,
    }
    return {
        "name": estimate.name,
        "arguments": estimate.arguments,
        "policySource": estimate.source,
        "summary": [summary],
        "totalSummary": summary,
    }


def _estimate_2022(estimate: PolicyEstimate) -> dict[str, Any]:
    mean, half = estimate.average_reward, estimate.half_width
    return {
        "name": estimate.name,
        "arguments": estimate.arguments,
        "policySource": estimate.source,
        "summary": {"expectedReward": mean, "confidenceInterval": [mean - half, mean + half]},
        "timeseries": {"data": []},
    }
