"""Answers about offline evaluations, in the two shapes they have."""

from datetime import timedelta

import msgspec

from rbmle.evaluation.weight_sums import WeightSums
from rbmle.service.api.personalizer.evaluations import (
    EvaluationAnswer,
    Progress,
    encode_evaluation,
    encode_evaluations,
    encode_page,
)
from rbmle.service.api.personalizer.versions import Version
from rbmle.service.log.records import PolicyEstimate
from tests.service.api.samples import DAY, NOON


def test_an_evaluation_is_answered_in_both_shapes() -> None:
    estimate = PolicyEstimate(
        name="Online",
        arguments="",
        source="Online",
        ips_numerator=5.0,
        ips_denominator=10.0,
        snips_denominator=8.0,
        average_reward=0.5,
        half_width=0.25,
        warnings=["Online: POOR OVERLAP."],
        minutes=60,
        windows={10: WeightSums(6, 0, 4.0, 4.0), 12: WeightSums(4, 0, 4.0, 1.0)},
    )
    evaluation = EvaluationAnswer(
        id="e",
        name="mine",
        start=DAY,
        end=DAY + timedelta(days=1),
        created=NOON,
        progress=Progress.DONE,
        estimates=(estimate,),
        description="Online: POOR OVERLAP.",
    )
    old = msgspec.json.decode(encode_evaluation(evaluation, Version.V1_1))
    assert (old["status"], old["jobId"], old["evaluationType"]) == ("completed", "e", "Manual")
    summary = old["policyResults"][0]["totalSummary"]
    assert (summary["ipsEstimatorNumerator"], summary["aggregateTimeWindow"]) == (5.0, "P1D")
    first, second = old["policyResults"][0]["summary"]
    assert (first["timeStamp"], first["aggregateTimeWindow"]) == ("1970-01-01T11:00:00Z", "PT1H")
    assert (first["averageReward"], second["averageReward"]) == (1.0, 0.25)  # of each hour
    assert (second["ipsEstimatorDenominator"], second["confidenceInterval"]) == (4.0, None)
    assert old["policyResults"][0]["warnings"] == ["Online: POOR OVERLAP."]
    new = msgspec.json.decode(encode_evaluation(evaluation, Version.V2022))
    assert new["description"] == "Online: POOR OVERLAP."
    assert new["content"]["value"][0]["warnings"] == ["Online: POOR OVERLAP."]
    assert new["status"] == "Succeeded"
    assert new["content"]["value"][0]["summary"] == {
        "expectedReward": 0.5,
        "confidenceInterval": [0.25, 0.75],
    }
    assert new["content"]["intervalInMinutes"] == 60
    assert new["content"]["value"][0]["timeseries"]["data"] == [  # from the start on
        {"timeStamp": "1970-01-01T11:00:00Z", "expectedReward": 1.0, "confidenceInterval": []},
        {"timeStamp": "1970-01-01T13:00:00Z", "expectedReward": 0.625, "confidenceInterval": []},
    ]
    listed = msgspec.json.decode(encode_evaluations([evaluation], Version.V2022))
    assert [found["id"] for found in listed["value"]] == ["e"]
    assert encode_evaluations([], Version.V1_1) == b"[]"
    assert encode_page([], Version.V2022) == b'{"value":[]}'
