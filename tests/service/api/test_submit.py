"""The one way in: what is replied, when, and what is in the log by then."""

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rbmle.features.errors import LEVELS
from rbmle.policies.registry import policy_with
from rbmle.service.api.base import MOST_BYTES, RefusedError, Reply, Request
from rbmle.service.api.routes import find_route
from rbmle.service.api.submit import MOST, MOST_QUEUED
from rbmle.service.log.base import LogUnavailable
from rbmle.service.model.limits import check
from tests.service.serving import Site, rank_body, serving
from tests.services import PATIENCE, SMALL, wait_until

NATIVE = "/v1/rank"
PATHS = [
    NATIVE,
    "/personalizer/v1.0/rank",
    "/personalizer/v1.1-preview.3/rank",
    "/personalizer/rank?api-version=2022-09-01-preview",
]
SLOTS: dict[str, Any] = {
    "context": {"who": "u"},
    "actions": [{"id": "a"}, {"id": "b", "features": {"x": 1.5}}, {"id": "c"}],
    "slots": [
        {"id": "top", "baseline": "a"},
        {"id": "left", "baseline": "b", "features": {"wide": True}},
    ],
}
OLD_SLOTS = {
    "actions": [{"id": "a", "features": []}, {"id": "b", "features": [{"x": 1}]}],
    "slots": [{"id": "s", "baselineAction": "a", "features": None, "excludedActions": ["b"]}],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("submit")) as site:
        yield site


@pytest.mark.parametrize("path", PATHS)
def test_a_rank_is_answered_only_once_it_is_on_disk(site: Site, path: str) -> None:
    event = f"durable {path}"
    with site.gate.held():
        (future,) = site.submit([rank(path, event=event)])
        time.sleep(0.05)
        assert not future.done()
        assert not site.is_stored(event)
    reply = future.result(PATIENCE)
    assert site.is_stored(event)
    assert (reply.status, reply.kind, reply.headers) == (201, b"application/json", ())
    assert json_of(reply)["event" if path == NATIVE else "eventId"] == event


def test_slots_are_filled_without_excluded_actions(site: Site) -> None:
    top, left = SLOTS["slots"]
    for event, slots in (("slots", [top, left]), ("excluding", [top, left | {"excluded": ["c"]}])):
        reply = site.reply(post(SLOTS | {"event": event, "slots": slots}))
        assert [slot["id"] for slot in json_of(reply)["slots"]] == ["top", "left"]
    reply = site.reply(post(OLD_SLOTS, "/personalizer/v1.1-preview.3/multislot/rank"))
    assert (reply.status, json_of(reply)["slots"]) == (201, [{"id": "s", "rewardActionId": "a"}])
    excluding = {"actions": [{"id": "a"}, {"id": "b"}], "excluded": ["a"]}
    assert json_of(site.reply(post(excluding)))["chosen"] == "b"


BAD = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b'{"actions": []}',
    b'{"actions": "a"}',
    b'{"actions": [{"id": 1}]}',
    b'{"actions": [{"id": ""}]}',
    b'{"actions": [{"id": "a"}, {"id": "a"}]}',
    b'{"actions": [{"id": "a"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a"}], "more": 1}',
    b'{"actions": [{"id": "a", "more": 1}]}',
    b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "a", "more": 1}]}',
    b'{"actions": [{"id": "a"}], "event": "a\\u0000"}',
    b'{"actions": [{"id": "a"}], "event": "' + b"x" * 257 + b'"}',
    b'{"actions": [{"id": "a"}], "deferred": 1}',
    b'{"actions": [{"id": "\\ud800"}]}',
    b'{"actions": [{"id": "a\\u202eb"}]}',
    b'{"actions": [{"id": "a"}], "event": "a\\u202eb"}',
    b'{"actions": [{"id": "a"}], "slots": [{"id": "\\u2066", "baseline": "a"}]}',
    b'{"actions": [{"id": "a", "features": {"x": NaN}}]}',
    b'{"actions": [{"id": "a", "features": {"x": 1e20}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "\\ud800"}}]}',
    b'{"actions": [{"id": "a", "features": {"x": [true]}}]}',
    b'{"actions": [{"id": "a", "features": {"_x": {"y": [{"z": 1}]}}}]}',
    b'{"actions": [{"id": "a", "features": ' + b'{"x": ' * 11 + b"{}" + b"}" * 11 + b"}]}",
    b'{"actions": [{"id": "a", "features": [{"x": 1}]}]}',
    b'{"actions": [{"id": "a", "features": null}]}',
    b'{"actions": [{"id": "a", "features": {"": 1}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "' + b"y" * 10_001 + b'"}}]}',
    b'{"actions": [{"id": "a"}], "context": {"a": {"b": {"c": [[1]]}}}}',
    b'{"actions": [{"id": "a"}], "context": ' + b'{"x": ' * 12 + b"1" + b"}" * 13,
    b'{"actions": [{"id": "a"}], "context": 5}',
    b'{"actions": [{"id": "a"}], "context": {"x": "\xc3"}}',
    b'{"actions": ' + b"[" * 50_000,
    b" " * 70_000,
    b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "b"}]}',
    b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "a", "features": {"x": {}, "y": []'
    b', "z": {"a": {"b": [{}]}}}}]}',
    b'{"actions": [{"id": "a"}], "context": {"a": [' + b"1," * 800 + b'1]}, "more": 0}',
    # What is excluded is written to the log as well.
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}, {"id": "b"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a", "features": {"x": {"y": [{}]}}}, {"id": "b"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}, {"id": "b"}], "slots": '
    b'[{"id": "s", "baseline": "b", "excluded": ["a"]}]}',
    b'{"actions": [{"id": "a"}], "excluded": [' + b'"b",' * 50 + b'"b"]}',
]
OLD_BAD = [
    b"",
    b"{",
    b'{"actions": []}',
    b'{"actions": [{"id": "a"}]}',
    b'{"actions": [{"id": "a", "features": {}}]}',
    b'{"actions": [{"id": "a", "features": [{"x": "\xff"}]}]}',
    b'{"actions": [{"id": "a", "features": [{"x": {"y": [{"z": 1}]}}]}]}',
    b'{"actions": [{"id": "a", "features": []}, {"id": "a", "features": []}]}',
    b'{"actions": [{"id": "a", "features": []}], "excludedActions": ["a"]}',
    b'{"actions": [{"id": "a", "features": []}], "eventId": ""}',
    b'{"actions": [{"id": "a", "features": []}], "deferActivation": 3}',
    b'{"actions": [{"id": "a", "features": []}], "contextFeatures": [{"x": NaN}]}',
    b'{"actions": [{"id": "a", "features": []}], "contextFeatures": {"x": 1}}',
    b'{"actions": [{"id": "a", "features": [{"x": {"y": [{"z": 1}]}}]}, {"id": "b", "features": []}], '
    b'"excludedActions": ["a"]}',
]
# Each part of it is right, but there are too many products.
TOO_MANY = (
    b'{"actions": [{"id": "a", "features": {"a": ['
    + b"1," * 800
    + b'1]}}], "context": {"b": ['
    + b"1," * 800
    + b"1]}}"
)


@pytest.mark.parametrize("path", PATHS)
def test_an_invalid_body_gets_the_message_of_strict_decoding(site: Site, path: str) -> None:
    before = site.gate.log.last()
    for bad in BAD if path == NATIVE else OLD_BAD:
        request = post(bad, path)
        reply = site.reply(request)
        assert reply == refused_strictly(request), bad[:200]
        assert reply.status == 400, bad[:200]
    assert stored_since(site, before) == 0


@pytest.mark.parametrize("path", PATHS)
def test_features_are_nested_as_deep_as_the_limits_say(site: Site, path: str) -> None:
    features: Any = {"numbers": [1, 2]}
    for _ in range(LEVELS - 1):
        features = {"x": features}
    ranked = {"actions": [{"id": "a", "features": features}], "context": features}
    if path != NATIVE:
        ranked = {"actions": [{"id": "a", "features": [features]}], "contextFeatures": [features]}
    check(ranked)  # 16 levels in all
    assert site.reply(post(ranked, path)).status == 201


def test_too_many_products_are_refused_with_the_reason(site: Site) -> None:
    reply = site.reply(post(TOO_MANY))
    assert reply.status == 400
    error = json_of(reply)["error"]
    assert "products of context and action features, but at most 524,288" in error["message"]
    assert error["target"] == "actions"


def test_a_large_body_is_decoded_strictly_and_ranked(site: Site) -> None:
    text = "y" * 9_000
    actions = [{"id": f"{i}", "features": {"x": text}} for i in range(10)]
    assert site.reply(post({"actions": actions})).status == 201
    assert site.reply(post({"actions": [*actions, {"id": "0"}]})).status == 400


def test_an_invalid_request_harms_no_other_in_its_batch(site: Site) -> None:
    good = [rank(event=f"good {i}") for i in range(len(BAD))]
    wrong = [post(bad) for bad in (*BAD, TOO_MANY)]
    with drafted(site) as sizes:
        replies = site.together([*wrong, *good])
    assert max(sizes) > 1
    assert [reply.status for reply in replies] == [400] * len(wrong) + [201] * len(good)
    events = [json_of(reply)["event"] for reply in replies[len(wrong) :]]
    assert events == [f"good {i}" for i in range(len(BAD))]
    assert all(map(site.is_stored, events))


def test_many_requests_at_once_get_an_event_each(site: Site) -> None:
    before = site.gate.log.last()
    with drafted(site) as sizes:
        replies = site.together([rank()] * 200)
    assert {reply.status for reply in replies} == {201}
    events = {json_of(reply)["event"] for reply in replies}
    assert len(events) == 200
    assert max(sizes) == MOST
    assert stored_since(site, before) == 200
    assert all(map(site.is_stored, events))


def test_the_same_event_in_one_batch_is_decided_once(site: Site) -> None:
    requests = [rank(event="at once")] * 20 + [rank(event="at once", who="other")]
    replies = site.together(requests)
    assert [reply.status for reply in replies] == [201] * 20 + [409]
    assert len({reply.body for reply in replies[:20]}) == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_repeated_event_gets_its_answer_and_another_body_a_conflict(
    site: Site, path: str
) -> None:
    first, again, other = (site.reply(rank(path, event=f"twice {path}", who=who)) for who in "uuv")
    assert first == again
    assert (first.status, other.status) == (201, 409)


@pytest.mark.parametrize("path", PATHS[:2])
def test_the_idempotency_key_of_each_dialect_is_used(site: Site, path: str) -> None:
    name = b"idempotency-key" if path == NATIVE else b"x-ms-client-request-id"
    once = rank(path, headers={name: b"once " + path.encode()})
    assert site.reply(once) == site.reply(once)
    for wrong in (b"x" * 257, b"\xe9"):
        assert site.reply(rank(path, headers={name: wrong})).status == 400


REWARDS = [
    ("/v1/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/v1.0/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/v1.1-preview.3/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/events/{}/reward?api-version=2022-09-01-preview", b'{"value": 0.5}'),
    ("/v1/events/{}/reward", b'{"slots": {"top": 0.5}}'),
]
BAD_REWARDS = [
    b"",
    b"{}",
    b"[]",
    b"\xff",
    b'{"value": 2}',
    b'{"value": NaN}',
    b'{"value": "1"}',
    b'{"value": null}',
    b'{"slots": {}}',
    b'{"slots": {"": 1}, "more": "\xff"}',
]


def test_a_reward_that_the_likelihood_excludes_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        model = site.service.model
        bernoulli = policy_with("neural-ucb", f"{SMALL} model.likelihood=bernoulli")
        site.service.remodel(replace(model, policy=bernoulli)).result(PATIENCE)
        before = site.gate.log.last()
        for path in ("/v1/events/e/reward", "/personalizer/v1.0/events/e/reward"):
            reply = site.reply(post(b'{"value": -0.5}', path))
            assert reply.status == 400
            assert b"the reward is -0.5; it must be from 0 to 1 for the likelihood" in reply.body
            assert site.reply(post(b'{"value": 0.5}', path)).status == 204
        assert stored_since(site, before) == 2


@pytest.mark.parametrize(("path", "good"), REWARDS)
def test_rewards_are_stored_once_for_each_key(site: Site, path: str, good: bytes) -> None:
    name = b"idempotency-key" if path.startswith("/v1") else b"x-ms-client-request-id"
    event = f"reward%20{REWARDS.index((path, good))}"
    before = site.gate.log.last()
    for id, status in ((event, 204), ("nobody", 204), ("a%2Fb", 204), ("%00", 400)):
        assert site.reply(post(good, path.format(id))).status == status
    for bad in BAD_REWARDS:
        request = post(bad, path.format(event))
        assert site.reply(request) == refused_strictly(request)
    assert stored_since(site, before) == 3
    for value, status in ((b"0.5", 204), (b"0.5", 204), (b"0.25", 409)):
        again = post(good.replace(b"0.5", value), path.format(event), {name: event.encode()})
        assert site.reply(again).status == status
    with site.gate.failing():
        reply = site.reply(post(good, path.format(event)))
    assert (reply.status, dict(reply.headers)[b"retry-after"]) == (503, b"1")


def test_activating_an_event_twice_is_no_error(site: Site) -> None:
    site.reply(post({"actions": [{"id": "a"}], "event": "deferred", "deferred": True}))
    for _ in range(2):
        assert site.reply(post(b"", "/v1/events/deferred/activate")).status == 204


def test_operations_run_concurrently_with_ranks(site: Site) -> None:
    status, event, nothing = site.together(
        [get("/v1/status"), get("/v1/events/nobody"), get("/v1/nothing")]
    )
    assert (status.status, json_of(status)["backlog"] >= 0) == (200, True)
    assert (event.status, nothing.status) == (404, 404)
    wrong = site.reply(get(NATIVE))
    assert (wrong.status, dict(wrong.headers)[b"allow"]) == (405, b"POST")


def test_each_request_is_counted_once(site: Site) -> None:
    metrics = site.app.metrics
    before, errors = metrics.requests["rank"], metrics.errors.total()
    for request in (rank(event="counted"), rank(event="counted"), post(b"{"), get("/v1/nothing")):
        site.reply(request)
    wait_until(lambda: metrics.errors.total() == errors + 2)
    assert metrics.requests["rank"] == before + 3


def test_an_error_in_one_reply_harms_no_other(site: Site) -> None:
    def fails(reply: Reply) -> None:
        raise OSError("nobody is there")

    futures: list[Future[Reply]] = [Future() for _ in range(4)]

    def submit() -> None:
        for place, future in enumerate(futures):
            for request in (rank(), post(TOO_MANY), post(b"{"), get("/v1/status")):
                site.app.submit(request, fails)
            site.app.api.submit(rank(event=f"harmed {place}"), future.set_result)

    errors: list[Any] = []
    site.loop.set_exception_handler(lambda _, context: errors.append(context))
    site.loop.call_soon_threadsafe(submit)
    assert [future.result(PATIENCE).status for future in futures] == [201] * 4
    wait_until(lambda: len(errors) == 16)
    site.loop.set_exception_handler(None)


@pytest.mark.parametrize("path", PATHS)
def test_a_failed_write_is_answered_503_and_the_next_request_succeeds(
    site: Site, path: str
) -> None:
    with site.gate.failing():
        reply = site.reply(rank(path))
    assert (reply.status, dict(reply.headers)[b"retry-after"]) == (503, b"1")
    assert site.reply(rank(path)).status == 201


def test_a_stuck_log_is_answered_503_in_time_and_a_retry_succeeds(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, seconds=0.3) as site:
        with site.gate.held():
            begun = time.monotonic()
            refused = site.reply(rank(event="stuck"))
            assert time.monotonic() - begun < 2.0
        assert (refused.status, dict(refused.headers)[b"retry-after"]) == (503, b"1")
        site.app.api.commits.seconds = PATIENCE
        assert site.reply(rank(event="stuck")).status == 201
        assert len(site.service.log.of_event("stuck")) == 1


def test_the_time_of_decisions_does_not_count_as_waiting_for_the_log(tmp_path: Path) -> None:
    with serving(tmp_path, seconds=None) as site, drafted(site, seconds=1.0) as sizes:
        replies = site.together([rank(event=f"{i}") for i in range(MOST + 5)])
        assert {reply.status for reply in replies} == {201}
        assert sizes == [MOST, 5]


def test_requests_are_refused_while_the_queue_is_too_long(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(site.service.writer), "waiting", MOST_QUEUED + 1)
    for request in (rank(), post(b'{"value": 1}', "/v1/events/a/reward")):
        reply = site.reply(request)
        assert reply.status == 503
        assert "requests are waiting" in json_of(reply)["error"]["message"]


def test_errors_of_a_decision_are_answered_without_details(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.service.decider, "draft", lambda asked: raised(LogUnavailable("no")))
    assert [reply.status for reply in site.together([rank(), rank()])] == [503, 503]
    monkeypatch.setattr(site.service.decider, "draft", lambda asked: raised(OSError("secret")))
    reply = site.reply(rank())
    assert (reply.status, b"secret" in reply.body) == (500, False)


def test_requests_need_a_key_and_each_wrong_one_counts_once(tmp_path: Path) -> None:
    with serving(tmp_path, has_keys=True) as site:
        keys = site.keys
        for headers, status in (
            ({b"authorization": f"Bearer {keys.admin.primary}".encode()}, 201),
            ({b"authorization": f"bearer {keys.admin.secondary}".encode()}, 201),
            ({b"ocp-apim-subscription-key": keys.admin.primary.encode()}, 201),
            ({}, 401),
            ({b"authorization": f"Bearer {keys.read.primary}".encode()}, 403),
            ({b"authorization": keys.admin.primary.encode()}, 401),
        ):
            assert site.reply(rank(headers=headers)).status == status
        assert len(site.app.admission.throttle) == 0
        guess = rank(headers={b"authorization": b"Bearer nobody\xe9"})
        assert [site.reply(guess).status for _ in range(10)] == [401] * 10
        refused = site.reply(guess)
        assert refused.status == 429
        assert int(dict(refused.headers)[b"retry-after"]) > 0


def test_a_request_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    with serving(tmp_path, has_keys=True) as site:
        replies: list[Reply] = []

        async def begin(request: Request) -> int | None:
            call = site.app.api.begin(request, replies.append)
            return None if call is None else call.most_bytes

        def begun(request: Request) -> int | None:
            return asyncio.run_coroutine_threadsafe(begin(request), site.loop).result(PATIENCE)

        key = {b"authorization": f"Bearer {site.keys.admin.primary}".encode()}
        assert begun(rank()) is None
        assert begun(post(b"", "/v1/nothing", key)) is None
        assert [reply.status for reply in replies] == [401, 404]
        assert begun(rank(headers=key)) == MOST_BYTES
        put = post(b"", "/personalizer/v1.0/model", key, method="PUT")
        assert (begun(put) or 0) > MOST_BYTES


@contextmanager
def drafted(site: Site, seconds: float = 0.0) -> Iterator[list[int]]:
    """Give how many requests were decided at once, each time; and let it take some time."""
    decider, sizes = site.service.decider, []
    draft = decider.draft

    def noted(asked: Any) -> Any:
        sizes.append(len(asked))
        time.sleep(seconds)
        return draft(asked)

    decider.draft = noted  # type: ignore[assignment, method-assign]
    try:
        yield sizes
    finally:
        del decider.draft


def stored_since(site: Site, seq: int) -> int:
    """Return how many records clients led to; the passing of time is not theirs."""
    return sum(stored.row.kind != "ticked" for stored in site.gate.log.read(seq, 10_000))


def refused_strictly(request: Request) -> Reply:
    """Return the refusal of strict decoding."""
    route = request.route
    assert route.problem is None
    with pytest.raises(RefusedError) as caught:
        route.decode(request.body, is_strict=True)
    return route.dialect.refuse(caught.value.problem)


def raised(error: Exception) -> Any:
    raise error


def post(
    body: bytes | dict[str, Any],
    path: str = NATIVE,
    headers: dict[bytes, bytes] | None = None,
    method: str = "POST",
) -> Request:
    raw, _, query = path.encode().partition(b"?")
    return Request(
        route=find_route(method, raw, query),
        headers=headers or {},
        address="192.0.2.1",
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
    )


def get(path: str) -> Request:
    return post(b"", path, method="GET")


def rank(
    path: str = NATIVE,
    *,
    event: str | None = None,
    who: str = "u",
    headers: dict[bytes, bytes] | None = None,
) -> Request:
    if path == NATIVE:
        return post(rank_body(event, who), path, headers)
    actions = [{"id": id, "features": [{"x": 1}]} for id in "ab"]
    body: dict[str, Any] = {"contextFeatures": [{"who": who}], "actions": actions}
    return post(body | ({} if event is None else {"eventId": event}), path, headers)


def json_of(reply: Reply) -> Any:
    return json.loads(reply.body)
