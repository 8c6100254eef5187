"""The most frequent actions, of any number of them."""

from collections import Counter

import numpy as np

from rbmle.service.statistics.tally import COUNTERS, Traffic


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


def test_parts_together_keep_the_promise_of_the_whole() -> None:
    """A count is never too small, and too large by no more than the excess."""
    rng, chosen = np.random.default_rng(0), Counter[str]()
    found = Traffic(limit=16)
    for _ in range(5):
        part = Traffic(limit=16)
        for number in rng.zipf(1.5, 1_000):
            part.add(f"a{number}")
            part.settle(f"a{number}", 0.5)
            chosen[f"a{number}"] += 1
        found = found.merged(part)
    assert found.total == 5_000
    assert len(found.counters) == 16
    for id, counter in found.counters.items():
        assert counter.count - counter.excess <= chosen[id] <= counter.count
        assert counter.rewards.reward == counter.rewards.plays / 2
    assert found.most(3)[0][0] == "a1"
