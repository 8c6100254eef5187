"""The most frequent actions, of any number of them."""

from rbmle.service.statistics.traffic import COUNTERS, Traffic


def test_frequent_actions_are_found_among_any_number() -> None:
    traffic = Traffic()
    for number in range(20_000):
        traffic.add("often" if number % 10 == 0 else f"rare {number}")
    often = traffic.counters["often"]
    assert often.count - often.excess <= 2_000 <= often.count
    assert len(traffic.counters) == COUNTERS
    assert sum(counter.count for counter in traffic.counters.values()) == traffic.total == 20_000
