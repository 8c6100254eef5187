"""HTTP: keys, limits, both dialects, and what a client hears when something is wrong."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from rbmle.service.access.limits import WorkBudget
from rbmle.service.api.base import MOST_BYTES, GoneError, TooLargeError, TooSlowError
from rbmle.service.front.decider import EventSlots
from rbmle.service.http.app import receive_body
from rbmle.service.log.base import LogUnavailable
from rbmle.service.log.records import PromotionAsked, decode_record
from tests.service.http.samples import LATE
from tests.service.serving import serving
from tests.services import PATIENCE, Service, learned, wait_until

RANK = {"context": {"who": "u"}, "actions": [{"id": "a"}, {"id": "b"}]}
OLD_RANK = {
    "contextFeatures": [{"who": "u"}],
    "actions": [{"id": "a", "features": [{"x": 1}]}, {"id": "b", "features": [{"x": 2}]}],
}
V2022 = {"api-version": "2022-09-01-preview"}
SLOTS = RANK | {"slots": [{"id": "top", "baseline": "a"}, {"id": "left side", "baseline": "b"}]}
LARGE = {
    "context": {f"c{i}": i for i in range(100)},
    "actions": [{"id": str(k), "features": {f"f{i}": 0.5 for i in range(98)}} for k in range(50)],
}


@contextmanager
def served(
    folder: Path, *, has_keys: bool = True, budget: WorkBudget | None = None
) -> Iterator[tuple[httpx.Client, Service, Any]]:
    """Yield a client with an admin key, the service, and its keys."""
    with serving(folder, has_keys=has_keys, budget=budget) as site:
        headers = {"authorization": f"Bearer {site.keys.admin.primary}"} if has_keys else {}
        with httpx.Client(base_url=site.address, headers=headers, timeout=PATIENCE) as client:
            yield client, site.service, site.app.keys


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Service, Any]]:
    with served(tmp_path_factory.mktemp("app")) as site:
        yield site


@pytest.fixture(scope="module")
def client(site: tuple[httpx.Client, Service, Any]) -> httpx.Client:
    return site[0]


def test_rank_reward_and_look(client: httpx.Client) -> None:
    ranked = client.post("/v1/rank", json=RANK | {"event": "a/b é"})
    assert ranked.status_code == 201
    assert ranked.json()["event"] == "a/b é"
    assert sum(action["probability"] for action in ranked.json()["ranking"]) == pytest.approx(1)
    path = "/v1/events/a%2Fb%20%C3%A9"
    assert client.post(f"{path}/reward", json={"value": 0.25}).status_code == 204
    event = client.get(path).json()
    assert event["rewards"] == {"": 0.25}
    assert event["answer"] == ranked.json()


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize(
    ("rank", "reward", "target", "message"),
    [
        (RANK, {"slots": {"top": 1}}, "slots", "has no slots"),
        (SLOTS, {"value": 1}, "value", "has the slots 'top', 'left side'"),
        (
            SLOTS,
            {"slots": {"top": 1, "right side": 1}},
            'slots["right side"]',
            "no slot 'right side'",
        ),
    ],
)
def test_a_reward_for_the_wrong_slots_is_refused(
    site: tuple[httpx.Client, Service, Any],
    is_remembered: bool,
    rank: dict[str, Any],
    reward: dict[str, Any],
    target: str,
    message: str,
) -> None:
    client, service, _ = site
    event = client.post("/v1/rank", json=rank).json()["event"]
    if not is_remembered:  # as on another front end
        wait_until(lambda: service.report.has_slots or "slots" not in rank)
        service.decider.slots = EventSlots(service.log, lambda: service.report.has_slots)
    records = service.log.last()
    refused = client.post(f"/v1/events/{event}/reward", json=reward)
    assert refused.status_code == 400
    assert refused.json()["error"]["target"] == target
    assert message in refused.json()["error"]["message"]
    assert service.log.last() == records
    rightly = {"slots": {"top": 1}} if "slots" in rank else {"value": 1}
    assert client.post(f"/v1/events/{event}/reward", json=rightly).status_code == 204


def test_a_reward_for_an_unknown_event_is_accepted(client: httpx.Client) -> None:
    for reward in ({"value": 1}, {"slots": {"top": 1}}):
        assert client.post("/v1/events/not-yet/reward", json=reward).status_code == 204


def test_personalizer_accepts_rewards_for_the_wrong_slots(client: httpx.Client) -> None:
    where = "/personalizer/v1.1-preview.3"
    event = client.post("/v1/rank", json=SLOTS).json()["event"]
    assert client.post(f"{where}/events/{event}/reward", json={"value": 1}).status_code == 204
    slots = {"reward": [{"slotId": "none", "value": 1}]}
    assert client.post(f"{where}/multislot/events/{event}/reward", json=slots).status_code == 204


@pytest.mark.parametrize(
    "where", ["personalizer/v1.0", "personalizer/v1.1-preview.3", "personalizer"]
)
def test_personalizer_in_its_three_versions(client: httpx.Client, where: str) -> None:
    query = V2022 if where == "personalizer" else {}
    ranked = client.post(f"/{where}/rank", json=OLD_RANK, params=query)
    assert ranked.status_code == 201
    event = ranked.json()["eventId"]
    assert ranked.json()["rewardActionId"] in "ab"
    reward = client.post(f"/{where}/events/{event}/reward", json={"value": 1}, params=query)
    assert (reward.status_code, reward.content) == (204, b"")
    assert client.post(f"/{where}/events/{event}/activate", params=query).status_code == 204


def test_personalizers_operator_calls_work(site: tuple[httpx.Client, Service, Any]) -> None:
    client, service, _ = site

    def call(method: str, path: str, **others: Any) -> httpx.Response:
        answer = client.request(method, f"/personalizer/v1.0/{path}", **others)
        assert answer.status_code < 300, answer.text
        return answer

    configuration = call("GET", "configurations/service").json()
    configuration["explorationPercentage"] = 0.4
    assert call("PUT", "configurations/service", json=configuration).json() == configuration
    assert service.decider.configuration.exploration == 0.4
    policy = call("GET", "configurations/policy").json()
    assert policy["name"] == "neural-rbmle-pc"
    changed = {"name": "neural-ucb", "arguments": of_the_model(policy) + " exploration=0.5"}
    assert call("PUT", "configurations/policy", json=changed).json()["name"] == "neural-ucb"
    wait_until(lambda: type(service.model.policy).__name__ == "NeuralUCB")
    assert call("PUT", "configurations/policy", json=policy).json() == policy
    wait_until(lambda: type(service.model.policy).__name__ == "NeuralRBMLEPC")
    model = call("GET", "model")
    assert model.headers["content-type"] == "application/octet-stream"
    call("PUT", "model", content=model.content)
    call("DELETE", "model")
    learned(service)
    assert set(call("GET", "model/properties").json()) == {"creationTime", "lastModifiedTime"}
    assert set(call("GET", "logs/properties").json()["dateRange"]) == {"from", "to"}
    assert call("GET", "evaluations").json() == []


def of_the_model(policy: dict[str, str]) -> str:
    """Return the settings that a policy has in common with others that have its model."""
    return " ".join(one for one in policy["arguments"].split(" ") if one.startswith("model"))


def test_a_changed_configuration_applies_to_the_next_request(client: httpx.Client) -> None:
    path = "/personalizer/v1.0/configurations/policy"
    before, model = client.get(path).json(), client.get("/personalizer/v1.0/model").content
    changed = {"name": "neural-ucb", "arguments": of_the_model(before)}
    assert client.put(path, json=changed).status_code == 200
    assert client.get(path).json()["name"] == "neural-ucb"
    refused = client.put("/personalizer/v1.0/model", content=model)
    assert refused.status_code == 400  # it is of the policy that was before
    assert client.put(path, json=before).json() == before
    assert client.put("/personalizer/v1.0/model", content=model).status_code == 204
    assert client.get("/readyz").status_code == 200


def test_unsupported_operations_say_so(client: httpx.Client) -> None:
    foreign = {"name": "new", "arguments": "--cb_explore_adf --epsilon 0.2"}
    refused = client.put("/personalizer/v1.0/configurations/policy", json=foreign)
    assert refused.status_code == 400
    assert "there is no policy 'new'" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        "bias=abc",
        "bias={[]:1}",
        "bias=" + 1000 * "-" + "1",
        "model=5",
        "growth=7",
        "model.network=Network(width=-3)",
        "model.network=Network(width=1000000000)",
        "model.likelihood=Network()",
        "model.memory=Memory(keep='x')",
    ],
)
def test_an_invalid_policy_is_refused(client: httpx.Client, arguments: str) -> None:
    settings = {"name": "neural-rbmle-pc", "arguments": arguments}
    refused = client.put("/personalizer/v1.0/configurations/policy", json=settings)
    assert refused.status_code == 400, refused.text
    assert client.get("/readyz").status_code == 200


def test_a_configuration_is_read_and_changed(client: httpx.Client) -> None:
    before = client.get("/v1/configuration").json()
    after = before | {"exploration": 0.3}
    assert client.put("/v1/configuration", json=after).json() == after
    refused = client.put("/v1/configuration", json=before | {"exploration": 3})
    assert (refused.status_code, refused.json()["error"]["target"]) == (400, "exploration")
    assert client.put("/v1/configuration", json=before).json() == before


def test_a_put_of_one_setting_is_refused_and_a_patch_changes_no_other(client: httpx.Client) -> None:
    before = client.get("/v1/configuration").json()
    changed = client.patch("/v1/configuration", json={"reward_wait_time": "PT1M"}).json()
    assert changed == before | {"reward_wait_time": "PT1M"}
    refused = client.put("/v1/configuration", json={"exploration": 0.3})
    assert refused.status_code == 400
    message = refused.json()["error"]["message"]
    assert all(name in message for name in before if name != "exploration")
    assert "PATCH" in message
    assert client.get("/v1/configuration").json() == changed
    for wrong in ({"exploration": 3}, {"exploration": "a"}, {"colour": 1}):
        refused = client.patch("/v1/configuration", json=wrong)
        assert (refused.status_code, refused.json()["error"]["target"]) == (400, next(iter(wrong)))
    assert client.patch("/v1/configuration", json=before).json() == before


def test_a_large_body_is_refused_before_it_is_read(client: httpx.Client) -> None:
    refused = client.post("/v1/rank", content=b"x" * (MOST_BYTES + 1))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")


def test_unknown_paths_and_methods_are_refused(client: httpx.Client) -> None:
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/v1/events/nobody").status_code == 404
    assert client.get("/nothing").status_code == 404
    wrong = client.get("/v1/rank")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert client.post("/personalizer/rank", json=OLD_RANK).status_code == 400  # no api-version


def test_keys_have_scopes(site: tuple[httpx.Client, Service, Any]) -> None:
    client, _, keys = site
    read = {"authorization": f"Bearer {keys.keys.read.secondary}"}
    assert client.get("/v1/status", headers=read).status_code == 200
    assert client.get("/metrics", headers=read).status_code == 200
    refused = client.post("/v1/rank", json=RANK, headers=read)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert "scope `decide` or `admin`" in refused.json()["error"]["message"]
    old = {"ocp-apim-subscription-key": keys.keys.admin.secondary, "authorization": ""}
    assert client.post("/personalizer/v1.0/rank", json=OLD_RANK, headers=old).status_code == 201
    for path in ("/v1/status", "/metrics"):
        assert client.get(path, headers={"authorization": ""}).status_code == 401


def test_a_decide_key_may_only_rank_reward_and_activate(
    site: tuple[httpx.Client, Service, Any],
) -> None:
    client, _, keys = site
    decide = {"authorization": f"Bearer {keys.keys.decide.primary}"}
    for place, rank in (("v1", RANK), ("personalizer/v1.0", OLD_RANK)):
        ranked = client.post(f"/{place}/rank", json=rank, headers=decide)
        assert ranked.status_code == 201
        event = ranked.json().get("event") or ranked.json()["eventId"]
        where = f"/{place}/events/{event}"
        reward = client.post(f"{where}/reward", json={"value": 1}, headers=decide)
        assert reward.status_code == 204
        assert client.post(f"{where}/activate", headers=decide).status_code == 204
    for method, path in (
        ("GET", "/v1/status"),
        ("GET", "/v1/events/e"),
        ("GET", "/v1/configuration"),
        ("PUT", "/v1/configuration"),
        ("GET", "/metrics"),
        ("GET", "/personalizer/v1.0/model"),
        ("DELETE", "/personalizer/v1.0/model"),
        ("PUT", "/personalizer/v1.0/configurations/policy"),
        ("DELETE", "/personalizer/v1.0/logs"),
    ):
        assert client.request(method, path, headers=decide).status_code == 403, path
    form = client.post("/dashboard/login", data={"key": keys.keys.decide.primary})
    assert form.status_code == 401


def test_health_readiness_and_openapi_are_served(client: httpx.Client) -> None:
    assert client.get("/healthz").text == "alive\n"
    assert client.get("/readyz").text == "ready\n"
    figures = client.get("/metrics").text
    for name in ("rbmle_requests_total", "rbmle_backlog_records", "rbmle_rewards_total"):
        assert name in figures
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert "/v1/rank" in document["paths"]
    assert client.get("/").headers["location"] == "/dashboard"


def test_guessing_keys_is_slowed_down(tmp_path: Path) -> None:
    with served(tmp_path) as (client, _, _keys):
        wrong = {"authorization": "Bearer a-key-that-is-none"}
        answers = [client.get("/v1/status", headers=wrong) for _ in range(11)]
        assert {answer.status_code for answer in answers[:10]} == {401}
        assert answers[10].status_code == 429
        assert int(answers[10].headers["retry-after"]) > 0


def test_a_client_with_an_old_key_locks_nobody_out(tmp_path: Path) -> None:
    with served(tmp_path) as (client, _, _keys):
        wrong = {"authorization": "Bearer a-key-that-is-none"}
        for _ in range(30):
            client.post("/v1/rank", json=RANK, headers=wrong)
            assert client.post("/v1/rank", json=RANK).status_code == 201
            assert client.get("/v1/status").status_code == 200
        assert client.get("/v1/status", headers=wrong).status_code == 429


def test_without_keys_every_request_is_admitted(tmp_path: Path) -> None:
    with served(tmp_path, has_keys=False) as (client, _, _keys):
        assert client.post("/v1/rank", json=RANK, headers={"authorization": ""}).status_code == 201


def test_a_failed_write_reveals_no_path_to_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(rows: Any) -> int:
        raise LogUnavailable(f"2 rows could not be stored in {tmp_path}/log.db at db.example")

    with served(tmp_path) as (client, service, _keys), capture_logs() as lines:
        monkeypatch.setattr(service.log, "append", fail)
        for path, body in (("/v1/rank", RANK), ("/personalizer/v1.0/rank", OLD_RANK)):
            refused = client.post(path, json=body)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0
            assert "log is not available" in refused.json()["error"]["message"]
            assert str(tmp_path) not in refused.text
            assert "db.example" not in refused.text
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert str(tmp_path) not in ready.text
        monkeypatch.undo()
        wait_until(lambda: service.problem is None)
    assert [line["event"] for line in lines] == ["cannot write the log", "can write the log again"]
    assert str(tmp_path) in lines[0]["why"]


def test_only_a_key_over_its_budget_must_wait(tmp_path: Path) -> None:
    with served(tmp_path, budget=WorkBudget(600_000)) as (client, _, keys):
        heavy = {"authorization": f"Bearer {keys.keys.decide.primary}"}
        answers = [client.post("/v1/rank", json=LARGE, headers=heavy) for _ in range(8)]
        refused = next(answer for answer in answers if answer.status_code != 201)
        assert answers[0].status_code == 201
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert "505,000" in refused.json()["error"]["message"]
        assert client.post("/v1/rank", json=RANK, headers=heavy).status_code == 201  # it is free
        assert client.post("/v1/rank", json=LARGE).status_code == 201  # of another key


def test_a_service_whose_learner_is_silent_is_ready_and_says_so(tmp_path: Path) -> None:
    with served(tmp_path, has_keys=False) as (client, service, _):
        wait_until(lambda: service.is_learner_up)
        assert client.get("/readyz").text == "ready\n"
        assert "rbmle_learner_up 1.0" in client.get("/metrics").text
        service.learner.stop()
        service._thread.join(PATIENCE)
        assert client.post("/v1/rank", json=RANK).status_code == 201
        wait_until(lambda: service.lag_seconds > 0)
        wait_until(lambda: not service.is_learner_up)
        wait_until(lambda: service.degraded is not None)
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert ready.text.startswith("ready\ndegraded: The learner has shown no sign of life for")
        metrics = client.get("/metrics").text
        assert "rbmle_ready 1.0" in metrics
        assert "rbmle_learner_up 0.0" in metrics
        assert 'rbmle_notices{code="learner-silent",level="alarm"} 1.0' in metrics
        assert client.post("/v1/rank", json=RANK).status_code == 201


def test_a_body_in_chunks_is_refused_by_the_chunk_over_the_limit() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    messages = Messages(part, part, part)
    with pytest.raises(TooLargeError, match="larger than 3 bytes"):
        asyncio.run(receive_body({"headers": []}, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1
    announced = {"headers": [(b"host", b"a"), (b"content-length", b"4")]}
    with pytest.raises(TooLargeError):
        asyncio.run(receive_body(announced, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1


def test_a_disconnected_client_raises_gone_error() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    for before in ([], [part], [part, part]):
        messages = Messages(*before, {"type": "http.disconnect"})
        with pytest.raises(GoneError):
            asyncio.run(receive_body({"headers": []}, messages.receive, limit=9, seconds=1))


def test_the_whole_body_has_one_deadline() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.08)
        return {"type": "http.request", "body": b"a", "more_body": True}

    begun = time.monotonic()
    with pytest.raises(TooSlowError, match=r"within 0\.2 s"):
        asyncio.run(receive_body({"headers": []}, receive, limit=100, seconds=0.2))
    assert time.monotonic() - begun < 0.2 + LATE


def test_a_body_that_arrives_later_is_received_and_can_be_cancelled() -> None:
    async def run() -> None:
        arrived = asyncio.Event()
        ends: list[str] = []

        async def receive() -> Message:
            try:
                await arrived.wait()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            return {"type": "http.request", "body": b"late"}

        body = receive_body({"headers": []}, receive, limit=9, seconds=5)
        task = asyncio.create_task(body)
        await asyncio.sleep(0.01)
        arrived.set()
        assert await task == b"late"
        arrived.clear()
        with pytest.raises(TooSlowError):
            await receive_body({"headers": []}, receive, limit=9, seconds=0.01)
        assert ends == ["cancelled"]

    asyncio.run(run())


class Messages:
    """A client whose messages are all here."""

    def __init__(self, *messages: Message) -> None:
        self.left = list(messages)

    async def receive(self) -> Message:
        return self.left.pop(0)


def test_lifts_and_shadows_are_shown_and_only_shadows_can_be_promoted(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as (client, service, _):
        assert client.get("/v1/lift").json() == {"holdout": None, "baseline": [], "losing": None}
        changed = client.patch("/v1/configuration", json={"shadows": ["lin-ucb:exploration=0.5"]})
        assert changed.json()["shadows"] == ["lin-ucb:exploration=0.5"]
        assert client.get("/v1/shadows").json() == {"shadows": []}
        refused = client.post("/v1/shadows/lin-ucb/promote")
        assert refused.status_code == 404
        assert "the configuration has lin-ucb:exploration=0.5" in refused.json()["error"]["message"]
        assert client.post("/v1/shadows/lin-ucb%3Aexploration%3D0.5/promote").status_code == 200
        (asked,) = service.log.of_event("\x1e")
        assert decode_record(asked.row) == PromotionAsked(policy="lin-ucb:exploration=0.5")
        wrong = client.patch("/v1/configuration", json={"shadows": ["no-such-policy"]})
        assert wrong.status_code == 400
        assert "no-such-policy" in wrong.json()["error"]["message"]
        client.patch("/v1/configuration", json={"shadows": []})
