"""PyPI's azure-ai-personalizer 1.0.0b1, which speaks 2022-09-01-preview; with and without asyncio."""

import asyncio
import io
import math
from collections.abc import AsyncIterable, Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from inspect import isawaitable
from typing import Any

import pytest

from tests.sdk.azure_ai_calls import (
    ACTIONS,
    BEGIN,
    CODES,
    DECISIONS,
    END,
    EVENT,
    OPERATIONS,
    RANK,
    REFUSED,
    SLOTS_RANK,
    Before,
)
from tests.sdk.installed import python_client
from tests.sdk.proxy import Failure, Proxy, assert_same_call_again, failing
from tests.sdk.serving import KEY, Served
from tests.services import wait_until

SDK = python_client("azure-ai-personalizer", "1.0.0b1")
ERRORS = import_module("azure.core.exceptions")
VERSION = "2022-09-01-preview"
PLUMBING = {"close", "send_request"}


@pytest.fixture
def client(service: Served) -> Iterator[Any]:
    with connected(SDK.PersonalizerClient, service.address) as client:
        yield client


@pytest.fixture
def admin(service: Served) -> Iterator[Any]:
    with connected(SDK.PersonalizerAdministrationClient, service.address) as admin:
        yield admin


@pytest.fixture
def before(admin: Any) -> Before:
    return Before(
        configuration=admin.get_service_configuration(),
        policy=admin.get_policy(),
        model=b"".join(admin.export_model()),
    )


@pytest.mark.parametrize("module", ["azure.ai.personalizer", "azure.ai.personalizer.aio"])
def test_the_clients_have_no_other_calls_than_those_tested_here(module: str) -> None:
    found = import_module(module)
    assert calls_of(found.PersonalizerClient) == set(DECISIONS) | PLUMBING
    assert calls_of(found.PersonalizerAdministrationClient) == set(OPERATIONS) | PLUMBING


@pytest.mark.parametrize("name", DECISIONS)
def test_each_call_of_a_decision_succeeds(name: str, client: Any) -> None:
    DECISIONS[name](client)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_call_of_the_operator_succeeds_or_is_refused_clearly(
    name: str, admin: Any, before: Before
) -> None:
    def call() -> None:
        answer = OPERATIONS[name](admin, before)
        if name.startswith("list_"):
            assert {one["name"] for one in answer} <= {"one"}

    check(name, call)


@pytest.mark.parametrize("name", DECISIONS)
def test_each_call_of_a_decision_succeeds_with_asyncio(name: str, service: Served) -> None:
    aio = import_module("azure.ai.personalizer.aio")
    asyncio.run(awaited(aio.PersonalizerClient, service, DECISIONS[name]))


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_call_of_the_operator_succeeds_or_is_refused_clearly_with_asyncio(
    name: str, service: Served, before: Before
) -> None:
    aio = import_module("azure.ai.personalizer.aio")

    def call() -> None:
        def operate(admin: Any) -> Any:
            return OPERATIONS[name](admin, before)

        answer = asyncio.run(awaited(aio.PersonalizerAdministrationClient, service, operate))
        if name.startswith("list_"):
            assert {one["name"] for one in answer} <= {"one"}

    check(name, call)


def test_a_decision_from_its_rank_to_its_reward(client: Any, service: Served) -> None:
    event = f"{EVENT} deferred"
    answer = client.rank(RANK | {"eventId": event, "deferActivation": True})
    assert answer["eventId"] == event
    assert answer["rewardActionId"] in {ranked["id"] for ranked in answer["ranking"]}
    assert math.isclose(sum(ranked["probability"] for ranked in answer["ranking"]), 1.0)
    client.activate(event)
    client.reward(event, {"value": 1.0})
    assert service.kinds(event) == ["decided", "activated", "rewarded"]


def test_each_slot_gets_an_action_of_its_own(client: Any, service: Served) -> None:
    event = f"{EVENT} of slots"
    answer = client.rank_multi_slot(SLOTS_RANK | {"eventId": event, "deferActivation": True})
    assert answer["eventId"] == event
    assert [slot["id"] for slot in answer["slots"]] == ["top", "side"]
    chosen = [slot["rewardActionId"] for slot in answer["slots"]]
    assert len(set(chosen) & {"tea", "coffee", "mate"}) == 2
    client.activate_multi_slot(event)
    client.reward_multi_slot(event, {"reward": [{"slotId": "side", "value": 0.25}]})
    assert service.kinds(event) == ["decided", "activated", "rewarded"]


def test_a_configuration_is_as_it_was_put(admin: Any) -> None:
    before = admin.get_service_configuration()
    after = before | {"explorationPercentage": 0.125, "rewardWaitTime": "PT1H"}
    assert admin.update_service_configuration(after) == after
    assert admin.get_service_configuration() == after
    assert admin.update_service_configuration(before) == before


def test_a_policy_that_was_got_can_be_put_with_another_constant(admin: Any) -> None:
    before = admin.get_policy()
    after = before | {"arguments": f"{before['arguments']} bias=0.125"}
    assert "bias=0.125" in admin.update_policy(after)["arguments"]
    assert "bias=0.125" in admin.get_policy()["arguments"]
    assert admin.update_policy(admin.get_policy()) == admin.get_policy()
    assert admin.reset_policy() == before
    assert admin.get_policy() == before


def test_a_model_that_was_got_can_be_put(admin: Any) -> None:
    model = b"".join(admin.export_model(signed=True))
    admin.reset_model()
    admin.import_model(io.BytesIO(model))
    assert model
    properties = admin.get_model_properties()
    assert date(properties["creationTime"]) <= date(properties["lastModifiedTime"])


def test_an_evaluation_from_its_creation_to_the_policy_that_is_applied(
    client: Any, admin: Any, service: Served
) -> None:
    before, policy = admin.get_service_configuration(), admin.get_policy()
    admin.update_service_configuration(before | {"rewardWaitTime": "PT5S"})
    events = {client.rank(RANK)["eventId"] for _ in range(40)}
    for number, event in enumerate(events):
        client.reward(event, {"value": float(number % 2)})
    wait_until(lambda: service.settled(events) == 40)
    admin.update_service_configuration(before)
    time = {
        "startTime": datetime(2020, 1, 1, tzinfo=UTC),
        "endTime": datetime(2100, 1, 1, tzinfo=UTC),
    }
    judged = {"name": "neural-ucb", "arguments": "exploration=0.5"}
    admin.create_evaluation("whole", {"name": "whole", "policies": [judged], **time})
    admin.create_feature_importance("whole", {"name": "whole", **time})

    def evaluation() -> Any:
        return admin.get_evaluation("whole", start_time=BEGIN, end_time=END)

    wait_until(lambda: evaluation()["status"] == "Succeeded")
    names = [one["name"] for one in evaluation()["content"]["value"]]
    assert names == ["Online", "Baseline", "Random", "neural-ucb"]
    assert all(one["timeseries"]["data"] for one in evaluation()["content"]["value"])
    wait_until(lambda: admin.get_feature_importance("whole")["status"] == "Succeeded")
    found = admin.get_feature_importance("whole")["featureScores"]
    assert {one["featureName"] for one in found} == {"time", "hour", "kind"}
    admin.apply_from_evaluation({"evaluationId": "whole", "policyName": "neural-ucb"})
    assert admin.get_policy()["name"] == "neural-ucb"
    assert "exploration=0.5" in admin.get_policy()["arguments"]
    admin.update_policy(policy)
    admin.delete_evaluation("whole")
    admin.delete_feature_importance("whole")
    assert "whole" not in [one["id"] for one in admin.list_evaluations()]


def test_what_is_no_model_is_refused(admin: Any) -> None:
    with pytest.raises(ERRORS.HttpResponseError) as refused:
        admin.import_model(io.BytesIO(b"this is no model"))
    assert refused.value.status_code == 400


def test_the_log_knows_from_when_to_when_it_is(admin: Any) -> None:
    found = admin.get_log_properties()["dateRange"]
    assert date(found["from"]) <= date(found["to"]) <= datetime.now(UTC)


def test_a_request_of_the_callers_own_is_sent_as_it_is(client: Any, admin: Any) -> None:
    request = import_module("azure.core.rest").HttpRequest
    for sender in (client, admin):
        answer = sender.send_request(request("GET", f"/model/properties?api-version={VERSION}"))
        answer.raise_for_status()
        assert set(answer.json()) == {"creationTime", "lastModifiedTime"}


def test_a_refusal_is_parsed(client: Any) -> None:
    with pytest.raises(ERRORS.HttpResponseError) as refused:
        client.reward(EVENT, {"value": 3.0})
    assert refused.value.status_code == 400
    assert refused.value.error.code == "InvalidRewardRequest"
    assert refused.value.error.target == "value"
    assert refused.value.error.message in refused.value.message


def test_the_same_event_with_another_request_is_a_conflict(client: Any) -> None:
    asked = RANK | {"eventId": f"{EVENT} of another"}
    client.rank(asked)
    with pytest.raises(ERRORS.ResourceExistsError) as refused:
        client.rank(asked | {"actions": ACTIONS[:2]})
    assert refused.value.status_code == 409


def test_a_wrong_key_is_refused(service: Served) -> None:
    wrong = connected(SDK.PersonalizerClient, service.address, key="this-key-is-not-known")
    with wrong as client, pytest.raises(ERRORS.ClientAuthenticationError) as refused:
        client.rank(RANK)
    assert refused.value.status_code == 401
    assert refused.value.error.code == "401"


@pytest.mark.parametrize("failure", [Failure.REFUSED, Failure.LOST])
def test_what_the_client_sends_again_is_stored_once(failure: Failure, service: Served) -> None:
    before = service.last()
    with failing(service.address, failure) as proxy, to(proxy) as client:
        event = client.rank(RANK)["eventId"]
    assert_same_call_again(proxy)
    assert service.kinds(event) == ["decided"]
    assert service.decisions(before) == 1
    with failing(service.address, failure) as proxy, to(proxy) as client:
        client.reward(event, {"value": 0.5})
    assert_same_call_again(proxy)
    assert service.kinds(event) == ["decided", "rewarded"]


def test_a_call_whose_answer_was_dropped_can_be_made_again(client: Any, service: Served) -> None:
    """The client does not repeat a POST without an answer; who does, with the same id, is safe."""
    event = client.rank(RANK)["eventId"]
    again = {"headers": {"x-ms-client-request-id": "python-ai-dropped"}}
    with failing(service.address, Failure.DROPPED) as proxy, to(proxy) as dropped:
        with pytest.raises(ERRORS.ServiceResponseError):
            dropped.reward(event, {"value": 0.5}, **again)
        dropped.reward(event, {"value": 0.5}, **again)
    assert_same_call_again(proxy)
    assert service.kinds(event) == ["decided", "rewarded"]


def to(proxy: Proxy) -> Any:
    """Return a client on the other side of a proxy."""
    return connected(SDK.PersonalizerClient, proxy.address)


def connected(kind: Any, address: str, key: str = KEY, **more: Any) -> Any:
    """Return a client that does not wait long before it tries again, to be closed."""
    credential = import_module("azure.core.credentials").AzureKeyCredential(key)
    return kind(address, credential, retry_backoff_factor=0.01, **more)


async def awaited(kind: Any, service: Served, call: Callable[[Any], Any]) -> Any:
    """Return what a call of an asyncio client gives, all of it."""
    transport = import_module("azure.core.pipeline.transport").AsyncioRequestsTransport()
    async with connected(kind, service.address, transport=transport) as client:
        answer = call(client)
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, AsyncIterable):
            answer = [part async for part in answer]
        return answer


def check(name: str, call: Callable[[], None]) -> None:
    """Call, and see that what cannot be done is refused with the error of the client."""
    if name not in REFUSED:
        call()
        return
    with pytest.raises(ERRORS.HttpResponseError) as refused:
        call()
    assert refused.value.status_code == REFUSED[name]
    assert refused.value.error.code in CODES[REFUSED[name]]
    assert refused.value.error.message


def calls_of(kind: Any) -> set[str]:
    """Return the names of what can be called."""
    return {name for name in dir(kind) if not name.startswith("_")}


def date(text: str) -> datetime:
    """Return a date of the wire."""
    return datetime.fromisoformat(text)
