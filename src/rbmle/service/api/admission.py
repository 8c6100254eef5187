"""Admission: API keys, throttling of wrong keys, and the work that each key may ask for."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import msgspec

from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.limits import Throttle, WorkBudget
from rbmle.service.api.base import Dialect, Fault, RefusedError
from rbmle.service.front.requests import RankRequest
from rbmle.service.model.limits import LIMITS

FREE = 20_000  # products of features: 1 ms, little more than a request takes without any

KEY_HEADER = b"ocp-apim-subscription-key"  # Personalizer's; ours is Authorization: Bearer
LONGEST_KEY = 256  # of an idempotency key
_CREDENTIALS = (b"authorization", KEY_HEADER)
_SCOPES = {
    Scope.READ: "`read` or `admin`",
    Scope.DECIDE: "`decide` or `admin`",
    Scope.ADMIN: "`admin`",
}


def is_light(body: bytes) -> bool:
    """Return whether a body is certainly free: at most, half of its values are multiplied by the other half."""
    return (body.count(b",") + 4) ** 2 <= 4 * FREE


def is_costly(request: RankRequest) -> bool:
    """Return whether a request may not be free, judged by the commas in its features."""
    shared = bytes(request.context).count(b",") + 2
    per_action = sum([bytes(action.features).count(b",") + 3 for action in request.actions])
    return shared * per_action * max(1, len(request.slots)) > FREE


def work_of(request: RankRequest) -> int:
    """Return how many products of features a request needs beyond what is free."""
    try:
        shared = 1 + _count(msgspec.json.decode(request.context))
        per_action = sum(2 + _count(msgspec.json.decode(a.features)) for a in request.actions)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0  # it will be refused
    work = min(shared * per_action, LIMITS.products)  # more are refused
    return max(0, work * max(1, len(request.slots)) - FREE)


def _count(features: Any) -> int:
    """Return the number of features, however they are nested."""
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


@dataclass(slots=True)
class Admission:
    """Checks the key of a request; without keys, everybody is admitted."""

    keys: KeyRing | None
    throttle: Throttle = field(default_factory=Throttle)
    budget: WorkBudget = field(default_factory=WorkBudget)

    def admit(
        self, dialect: Dialect, headers: Mapping[bytes, bytes], address: str, needed: Scope
    ) -> str | None:
        """Return the key of a request, None if the service has no keys; raise RefusedError."""
        if self.keys is None:
            return None
        key = _find_key(headers)
        scope = None if key is None else self.keys.scope_of(key)
        if scope is None:
            self._refuse_key(dialect, address, has_key=key is not None)
        elif not scope.covers(needed):
            message = f"this is a key of scope `{scope.value}`; use one of scope {_SCOPES[needed]}"
            raise RefusedError(dialect.fault(Fault.FORBIDDEN, message))
        return key

    def charge(self, dialect: Dialect, key: str | None, request: RankRequest) -> None:
        """Charge a rank request to its key; raise RefusedError if the key has used up its budget."""
        if key is None or not (work := work_of(request)):
            return
        if seconds := self.budget.charge(key, work, time.monotonic()):
            message = (
                f"the requests of this key ask for more than {self.budget.per_second:,.0f} products of "
                f"features a second beyond the free {FREE:,} of each, and this one asks for {work + FREE:,}; "
                f"send fewer features or actions, or try again in {seconds} s"
            )
            problem = dialect.fault(Fault.THROTTLED, message)
            raise RefusedError(replace(problem, retry_after=seconds))

    def _refuse_key(self, dialect: Dialect, address: str, *, has_key: bool) -> NoReturn:
        """Raise RefusedError for a missing or wrong key; wrong keys count, missing ones do not."""
        now = time.monotonic()
        seconds = self.throttle.retry_after(address, now)
        if seconds:
            message = f"too many attempts with a wrong key; try again in {seconds} s"
            problem = dialect.fault(Fault.THROTTLED, message)
            raise RefusedError(replace(problem, retry_after=seconds))
        if has_key:
            self.throttle.count_failure(address, now)
        message = (
            "the key is missing, or is not one of this service; send one as Authorization: Bearer KEY, or as "
            "Ocp-Apim-Subscription-Key: KEY"
        )
        raise RefusedError(dialect.fault(Fault.UNAUTHORIZED, message))


def check_headers(dialect: Dialect, repeated: Sequence[bytes]) -> None:
    """Raise RefusedError if a key or an idempotency key was sent twice.

    A proxy in front of the service might check one of them, and the service read the other.
    """
    for name in (*_CREDENTIALS, dialect.request_header):
        if name in repeated:
            message = f"the header {name.decode()} was sent more than once; send it once"
            raise RefusedError(dialect.fault(Fault.MALFORMED, message))


def idempotency_key(dialect: Dialect, headers: Mapping[bytes, bytes]) -> str | None:
    """Return the idempotency key of a request, None if it has none; raise RefusedError if it is invalid."""
    key = headers.get(dialect.request_header)
    if not key:
        return None
    if len(key) > LONGEST_KEY or not key.isascii():
        message = (
            f"the header {dialect.request_header.decode()} has {len(key)} bytes; send at most "
            f"{LONGEST_KEY}, all of them ASCII"
        )
        raise RefusedError(dialect.fault(Fault.MALFORMED, message))
    return key.decode()


def _find_key(headers: Mapping[bytes, bytes]) -> str | None:
    key = headers.get(KEY_HEADER)
    if key is None:
        kind, _, key = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            return None
    return key.strip().decode("latin-1")
