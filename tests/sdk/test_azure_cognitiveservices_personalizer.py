"""PyPI's azure-cognitiveservices-personalizer 0.1.1, which speaks v1.0."""

import math
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.sdk.installed import python_client
from tests.sdk.serving import KEY, Served

SDK = python_client("azure-cognitiveservices-personalizer", "0.1.1")
EVENT = "old/python é"  # percent-encoded in paths


@pytest.fixture
def client(service: Served) -> Iterator[Any]:
    with connected(service, KEY) as client:
        yield client


def test_the_client_has_no_other_calls_than_those_tested_here(client: Any) -> None:
    assert calls_of(client) == {"rank", "close"}
    assert calls_of(client.events) == {"reward", "activate"}


def test_rank_reward_and_activate(client: Any, service: Served) -> None:
    answer = client.rank(rank_request(event_id=EVENT, defer_activation=True))
    assert answer.event_id == EVENT
    assert answer.reward_action_id in {ranked.id for ranked in answer.ranking}
    assert math.isclose(sum(ranked.probability for ranked in answer.ranking), 1.0)
    assert client.events.activate(EVENT) is None
    assert client.events.reward(EVENT, 0.5) is None
    assert service.kinds(EVENT) == ["decided", "activated", "rewarded"]


def test_an_endpoint_may_end_in_a_slash(service: Served) -> None:
    with connected(service, KEY, end="/") as client:
        assert client.rank(rank_request()).event_id


def test_an_excluded_action_has_no_chance(client: Any) -> None:
    answer = client.rank(rank_request(excluded_actions=["tea"]))
    assert answer.reward_action_id != "tea"
    assert {ranked.id: ranked.probability for ranked in answer.ranking}["tea"] == 0.0


def test_an_event_is_answered_once(client: Any, service: Served) -> None:
    asked = rank_request(event_id="old/python twice")
    first, second = client.rank(asked), client.rank(asked)
    assert first.as_dict() == second.as_dict()
    assert service.kinds("old/python twice") == ["decided"]


def test_a_refused_rank_is_the_error_of_the_client(client: Any) -> None:
    with pytest.raises(SDK.models.ErrorResponseException) as refused:
        client.rank(SDK.models.RankRequest(actions=[]))
    assert refused.value.response.status_code == 400
    error = refused.value.error.error
    assert (error.code, error.target) == ("BadRequest", "actions")
    assert error.inner_error.code == "InvalidRankRequest"
    assert error.message


def test_a_refused_reward_is_the_error_of_the_client(client: Any) -> None:
    with pytest.raises(import_module("msrest.exceptions").HttpOperationError) as refused:
        client.events.reward(EVENT, 3.0)
    assert refused.value.response.status_code == 400
    assert refused.value.response.json()["error"]["target"] == "value"


def test_a_wrong_key_is_the_error_of_the_client(service: Served) -> None:
    wrong = connected(service, "this-key-is-not-known")
    with wrong as client, pytest.raises(SDK.models.ErrorResponseException) as refused:
        client.rank(rank_request())
    assert refused.value.response.status_code == 401
    assert refused.value.error.error.code == "401"


def connected(service: Served, key: str, end: str = "") -> Any:
    """Return a client, to be closed."""
    credentials = import_module("msrest.authentication").CognitiveServicesCredentials(key)
    return SDK.PersonalizerClient(service.address + end, credentials)


def rank_request(**more: Any) -> Any:
    """Return what is asked."""
    actions = [
        SDK.models.RankableAction(id=id, features=[{"kind": id}])
        for id in ("tea", "coffee", "mate")
    ]
    return SDK.models.RankRequest(
        context_features=[{"time": "morning", "hour": 7}], actions=actions, **more
    )


def calls_of(client: Any) -> set[str]:
    """Return the names of what can be called."""
    return {
        name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))
    }
