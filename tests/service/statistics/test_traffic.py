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


def test_actions_earn_while_they_are_counted() -> None:
    traffic = Traffic()
    traffic.settle("unseen", 1.0)
    traffic.add("a")
    for reward in (1.0, 0.0, 0.5):
        traffic.settle("a", reward)
    assert traffic.counters.keys() == {"a"}
    rewards = traffic.counters["a"].rewards
    assert (rewards.plays, rewards.reward) == (3, 1.5)
    assert rewards.squares == 1 + 1 + 0  # from the means before: 0, 1 and 1/2
