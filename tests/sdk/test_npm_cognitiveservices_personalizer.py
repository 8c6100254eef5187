"""npm's @azure/cognitiveservices-personalizer 2.0.1, which speaks v1.0."""

import math
from typing import Any

import pytest

from tests.sdk.installed import need_node, run_node
from tests.sdk.serving import KEY, Served

need_node("@azure/cognitiveservices-personalizer")
EVENT = "npm/old é"  # as in the script


@pytest.fixture(scope="module")
def outcomes(service: Served) -> Any:
    return run_node("cognitiveservices.cjs", service.address, KEY)


def test_every_call_succeeds(outcomes: Any, service: Served) -> None:
    statuses = {name: outcomes[name]["status"] for name in outcomes["calls"]}
    assert statuses == {"rank": 201, "reward": 204, "activate": 204}
    assert service.kinds(EVENT) == ["decided", "activated", "rewarded"]


def test_an_answer_has_its_probabilities(outcomes: Any) -> None:
    answer = outcomes["rank"]["body"]
    assert answer["eventId"] == EVENT
    assert answer["rewardActionId"] in {ranked["id"] for ranked in answer["ranking"]}
    assert math.isclose(sum(ranked["probability"] for ranked in answer["ranking"]), 1.0)


def test_an_endpoint_may_end_in_a_slash(outcomes: Any) -> None:
    assert outcomes["slash"]["status"] == 201


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("refused", 400, "BadRequest"), ("too large", 400, "BadRequest"), ("wrong key", 401, "401")],
)
def test_a_refusal_is_the_error_of_the_client(
    outcomes: Any, name: str, status: int, code: str
) -> None:
    refused = outcomes[name]
    assert (refused["kind"], refused["status"]) == ("RestError", status)
    assert refused["body"]["error"]["code"] == code
    assert refused["body"]["error"]["message"]
