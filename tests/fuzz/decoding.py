"""Decoders and decisions without HTTP: whatever the bytes are, an answer or a refusal, and no third."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import MappingProxyType

import msgspec

from rbmle.core.errors import FeatureError
from rbmle.service.api import native
from rbmle.service.api.base import RefusedError
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.api.personalizer.dialect import (
    decode_configuration,
    decode_policy,
)
from rbmle.service.api.personalizer.errors import Version, encode_problem
from rbmle.service.front.requests import RankRequest
from rbmle.service.log.base import DuplicateRequest
from rbmle.service.settings import ServiceConfiguration
from tests.fuzz.bodies import SAMPLES, changed
from tests.services import PATIENCE, Service

BEFORE = ServiceConfiguration()

DECODERS: Mapping[str, Callable[[bytes], object]] = MappingProxyType(
    {
        "rank": native.decode_rank,
        "reward": partial(native.decode_reward, "e"),
        "configuration": partial(native.decode_configuration, before=BEFORE),
        "change": partial(native.decode_change, before=BEFORE),
        "old rank": personalizer.decode_rank,
        "old slots rank": personalizer.decode_slots_rank,
        "old reward": partial(personalizer.decode_reward, "e"),
        "old slots reward": partial(personalizer.decode_slots_reward, "e"),
        "old configuration": partial(decode_configuration, before=BEFORE),
        "old policy": decode_policy,
    }
)
NAMES = tuple(DECODERS)


@dataclass(slots=True)
class Tally:
    """What became of the bodies, and the events that were decided."""

    outcomes: Counter[str] = field(default_factory=Counter)
    events: set[str] = field(default_factory=set)


def body_of(seed: int, number: int) -> tuple[str, bytes]:
    """Return a decoder's name and a body for it, always the same for the same number."""
    rng = Random(f"{seed}/{number}")
    name = rng.choice(NAMES + ("rank", "old rank", "old slots rank") * 3)
    return name, changed(rng.choice(SAMPLES[name]), rng)


def try_body(service: Service, name: str, body: bytes, tally: Tally) -> None:
    """Decode a body, and decide what it asks; whatever else than a refusal is raised is a fault."""
    try:
        request = DECODERS[name](body)
    except RefusedError as error:
        assert error.problem.status == 400
        assert native.encode_problem(error.problem)
        assert encode_problem(error.problem, Version.V1_0)
        tally.outcomes["refused"] += 1
        return
    if isinstance(request, RankRequest):
        _decide(service, name, request, tally)
    else:
        tally.outcomes["taken"] += 1


def check_log(service: Service, tally: Tally) -> None:
    """Raise AssertionError unless the log has the events that were decided, and no other."""
    stored = {row.row.event for row in service.log.read() if row.row.kind == "decided"}
    assert stored == tally.events


def _decide(service: Service, name: str, request: RankRequest, tally: Tally) -> None:
    try:
        proposal = service.rank(request)
    except FeatureError:
        tally.outcomes["features refused"] += 1
        return
    answer = proposal.answer
    if name == "rank":
        assert msgspec.json.encode(answer)
    else:
        assert (personalizer.encode_slots_rank if answer.slots else personalizer.encode_rank)(
            answer
        )
    rankings = [slot.ranking for slot in answer.slots] or [answer.ranking]
    for ranking in rankings:
        assert abs(sum(action.probability for action in ranking) - 1) < 1e-9
    try:
        proposal.stored.result(PATIENCE)
        tally.outcomes["decided"] += 1
    except DuplicateRequest:
        tally.outcomes["decided before"] += 1
    tally.events.add(answer.event)
