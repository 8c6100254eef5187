"""PyPI's azure-cognitiveservices-personalizer 0.1.1, which speaks v1.0."""

import math
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.sdk.installed import python_client
from tests.sdk.serving import KEY, Served

EVENT = "old/python é"  # percent-encoded in paths


@pytest.fixture(scope="session", autouse=True)
def sdk() -> Any:
    return python_client("azure-cognitiveservices-personalizer", "0.1.1")


@pytest.fixture
def client(sdk: Any, service: Served) -> Iterator[Any]:
    with connected(sdk, service, KEY) as client:
        yield client


def test_the_client_has_no_other_calls_than_those_tested_here(client: Any) -> None:
    assert calls_of(client) == {"rank", "close"}
    assert calls_of(client.events) == {"reward", "activate"}


def test_rank_reward_and_activate(sdk: Any, client: Any, service: Served) -> None:
    answer = client.rank(rank_request(sdk, event_id=EVENT, defer_activation=True))
    assert answer.event_id == EVENT
    assert answer.reward_action_id in {ranked.id for ranked in answer.ranking}
    assert math.isclose(sum(ranked.probability for ranked in answer.ranking), 1.0)
    assert client.events.activate(EVENT) is None
    assert client.events.reward(EVENT, 0.5) is None
    assert service.kinds(EVENT) == ["decided", "activated", "rewarded"]


def test_an_endpoint_may_end_in_a_slash(sdk: Any, service: Served) -> None:
    with connected(sdk, service, KEY, end="/") as client:
        assert client.rank(rank_request(sdk)).event_id


def test_an_excluded_action_has_no_chance(sdk: Any, client: Any) -> None:
    answer = client.rank(rank_request(sdk, excluded_actions=["tea"]))
    assert answer.reward_action_id != "tea"
    assert {ranked.id: ranked.probability for ranked in answer.ranking}["tea"] == 0.0


def test_an_event_is_answered_once(sdk: Any, client: Any, service: Served) -> None:
    asked = rank_request(sdk, event_id="old/python twice")
    first, second = client.rank(asked), client.rank(asked)
    assert first.as_dict() == second.as_dict()
    assert service.kinds("old/python twice") == ["decided"]


def test_a_refused_rank_is_the_error_of_the_client(sdk: Any, client: Any) -> None:
    with pytest.raises(sdk.models.ErrorResponseException) as refused:
        client.rank(sdk.models.RankRequest(actions=[]))
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


def test_a_wrong_key_is_the_error_of_the_client(sdk: Any, service: Served) -> None:
    wrong = connected(sdk, service, "this-key-is-not-known")
    with wrong as client, pytest.raises(sdk.models.ErrorResponseException) as refused:
        client.rank(rank_request(sdk))
    assert refused.value.response.status_code == 401
    assert refused.value.error.error.code == "401"


def connected(sdk: Any, service: Served, key: str, end: str = "") -> Any:
    """Return a client, to be closed."""
    credentials = import_module("msrest.authentication").CognitiveServicesCredentials(key)
    return sdk.PersonalizerClient(service.address + end, credentials)


def rank_request(sdk: Any, **more: Any) -> Any:
    """Return what is asked."""
    actions = [
        sdk.models.RankableAction(id=id, features=[{"kind": id}]) for id in ("tea", "coffee", "mate")
    ]
    return sdk.models.RankRequest(
        context_features=[{"time": "morning", "hour": 7}], actions=actions, **more
    )


def calls_of(client: Any) -> set[str]:
    """Return the names of what can be called."""
    return {
        name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))
    }
