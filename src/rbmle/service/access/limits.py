"""Rate limits of clients: failed sign-ins per address, and work per key."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

WORK_PER_SECOND = 2_500_000  # products of features, of some 100 ns each: a quarter of a core
_MOST_KEYS = 1_000  # that are remembered; there are six, and those that were rotated


@dataclass(slots=True, kw_only=True)
class Throttle:
    """A token bucket for each address: some failed attempts at once, then one every `seconds / attempts`.

    It stores one number for each address: when its bucket is full again. If there are too many addresses, the
    one with the oldest failure is dropped. For one thread.
    """

    attempts: int = 10
    seconds: float = 60.0  # in which an empty bucket fills
    addresses: int = 10_000
    _full: OrderedDict[str, float] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.seconds <= 0 or self.addresses < 1:
            raise ValueError(
                f"{self.attempts} attempts in {self.seconds} s of {self.addresses} addresses cannot be "
                "counted; give positive numbers"
            )

    def retry_after(self, address: str, now: float) -> int:
        """Return after how many seconds an address may try again, 0 for at once; `now` is monotonic."""
        empty = self._full.get(network_of(address), now) - now
        wait = empty - self.seconds + self.seconds / self.attempts
        # Without the margin, a rounding error would cost one more second.
        return max(0, math.ceil(wait - self.seconds * 1e-9))

    def count_failure(self, address: str, now: float) -> None:
        """Count a failed attempt."""
        network = network_of(address)
        full = max(self._full.get(network, now), now) + self.seconds / self.attempts
        self._full[network] = min(full, now + self.seconds)
        self._full.move_to_end(network)
        while len(self._full) > self.addresses:
            self._full.popitem(last=False)

    def __len__(self) -> int:
        return len(self._full)


def network_of(address: str) -> str:
    """Return the host of an address, or for IPv6 the /64 network, which usually belongs to one host.

    >>> network_of("2001:db8::1:2"), network_of("::ffff:192.0.2.1")
    ('2001:db8::/64', '192.0.2.1')
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a socket of this machine, or a name from a proxy
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"


@dataclass(slots=True)
class WorkBudget:
    """A token bucket of work for each key, which holds the work of one second; 0 allows everything.

    A request may start while anything is left, and may overdraw the budget, so the largest request is possible
    with any budget. For one thread.
    """

    per_second: float = WORK_PER_SECOND
    _left: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.per_second < math.inf:
            raise ValueError(f"`work_per_second` must be 0 or more, got {self.per_second}")

    def charge(self, key: str, work: float, now: float) -> int:
        """Charge work to a key and return 0, or return after how many seconds to try again."""
        if self.per_second == 0:
            return 0
        left, then = self._left.get(key, (self.per_second, now))
        left = min(self.per_second, left + (now - then) * self.per_second)
        if left <= 0:
            return max(1, math.ceil(-left / self.per_second))
        if len(self._left) >= _MOST_KEYS:
            self._left.clear()
        self._left[key] = (left - work, now)
        return 0
