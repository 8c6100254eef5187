"""Evaluations over HTTP, from the call to what was found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from rbmle.evaluation.sums import WeightSums
from rbmle.service.api.personalizer.errors import Version
from rbmle.service.api.personalizer.evaluations import (
    encode_evaluation,
    encode_evaluations,
    encode_page,
)
from rbmle.service.exports.evaluator import Evaluator, Job
from rbmle.service.log.records import EvaluationAsked, EvaluationDone, PolicyEstimate
from tests.service.api.samples import DAY, NOON
from tests.service.serving import serving
from tests.services import PATIENCE, Service, wait_until

V2022 = {"api-version": "2022-09-01-preview"}
TIME = {"startTime": "2020-01-01", "endTime": "2100-01-01"}
PLAIN = {"name": "lin-ucb", "arguments": ""}
WIDE = {"name": "lin-ucb wide", "arguments": "exploration=2"}
ASKED = {"name": "mine", **TIME, "policies": [PLAIN, WIDE]}


Call = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service]]:
    """Yield a service with 60 settled events, of both actions, and with an evaluator, and a client for it."""
    folder: Path = tmp_path_factory.mktemp("evaluating")
    with serving(folder) as site, httpx.Client(base_url=site.address, timeout=PATIENCE) as client:
        before = site.service.decider.configuration
        site.service.configure(replace(before, exploration=1.0)).result(PATIENCE)
        for number in range(60):
            when = "am" if number % 2 else "pm"
            offer = {"context": {"time": when}, "actions": [{"id": "a"}, {"id": "b"}]}
            answer = client.post("/v1/rank", json=offer).json()
            value = float((answer["chosen"] == "a") == (when == "am"))
            client.post(f"/v1/events/{answer['event']}/reward", json={"value": value})
        evaluator = Evaluator(str(folder / "log.db"), may_run=lambda: True)
        evaluator.start()
        yield client, site.service
        evaluator.stop()


@pytest.fixture
def call(service: tuple[httpx.Client, Service]) -> Call:
    def call(method: str, path: str, status: int, **more: Any) -> httpx.Response:
        answer = service[0].request(method, f"/personalizer/{path}", **more)
        assert answer.status_code == status, answer.text
        return answer

    return call


def test_an_evaluation_runs_and_its_policy_is_applied(
    call: Call, service: tuple[httpx.Client, Service]
) -> None:
    begun = call("PUT", "evaluations/one", 200, params=V2022, json=ASKED).json()
    assert begun["status"] == "Running"
    assert call("PUT", "evaluations/one", 200, params=V2022, json=ASKED).json()["id"] == "one"
    found: dict[str, Any] = {}

    def is_done() -> bool:
        found.update(call("GET", "evaluations/one", 200, params=V2022).json())
        return found["status"] != "Running"

    wait_until(is_done)
    assert found["status"] == "Succeeded"
    policies = {one["name"]: one for one in found["content"]["value"]}
    assert list(policies) == ["Online", "Baseline", "Random", "lin-ucb", "lin-ucb wide"]
    assert policies["lin-ucb wide"]["policySource"] == "Custom"
    low, high = policies["lin-ucb"]["summary"]["confidenceInterval"]
    assert low < policies["lin-ucb"]["summary"]["expectedReward"] < high
    assert found["optimalPolicy"] in policies
    listed = call("GET", "evaluations", 200, params=V2022).json()["value"]
    assert [one["id"] for one in listed] == ["one"]
    old = call("GET", "v1.1-preview.3/evaluations/one", 200).json()
    assert old["status"] == "completed"
    assert [one["name"] for one in old["policyResults"]] == list(policies)
    applied = {"evaluationId": "one", "policyName": "lin-ucb wide"}
    call("POST", "v1.1-preview.3/configurations/applyFromEvaluation", 204, json=applied)
    assert service[1].model.policy.exploration == 2.0  # type: ignore[attr-defined]  # it is LinUCB
    call("DELETE", "evaluations/one", 204, params=V2022)
    call("GET", "evaluations/one", 404, params=V2022)
    assert call("GET", "v1.0/evaluations", 200).json() == []


def test_v1_makes_up_the_id_of_an_evaluation(call: Call) -> None:
    created = call("POST", "v1.1-preview.3/evaluations", 201, json=ASKED | {"policies": []}).json()
    assert created["status"] == "pending"
    path = f"v1.1-preview.3/evaluations/{created['id']}"
    wait_until(lambda: call("GET", path, 200).json()["status"] == "completed")
    call("DELETE", path, 204)


def test_feature_importances_are_computed(call: Call) -> None:
    path, params = "featureImportances/f", {"params": V2022}
    call("PUT", path, 200, json={"name": "mine", **TIME}, **params)
    wait_until(lambda: call("GET", path, 200, **params).json()["status"] == "Succeeded")
    scores = call("GET", path, 200, **params).json()["featureScores"]
    assert [one["featureName"] for one in scores] == ["time"]
    assert scores[0]["score"] > 0.5
    (listed,) = call("GET", "featureImportances", 200, **params).json()["value"]
    assert listed["id"] == "f"
    call("GET", "evaluations/f", 404, **params)  # which are apart
    call("DELETE", path, 204, **params)
    call("GET", path, 404, **params)


def test_an_evaluation_without_events_fails_with_the_reason(call: Call) -> None:
    asked = {"name": "mine", "startTime": "2001-01-01", "endTime": "2001-01-02"}
    call("PUT", "evaluations/old", 200, params=V2022, json=asked)
    path = "evaluations/old"
    wait_until(lambda: call("GET", path, 200, params=V2022).json()["status"] == "Failed")
    found = call("GET", path, 200, params=V2022).json()
    assert "no decision of this time is settled" in found["description"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"startTime": "yesterday"}, 400, "'yesterday' is not a date"),
        ({"endTime": "2019-01-01"}, 400, "the end must be after the start"),
        ({"policies": [PLAIN, PLAIN]}, 400, "each with a name of its own"),
        ({"policies": [{"name": "vw", "arguments": "--cb_adf"}]}, 400, "there is no policy"),
        ({"policies": 3}, 400, "Expected `array"),
    ],
)
def test_an_invalid_evaluation_is_refused(
    call: Call, changes: dict[str, Any], status: int, words: str
) -> None:
    answer = call("PUT", "evaluations/bad", status, params=V2022, json=ASKED | changes)
    assert words in answer.json()["error"]["message"]


def test_another_evaluation_with_the_same_id_is_a_conflict(call: Call) -> None:
    call("PUT", "evaluations/two", 200, params=V2022, json=ASKED | {"policies": []})
    again = call("PUT", "evaluations/two", 409, params=V2022, json=ASKED)
    assert "delete it" in again.json()["error"]["message"]
    call("DELETE", "evaluations/two", 204, params=V2022)
    call("PUT", "evaluations/two", 200, params=V2022, json=ASKED | {"policies": []})
    call("DELETE", "evaluations/two", 204, params=V2022)


def test_only_evaluated_policies_can_be_applied(call: Call) -> None:
    applied = {"evaluationId": "none", "policyName": "lin-ucb"}
    call("POST", "v1.0/configurations/applyFromEvaluation", 404, json=applied)
    call("PUT", "evaluations/three", 200, params=V2022, json=ASKED | {"policies": []})
    applied["evaluationId"] = "three"
    refused = call("POST", "v1.0/configurations/applyFromEvaluation", 400, json=applied).json()
    assert "has judged no policy 'lin-ucb'" in refused["error"]["message"]
    call("DELETE", "evaluations/three", 204, params=V2022)


def test_an_evaluation_is_answered_in_both_formats() -> None:
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
    start = round(DAY.timestamp() * 1000)
    asked = EvaluationAsked(id="e", name="mine", start=start, end=start + 86_400_000)
    done = EvaluationDone(asked=7, estimates=[estimate])
    evaluation = Job(seq=7, created=round(NOON.timestamp() * 1000), asked=asked, done=done)
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
