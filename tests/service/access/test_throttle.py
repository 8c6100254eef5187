"""Who fails too often has to wait, and nobody else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rbmle.service.access.throttle import Throttle, network_of


def test_some_failures_are_free_and_then_one_waits() -> None:
    throttle = Throttle(attempts=3, seconds=60)
    for _ in range(3):
        assert throttle.retry_after("192.0.2.1", 100.0) == 0
        throttle.failed("192.0.2.1", 100.0)
    assert throttle.retry_after("192.0.2.1", 100.0) == 20
    assert throttle.retry_after("192.0.2.1", 110.5) == 10
    assert throttle.retry_after("192.0.2.1", 120.0) == 0
    throttle.failed("192.0.2.1", 120.0)
    assert throttle.retry_after("192.0.2.1", 120.0) == 20
    assert throttle.retry_after("192.0.2.2", 120.0) == 0


def test_failing_while_one_waits_does_not_make_it_longer_than_the_window() -> None:
    throttle = Throttle(attempts=2, seconds=10)
    for _ in range(1000):
        throttle.failed("192.0.2.1", 0.0)
    assert throttle.retry_after("192.0.2.1", 0.0) == 5
    assert throttle.retry_after("192.0.2.1", 5.0) == 0


def test_only_so_many_addresses_are_remembered() -> None:
    throttle = Throttle(attempts=1, seconds=1e6, addresses=100)
    for i in range(10_000):
        throttle.failed(f"10.0.{i // 256}.{i % 256}", float(i))
    assert len(throttle) == 100
    assert throttle.retry_after("10.0.39.15", 10_000.0) > 0  # the last
    assert throttle.retry_after("10.0.0.0", 10_000.0) == 0  # forgotten


def test_one_ipv6_host_has_one_bucket() -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.failed("2001:db8::1", 0.0)
    assert throttle.retry_after("2001:db8::2", 0.0) == 60
    assert throttle.retry_after("2001:db8:0:1::1", 0.0) == 0
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("unix socket") == "unix socket"


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"seconds": 0.0}, {"addresses": 0}])
def test_a_throttle_that_counts_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        Throttle(**wrong)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0)), max_size=50))
def test_no_more_get_through_than_the_bucket_holds(steps: list[tuple[bool, float]]) -> None:
    """Who waits as told fails at most `attempts` times and then once per interval."""
    throttle, now, failures = Throttle(attempts=4, seconds=8.0), 0.0, 0
    for fails, pause in steps:
        now += pause
        if throttle.retry_after("192.0.2.1", now) == 0 and fails:
            throttle.failed("192.0.2.1", now)
            failures += 1
        assert failures <= 4 + now / 2.0 + 1e-6


@given(st.text(), st.floats(0, 1e12))
@example("", 68.92)
def test_any_address_is_counted(address: str, now: float) -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.failed(address, now)
    assert 59 <= throttle.retry_after(address, now) <= 60
