"""How much work a rank call asks for, known before it is done."""

from typing import Any

import msgspec

from rbmle.service.deciding.requests import RankRequest
from rbmle.service.features.limits import LIMITS

FREE = 20_000  # products of features: 1 ms, little more than a call takes without any


def is_light(body: bytes) -> bool:
    """Return whether a body surely asks for little: half of its values, at most, times the other half."""
    return (body.count(b",") + 4) ** 2 <= 4 * FREE


def is_costly(request: RankRequest) -> bool:
    """Return whether a call may ask for much, by the commas in its features."""
    shared = bytes(request.context).count(b",") + 2
    own = sum([bytes(action.features).count(b",") + 3 for action in request.actions])
    return shared * own * max(1, len(request.slots)) > FREE


def work_of(body: bytes) -> int:
    """Return how many products of features a rank call of either dialect asks for beyond what is free."""
    if is_light(body):
        return 0
    try:
        call = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0  # it is refused
    if type(call) is not dict:
        return 0
    actions, slots = (_listed(call.get(name)) for name in ("actions", "slots"))
    shared = 1 + _count(call.get("context") or call.get("contextFeatures") or [])
    own = sum(2 + _count(action.get("features", [])) for action in actions if type(action) is dict)
    work = min(shared * own, LIMITS.products) * max(1, len(slots))  # more are refused
    return max(0, work - FREE)


def _listed(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _count(features: Any) -> int:
    """Return how many features there are, however they are nested."""
    count, rest = 0, [features]
    while rest:
        value = rest.pop()
        if type(value) is dict:
            rest += value.values()
        elif type(value) is list:
            rest += value
        else:
            count += 1
    return count
