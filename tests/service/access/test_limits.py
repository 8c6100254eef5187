"""Failed sign-ins are limited by address, and work by key."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rbmle.service.access.limits import Throttle, WorkBudget, network_of


def test_some_failures_are_free_and_then_one_waits() -> None:
    throttle = Throttle(attempts=3, seconds=60)
    for _ in range(3):
        assert throttle.retry_after("192.0.2.1", 100.0) == 0
        throttle.count_failure("192.0.2.1", 100.0)
    assert throttle.retry_after("192.0.2.1", 100.0) == 20
    assert throttle.retry_after("192.0.2.1", 110.5) == 10
    assert throttle.retry_after("192.0.2.1", 120.0) == 0
    throttle.count_failure("192.0.2.1", 120.0)
    assert throttle.retry_after("192.0.2.1", 120.0) == 20
    assert throttle.retry_after("192.0.2.2", 120.0) == 0


def test_failures_while_throttled_do_not_extend_the_wait_beyond_the_window() -> None:
    throttle = Throttle(attempts=2, seconds=10)
    for _ in range(1000):
        throttle.count_failure("192.0.2.1", 0.0)
    assert throttle.retry_after("192.0.2.1", 0.0) == 5
    assert throttle.retry_after("192.0.2.1", 5.0) == 0


def test_the_number_of_remembered_addresses_is_limited() -> None:
    throttle = Throttle(attempts=1, seconds=1e6, addresses=100)
    for i in range(10_000):
        throttle.count_failure(f"10.0.{i // 256}.{i % 256}", float(i))
    assert len(throttle) == 100
    assert throttle.retry_after("10.0.39.15", 10_000.0) > 0  # the last
    assert throttle.retry_after("10.0.0.0", 10_000.0) == 0  # forgotten


def test_one_ipv6_host_has_one_bucket() -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.count_failure("2001:db8::1", 0.0)
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
            throttle.count_failure("192.0.2.1", now)
            failures += 1
        assert failures <= 4 + now / 2.0 + 1e-6


@given(st.text(), st.floats(0, 1e12))
@example("", 68.92)
def test_any_address_is_counted(address: str, now: float) -> None:
    throttle = Throttle(attempts=1, seconds=60)
    throttle.count_failure(address, now)
    assert 59 <= throttle.retry_after(address, now) <= 60


def test_a_key_over_its_budget_does_not_affect_others() -> None:
    budget = WorkBudget(1_000.0)
    assert [budget.charge("a", 400, 0.0) for _ in range(4)] == [0, 0, 0, 1]  # 200 are owed
    assert budget.charge("b", 400, 0.0) == 0
    assert budget.charge("a", 400, 0.19) == 1
    assert budget.charge("a", 400, 0.21) == 0
    steady = [budget.charge("a", 100, 1.0 + i / 10) for i in range(1, 100)]
    assert steady == [0] * 99


def test_the_budget_allows_the_largest_request_and_saves_one_second_at_most() -> None:
    budget = WorkBudget(10.0)
    assert budget.charge("a", 25, 0.0) == 0
    assert budget.charge("a", 25, 0.0) == 2
    assert budget.charge("a", 0, 1.6) == 0
    assert sum(budget.charge("a", 5, 1000.0) == 0 for _ in range(100)) == 2


def test_a_refused_request_is_not_charged() -> None:
    budget = WorkBudget(10.0)
    assert budget.charge("a", 10, 0.0) == 0
    assert [budget.charge("a", 10, 0.0) for _ in range(50)] == [1] * 50
    assert budget.charge("a", 10, 0.5) == 0


def test_a_budget_of_zero_is_no_limit() -> None:
    budget = WorkBudget(0)
    assert [budget.charge("a", 1e12, 0.0) for _ in range(5)] == [0] * 5
    with pytest.raises(ValueError, match="must be 0 or more, got -1"):
        WorkBudget(-1)


def test_budgets_of_rotated_keys_are_dropped() -> None:
    budget = WorkBudget(10.0)
    for i in range(3_000):
        budget.charge(str(i), 10, 0.0)
    assert len(budget._left) <= 1_000
