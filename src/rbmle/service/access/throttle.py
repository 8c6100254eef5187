"""Who has failed too often must wait to try again: a bucket for each address, and only so many buckets."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address


@dataclass(slots=True, kw_only=True)
class Throttle:
    """Allow some failed attempts at once, and then one in every `seconds / attempts`.

    Of each address one number is kept: when its bucket is full again. Beyond the largest number of
    addresses, the one whose last failure is longest ago is forgotten. Not for several threads.
    """

    attempts: int = 10
    seconds: float = 60.0  # in which an empty bucket fills
    addresses: int = 10_000
    _full: OrderedDict[str, float] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what would let nobody in, or everybody."""
        if self.attempts < 1 or self.seconds <= 0 or self.addresses < 1:
            raise ValueError(
                f"{self.attempts} attempts in {self.seconds} s of {self.addresses} addresses cannot be "
                "counted; give positive numbers"
            )

    def retry_after(self, address: str, now: float) -> int:
        """Return after how many seconds an address may try, 0 for at once; `now` never goes back."""
        empty = self._full.get(network_of(address), now) - now
        wait = empty - self.seconds + self.seconds / self.attempts
        # A rounding error is no reason to wait a second more.
        return max(0, math.ceil(wait - self.seconds * 1e-9))

    def failed(self, address: str, now: float) -> None:
        """Count a failed attempt."""
        network = network_of(address)
        full = max(self._full.get(network, now), now) + self.seconds / self.attempts
        self._full[network] = min(full, now + self.seconds)
        self._full.move_to_end(network)
        while len(self._full) > self.addresses:
            self._full.popitem(last=False)

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._full)


def network_of(address: str) -> str:
    """Return whom an address stands for: one host, or the /64 network that one IPv6 host has.

    >>> network_of("2001:db8::1:2"), network_of("::ffff:192.0.2.1")
    ('2001:db8::/64', '192.0.2.1')
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a socket of this machine, or a name that a proxy gave
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
