"""Who may ask, and for how much: keys, those who have guessed too often, and what each may cost."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rbmle.service.access.budget import WorkBudget
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.access.throttle import Throttle
from rbmle.service.api.base import Dialect, Request
from rbmle.service.api.faults import Fault, Refusal, RefusedError
from rbmle.service.api.work import FREE, work_of

KEY_HEADER = b"ocp-apim-subscription-key"  # Personalizer's; Authorization: Bearer is ours
LONGEST_KEY = 256  # of an idempotency key
_CREDENTIALS = (b"authorization", KEY_HEADER)
_SCOPES = {
    Scope.READ: "`read` or `admin`",
    Scope.DECIDE: "`decide` or `admin`",
    Scope.ADMIN: "`admin`",
}


@dataclass(slots=True)
class Admission:
    """Checks keys; without any, everybody is admitted."""

    keys: KeyRing | None
    throttle: Throttle = field(default_factory=Throttle)
    budget: WorkBudget = field(default_factory=WorkBudget)

    def admit(
        self, dialect: Dialect, headers: Mapping[bytes, bytes], address: str, needed: Scope
    ) -> str | None:
        """Return the key that allows what is asked, None if none is needed; or raise RefusedError."""
        if self.keys is None:
            return None
        presented = _presented(headers)
        scope = None if presented is None else self.keys.scope_of(presented)
        if scope is None:
            raise RefusedError(self._unknown_key(dialect, address, has_key=presented is not None))
        if not scope.covers(needed):
            message = f"this is a key of scope `{scope.value}`; use one of scope {_SCOPES[needed]}"
            raise RefusedError(dialect.fault(Fault.FORBIDDEN, message))
        return presented

    def charge(self, dialect: Dialect, key: str | None, body: bytes) -> None:
        """Raise RefusedError for a rank call if its key has asked for too much work of late."""
        work = 0 if key is None else work_of(body)
        seconds = 0 if not work or key is None else self.budget.charge(key, work, time.monotonic())
        if seconds:
            message = (
                f"the calls of this key ask for more than {self.budget.per_second:,.0f} products of features "
                f"a second beyond the free {FREE:,} of each, and this one asks for {work + FREE:,}; send "
                f"fewer features or actions, or try again in {seconds} s"
            )
            problem = dialect.fault(Fault.THROTTLED, message)
            raise RefusedError(replace(problem, retry_after=seconds))

    def _unknown_key(self, dialect: Dialect, address: str, *, has_key: bool) -> Refusal:
        """Return the refusal of who has no key of ours; wrong keys are counted, right ones never are."""
        now = time.monotonic()
        seconds = self.throttle.retry_after(address, now)
        if seconds:
            message = f"too many attempts with a wrong key; try again in {seconds} s"
            return replace(dialect.fault(Fault.THROTTLED, message), retry_after=seconds)
        if has_key:
            self.throttle.failed(address, now)
        return dialect.fault(
            Fault.UNAUTHORIZED,
            "the key is missing, or is not one of this service; send one as "
            "Authorization: Bearer KEY, or as Ocp-Apim-Subscription-Key: KEY",
        )


def check_headers(dialect: Dialect, request: Request) -> None:
    """Raise RefusedError if a key or an idempotency key was sent twice.

    A proxy in front of the service may have checked the one that the service would not read.
    """
    for name in (*_CREDENTIALS, dialect.request_header):
        if name in request.repeated:
            message = f"the header {name.decode()} was sent more than once; send it once"
            raise RefusedError(dialect.fault(Fault.MALFORMED, message))


def idempotency_key(dialect: Dialect, headers: Mapping[bytes, bytes]) -> str | None:
    """Return the key that makes a repeated request one; raise RefusedError for one that cannot be."""
    given = headers.get(dialect.request_header)
    if not given:
        return None
    if len(given) > LONGEST_KEY or not given.isascii():
        message = (
            f"the header {dialect.request_header.decode()} has {len(given)} bytes; send at most "
            f"{LONGEST_KEY}, all of them ASCII"
        )
        raise RefusedError(dialect.fault(Fault.MALFORMED, message))
    return given.decode()


def _presented(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the key that a client presents, in either of the two ways."""
    key = headers.get(KEY_HEADER)
    if key is None:
        kind, _, key = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            return None
    return key.strip().decode("latin-1")
