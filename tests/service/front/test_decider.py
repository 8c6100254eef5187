"""Decisions and rewards: probabilities, modes, slots, and requests that come twice."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import chisquare

from rbmle.core.errors import FeatureError
from rbmle.service.api import native
from rbmle.service.front.decider import (
    ConflictError,
    Decider,
    InFlightError,
    content_digest_of,
)
from rbmle.service.front.requests import (
    Action,
    ActivateRequest,
    RankedAction,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
)
from rbmle.service.log.base import DuplicateRequest
from rbmle.service.log.records import (
    CELLS,
    NO_FEATURES,
    Assignment,
    Decided,
    GuardRule,
    decode_record,
    pack_features,
)
from rbmle.service.settings import HoldoutPlay, LearningMode, ServiceConfiguration, Settle
from rbmle.service.statistics.guarding import Grant
from tests.services import (
    PATIENCE,
    Service,
    configure,
    learned,
    offer,
    rank,
    reward,
    running,
    small_start,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(small_start(tmp_path_factory.mktemp("decider"))) as service:
        yield service


def decision(service: Service, event: str) -> Decided:
    stored = service.log.of_request(f"rank:{event}")
    assert stored is not None
    record = decode_record(stored.row)
    assert isinstance(record, Decided)
    return record


def test_probabilities_include_the_exploration_floor(service: Service) -> None:
    before = service.decider.configuration
    configure(service, replace(before, exploration=0.2))
    try:
        answer = rank(service, offer("a", "b", "c", "d", event="floor"))
    finally:
        configure(service, before)
    chances = [action.probability for action in answer.ranking]
    assert min(chances) > 0.05  # ε/n, and a part by the gap to the best one
    assert max(chances) < 0.85  # 1 − ε + ε/n, which a model that is sure of it would give
    assert sum(chances) == pytest.approx(1)
    assert answer.ranking[0].id == answer.chosen
    assert decision(service, "floor").plays[0].probabilities == [
        next(a.probability for a in answer.ranking if a.id == id) for id in "abcd"
    ]


def test_excluded_actions_are_ranked_last_with_probability_0(service: Service) -> None:
    answer = rank(service, offer("a", "b", "c", event="excluded", excluded=["a"]))
    assert answer.ranking[-1].id == "a"
    assert answer.ranking[-1].probability == 0
    assert sum(action.probability for action in answer.ranking) == pytest.approx(1)
    assert decision(service, "excluded").plays[0].baseline == 1  # the first that is eligible


def test_the_same_event_gets_the_same_answer(service: Service) -> None:
    first = rank(service, offer("a", "b", "c", event="twice"))
    again = service.rank(offer("a", "b", "c", event="twice"))
    assert isinstance(again.stored.exception(PATIENCE), DuplicateRequest)
    assert service.decider.repeat("twice", again.request, again.body) == first


def test_the_same_event_with_another_request_is_a_conflict(service: Service) -> None:
    rank(service, offer("a", "b", event="conflict"))
    other = service.rank(offer("a", "c", event="conflict"))
    assert isinstance(other.stored.exception(PATIENCE), DuplicateRequest)
    with pytest.raises(ConflictError, match="'conflict' was ranked before"):
        service.decider.repeat("conflict", other.request, other.body)


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        (
            b'{"event":"e","context":{"user":{"age":30},"hour":12},"actions":[{"id":"a","features":{"x":1}},'
            b'{"id":"b"}],"deferred":true}',
            "c19c40ffa7fd6c08c07ac8f0e6570ac4",
        ),
        (
            b'{"actions":[{"id":"a"},{"id":"b"}],"slots":[{"id":"s","baseline":"a","features":{"y":true}},'
            b'{"id":"t","baseline":"b","excluded":["a"]}]}',
            "5dbaf0005e64e18d54ff4f43a2de6f39",
        ),
    ],
)
def test_the_digests_of_earlier_logs_are_recognised(
    service: Service, body: bytes, digest: str
) -> None:
    """The digests were printed by version 0.1 before it took them over the bytes of the body."""
    request = native.decode_rank(body)
    assert content_digest_of(request) == digest
    event = f"earlier {digest}"
    (draft,) = service.decider.draft([(msgspec.structs.replace(request, event=event), None, body)])
    decided = decode_record(draft.row)
    earlier = msgspec.structs.replace(decided, digest=digest)
    service.writer.submit([replace(draft.row, payload=msgspec.json.encode(earlier))]).result(
        PATIENCE
    )
    assert service.decider.repeat(event, request, body + b" ") == draft.answer
    other = msgspec.structs.replace(request, deferred=not request.deferred)
    with pytest.raises(ConflictError):
        service.decider.repeat(event, other, b"{}")


def test_the_same_bytes_for_other_slots_are_a_conflict(service: Service) -> None:
    rank(service, offer("a", "b", event="slotless"))
    request = offer("a", "b", event="slotless", slots=(Slot(id="s", baseline="a"),))
    body = msgspec.json.encode(offer("a", "b", event="slotless"))
    with pytest.raises(ConflictError):
        service.decider.repeat("slotless", request, body)


def test_repeated_requests_with_one_idempotency_key_are_one_event(service: Service) -> None:
    first = rank(service, offer("a", "b"), key="k-1")
    again = service.rank(offer("a", "b"), key="k-1")
    assert again.answer.event == first.event
    assert isinstance(again.stored.exception(PATIENCE), DuplicateRequest)
    assert rank(service, offer("a", "b"), key="k-2").event != first.event
    assert rank(service, offer("a", "b")).event != rank(service, offer("a", "b")).event


def test_a_reward_is_stored_once_for_each_key(service: Service) -> None:
    event = rank(service, offer("a", "b")).event
    request = RewardRequest(event=event, values={"": 0.5})
    service.reward(request, "r-1").result(PATIENCE)
    assert isinstance(service.reward(request, "r-1").exception(PATIENCE), DuplicateRequest)
    service.decider.check_rewarded(request, "r-1")
    with pytest.raises(ConflictError, match="'r-1' was used before"):
        service.decider.check_rewarded(RewardRequest(event=event, values={"": 0.6}), "r-1")
    with pytest.raises(InFlightError):
        service.decider.check_rewarded(request, "never")


def test_an_event_is_activated_once(service: Service) -> None:
    event = rank(service, offer("a", "b", deferred=True)).event
    service.activate(ActivateRequest(event=event)).result(PATIENCE)
    second = service.activate(ActivateRequest(event=event))
    assert isinstance(second.exception(PATIENCE), DuplicateRequest)


def test_invalid_features_are_refused_and_not_logged(service: Service) -> None:
    last, deep = service.writer.last, {"a": 1}
    for _ in range(20):
        deep = {"a": deep}  # type: ignore[dict-item]
    with pytest.raises(FeatureError):
        service.rank(
            RankRequest(
                context=pack_features([deep]),  # too deep
                actions=[Action("x", NO_FEATURES)],
            )
        )
    assert service.writer.last == last


def test_slots_show_each_action_once(service: Service) -> None:
    slots = (Slot(id="top", baseline="a"), Slot(id="left", baseline="b", excluded=["c", "a"]))
    for i in range(20):
        answer = rank(service, offer("a", "b", "c", event=f"slots-{i}", slots=slots))
        top, left = answer.slots
        assert (left.id, left.chosen) == ("left", "b")  # all that is left for it
        assert top.chosen in "ac"
        play = decision(service, f"slots-{i}").plays[0]
        assert sum(play.probabilities) == pytest.approx(1)
        assert play.eligible == [0, 2]


@pytest.mark.parametrize("mode", [LearningMode.APPRENTICE, LearningMode.LOGGING_ONLY])
def test_outside_of_online_mode_the_baseline_is_shown(service: Service, mode: LearningMode) -> None:
    before = service.decider.configuration
    configure(service, replace(before, learning_mode=mode))
    try:
        answer = rank(service, offer("a", "b", "c", event=f"mode-{mode}", excluded=["a"]))
    finally:
        configure(service, before)
    assert answer.chosen == "b"
    assert [action.probability for action in answer.ranking] == [1, 0, 0]
    decided = decision(service, f"mode-{mode}")
    assert decided.mode == mode
    assert decided.plays[0].preferred in (1, 2)


def test_without_exploration_the_best_action_has_probability_1(service: Service) -> None:
    before = service.decider.configuration
    configure(service, replace(before, exploration=0.0))
    try:
        answer = rank(service, offer("a", "b", "c"))
    finally:
        configure(service, before)
    assert [action.probability for action in answer.ranking] == [1, 0, 0]


@pytest.mark.parametrize("policy", ["neural-rbmle-pc", "neural-ts"])
def test_frequencies_agree_with_the_logged_probabilities(policy: str, tmp_path: Path) -> None:
    """The short form of 100,000 decisions in tests.reliability."""
    observed, expected = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    with running(small_start(tmp_path, policy)) as service:
        for i in range(2000):
            proposal = service.rank(offer("a", "b", "c", event=f"{i}"))
            chances = {action.id: action.probability for action in proposal.answer.ranking}
            assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
            assert min(chances.values()) >= 0.2 / 3 - 1e-12
            observed["abc".index(proposal.answer.chosen)] += 1
            for place, id in enumerate("abc"):
                expected[place] += chances[id]
    assert chisquare(observed, expected).pvalue > 0.001


def test_the_service_learns_preferences(tmp_path: Path) -> None:
    right = {"u": "b", "v": "c"}
    with running(small_start(tmp_path)) as service:
        for i in range(300):
            who = "uv"[i % 2]
            answer = rank(service, offer("a", "b", "c", who=who))
            reward(service, answer.event, float(answer.chosen == right[who]))
            if i % 20 == 0:
                learned(service)
        learned(service)
        for who, best in right.items():
            assert rank(service, offer("a", "b", "c", who=who)).ranking[0].id is not None
            play = service.rank(offer("a", "b", "c", who=who)).answer
            assert max(play.ranking, key=lambda action: action.probability).id == best


def test_a_configuration_applies_once_it_is_stored(tmp_path: Path) -> None:
    after = ServiceConfiguration(exploration=0.5)
    with running(small_start(tmp_path)) as service:
        service.configure(after).result(PATIENCE)
        assert service.decider.configuration == after
    with running(small_start(tmp_path)) as service:
        assert service.decider.configuration == after


@pytest.mark.parametrize("shown", HoldoutPlay)
def test_a_unit_in_the_holdout_stays_there_and_never_asks_the_model(
    service: Service, shown: HoldoutPlay
) -> None:
    before = service.decider.configuration
    configure(service, replace(before, holdout=0.5, holdout_play=shown))
    held = {Assignment.of(f"u{n}", 0.5, "").unit: f"u{n}" for n in range(20)}
    held = {unit: name for unit, name in held.items() if int(unit[:8], 16) < 2**31}
    unit, name = next(iter(held.items()))
    try:
        for number in range(8):
            event = f"{shown}-{number}"
            answer = rank(service, offer("a", "b", "c", event=event, unit=name, excluded=["a"]))
            record = decision(service, event)
            assert answer.holdout
            assert record.assignment is not None
            assert (record.assignment.unit, record.assignment.is_held) == (unit, True)
            chances = [1.0, 0.0] if shown is HoldoutPlay.BASELINE else [0.5, 0.5]
            assert record.plays[0].probabilities == chances
            assert record.plays[0].baseline == 1
        free = rank(service, offer("a", "b", event=f"{shown}-free", unit=name + "?" * 7))
        assert not free.holdout
        slots = (Slot(id="one", baseline="b"), Slot(id="two", baseline="a"))
        page = rank(service, offer("a", "b", event=f"{shown}-slots", unit=name, slots=slots))
        if shown is HoldoutPlay.BASELINE:
            assert [slot.chosen for slot in page.slots] == ["b", "a"]
        assert {slot.chosen for slot in page.slots} == {"a", "b"}
    finally:
        configure(service, before)
    again = rank(service, offer("a", "b", event=f"{shown}-none", unit=name))
    assert not again.holdout
    assert decision(service, f"{shown}-none").assignment is None


def test_the_holdout_has_its_share_and_grows_without_letting_anyone_go() -> None:
    shares = [0.01, 0.1, 0.3]
    held = [
        {n for n in range(20_000) if Assignment.of(f"user-{n}", share, "baseline").is_held}
        for share in shares
    ]
    assert held[0] < held[1] < held[2]
    assert [len(units) / 20_000 for units in held] == pytest.approx(shares, abs=0.008)
    cells = [Assignment.of(f"user-{n}", 0.1, "baseline").cell for n in held[1]]
    assert chisquare(np.bincount(cells, minlength=CELLS)).pvalue > 1e-4


def test_conservative_mode_shows_the_baseline_until_there_is_a_grant(service: Service) -> None:
    before = service.decider.configuration
    careful = replace(before, settle=Settle.DEADLINE, conservative=0.1)
    configure(service, careful)
    rule = GuardRule(tolerance=0.1, error=0.05, low=0.0, high=1.0)
    try:
        for number in range(5):
            answer = rank(service, offer("a", "b", "c", event=f"careful-{number}"))
            assert answer.ranking[0] == RankedAction("a", 1.0)
            guarded = decision(service, f"careful-{number}").guarded
            assert guarded is not None
            assert (guarded.rule, guarded.share) == (rule, 1.0)
        with pytest.raises(RequestError, match="from 0 to 1"):
            service.check_reward(RewardRequest(event="careful-0", values={"": -0.5}))
        published = service.published
        assert published is not None
        grant = Grant(rule=rule, plays=[80, 80, 0], fronts={})
        granted = replace(published, configuration=careful, grant=grant)
        decider = Decider(service.log, service.writer, lambda: granted, lambda: False)
        drafts = [
            decider.draft([(offer("a", "b", "c", event=f"g{n}"), None, b"")])[0] for n in range(60)
        ]
        records = [msgspec.json.decode(draft.row.payload, type=Decided) for draft in drafts]
        costly = [r for r in records if r.guarded and r.guarded.is_costly(r.plays[0])]
        assert len(costly) == 10  # an eighth of the grant
        assert [r.guarded.number for r in costly if r.guarded] == list(range(1, 11))
        for record in costly:
            play = record.plays[0]
            assert sum(play.probabilities) == pytest.approx(1)
            assert play.probabilities[0] >= 0.25
            assert record.guarded is not None
            assert play.chosen in (0, record.guarded.proposed)
        assert records[-1].plays[0].probabilities == [1.0, 0.0, 0.0]
        slots = (Slot(id="one", baseline="b"), Slot(id="two", baseline="a"))
        (page,) = decider.draft([(offer("a", "b", event="page", slots=slots), None, b"")])
        assert [slot.chosen for slot in page.answer.slots] == ["b", "a"]
    finally:
        configure(service, before)
