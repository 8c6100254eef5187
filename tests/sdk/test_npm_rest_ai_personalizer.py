"""npm's @azure-rest/ai-personalizer 1.0.0-beta.1, which speaks v1.1-preview.3."""

import json
import math
from typing import Any

import pytest

from tests.sdk.installed import need_node, run_node
from tests.sdk.proxy import Failure, Proxy, assert_same_call_again, failing
from tests.sdk.serving import KEY, Served

need_node("@azure-rest/ai-personalizer")
EVENT = "npm/rest é"  # as in the script
RANK = {"actions": [{"id": id, "features": [{"kind": id}]} for id in ("tea", "coffee")]}
REFUSED = {
    "POST /configurations/applyFromEvaluation": 404,
    "POST /logs/interactions": 501,
    "POST /logs/observations": 501,
}


@pytest.fixture(scope="module")
def outcomes(service: Served) -> Any:
    return run_node("rest.cjs", service.address, KEY)


def test_every_call_succeeds_or_is_refused_clearly(outcomes: Any) -> None:
    expected = outcomes["calls"] | REFUSED
    assert len(expected) == 24
    assert {name: outcomes[name]["status"] for name in expected} == expected


def test_a_refusal_has_a_code_and_a_message(outcomes: Any) -> None:
    for name in [*REFUSED, "refused", "wrong key"]:
        error = outcomes[name]["body"]["error"]
        assert error["code"], name
        assert error["message"], name
    assert outcomes["refused"]["status"] == 400
    assert outcomes["refused"]["body"]["error"]["code"] == "InvalidRankRequest"
    assert outcomes["wrong key"]["status"] == 401


def test_the_client_knows_success_but_for_paths_with_an_id(outcomes: Any) -> None:
    """It looks for those with the version still in front, finds none, and calls all unexpected."""
    for name in set(outcomes["calls"]) - set(REFUSED):
        assert outcomes[name]["isUnexpected"] is ("{" in name), name


def test_an_answer_has_its_probabilities(outcomes: Any, service: Served) -> None:
    answer = outcomes["POST /rank"]["body"]
    assert answer["eventId"] == EVENT
    assert answer["rewardActionId"] in {ranked["id"] for ranked in answer["ranking"]}
    assert math.isclose(sum(ranked["probability"] for ranked in answer["ranking"]), 1.0)
    assert service.kinds(EVENT) == ["decided", "activated", "rewarded"]


def test_each_slot_gets_an_action_of_its_own(outcomes: Any, service: Served) -> None:
    answer = outcomes["POST /multislot/rank"]["body"]
    assert [slot["id"] for slot in answer["slots"]] == ["top", "side"]
    assert len({slot["rewardActionId"] for slot in answer["slots"]}) == 2
    assert service.kinds(answer["eventId"]) == ["decided", "activated", "rewarded"]


def test_what_was_got_can_be_put(outcomes: Any) -> None:
    for name in ("configurations/service", "configurations/policy"):
        assert outcomes[f"PUT /{name}"]["body"] == outcomes[f"GET /{name}"]["body"]
    assert outcomes["GET /model"]["body"] > 0


def test_an_evaluation_can_be_asked_for_and_found(outcomes: Any) -> None:
    created = outcomes["POST /evaluations"]["body"]
    assert (created["name"], created["status"]) == ("one", "pending")
    assert created["id"] in [one["id"] for one in outcomes["GET /evaluations"]["body"]]
    assert outcomes["GET /evaluations/{evaluationId}"]["body"]["id"] == created["id"]


@pytest.mark.parametrize("failure", Failure)
def test_what_the_client_sends_again_is_stored_once(failure: Failure, service: Served) -> None:
    before = service.last()
    with failing(service.address, failure) as proxy:
        event = posted(proxy, "/rank", RANK)["body"]["eventId"]
    assert_same_call_again(proxy)
    assert service.kinds(event) == ["decided"]
    assert service.decisions(before) == 1
    with failing(service.address, failure) as proxy:
        answer = posted(proxy, "/events/{eventId}/reward", {"value": 0.5}, event)
    assert answer["status"] == 204
    assert_same_call_again(proxy)
    assert service.kinds(event) == ["decided", "rewarded"]


def posted(proxy: Proxy, path: str, body: Any, *ids: str) -> Any:
    """Return what a client gets that posts to a path."""
    return run_node("rest_again.cjs", proxy.address, KEY, path, json.dumps(body), *ids)
