"""Buckets of time, kept by number: a time divided by the length of a bucket. Idle time needs no space."""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

MINUTE = 60_000  # milliseconds


class Mergeable(Protocol):
    """Sums of some stretch of time."""

    def merged(self, later: Self, /) -> Self:
        """Return both together."""
        ...


AnySums = TypeVar("AnySums", bound=Mergeable)


def doubled(minutes: int) -> int:
    """Return twice the length."""
    return 2 * minutes


def fitted(
    buckets: dict[int, AnySums],
    minutes: int,
    time: int,
    most: int,
    longer: Callable[[int], int] = doubled,
) -> tuple[dict[int, AnySums], int]:
    """Return buckets and their length, with which no more than `most` reach to a time, in milliseconds.

    `longer` gives the next length, a multiple of the one before.
    """
    while True:
        numbers = [*buckets, time // (minutes * MINUTE)]
        if max(numbers) - min(numbers) < most:
            return buckets, minutes
        length = longer(minutes)
        buckets, minutes = joined(buckets, length // minutes), length


def up_to(buckets: dict[int, AnySums], last: int) -> dict[int, AnySums]:
    """Return buckets with all after the last one added to it.

    They are of a clock that ran ahead, and was set back to the time of the last.
    """
    found = {number: bucket for number, bucket in buckets.items() if number <= last}
    for number in sorted(buckets.keys() - found.keys()):
        bucket = buckets[number]
        found[last] = found[last].merged(bucket) if last in found else bucket
    return found


def joined(buckets: dict[int, AnySums], times: int) -> dict[int, AnySums]:
    """Return buckets that are so many times as long."""
    found: dict[int, AnySums] = {}
    for number, bucket in buckets.items():
        at = number // times
        found[at] = found[at].merged(bucket) if at in found else bucket
    return found
