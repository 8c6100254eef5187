"""Evaluations over HTTP, from the call to what was found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from rbmle.service.evaluations.running import Evaluator
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


def test_an_evaluation_from_its_call_to_the_policy_that_it_found(
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


def test_v1_gives_an_id(call: Call) -> None:
    created = call("POST", "v1.1-preview.3/evaluations", 201, json=ASKED | {"policies": []}).json()
    assert created["status"] == "pending"
    path = f"v1.1-preview.3/evaluations/{created['id']}"
    wait_until(lambda: call("GET", path, 200).json()["status"] == "completed")
    call("DELETE", path, 204)


def test_features_that_matter_are_found(call: Call) -> None:
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


def test_an_evaluation_that_cannot_be_fails_with_the_reason(call: Call) -> None:
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
def test_what_cannot_be_meant_is_refused(
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


def test_only_what_was_judged_can_be_applied(call: Call) -> None:
    applied = {"evaluationId": "none", "policyName": "lin-ucb"}
    call("POST", "v1.0/configurations/applyFromEvaluation", 404, json=applied)
    call("PUT", "evaluations/three", 200, params=V2022, json=ASKED | {"policies": []})
    applied["evaluationId"] = "three"
    refused = call("POST", "v1.0/configurations/applyFromEvaluation", 400, json=applied).json()
    assert "has judged no policy 'lin-ucb'" in refused["error"]["message"]
    call("DELETE", "evaluations/three", 204, params=V2022)
