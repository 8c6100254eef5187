"""What a key may ask for, and when it may again."""

import pytest

from rbmle.service.access.budget import WorkBudget


def test_a_key_may_ask_for_so_much_in_a_second_and_others_do_not_notice() -> None:
    budget = WorkBudget(1_000.0)
    assert [budget.charge("a", 400, 0.0) for _ in range(4)] == [0, 0, 0, 1]  # 200 are owed
    assert budget.charge("b", 400, 0.0) == 0
    assert budget.charge("a", 400, 0.19) == 1
    assert budget.charge("a", 400, 0.21) == 0
    steady = [budget.charge("a", 100, 1.0 + i / 10) for i in range(1, 100)]
    assert steady == [0] * 99


def test_the_largest_call_is_possible_and_a_rest_buys_no_more_than_a_second() -> None:
    budget = WorkBudget(10.0)
    assert budget.charge("a", 25, 0.0) == 0
    assert budget.charge("a", 25, 0.0) == 2
    assert budget.charge("a", 0, 1.6) == 0
    assert sum(budget.charge("a", 5, 1000.0) == 0 for _ in range(100)) == 2


def test_a_refused_call_costs_nothing() -> None:
    budget = WorkBudget(10.0)
    assert budget.charge("a", 10, 0.0) == 0
    assert [budget.charge("a", 10, 0.0) for _ in range(50)] == [1] * 50
    assert budget.charge("a", 10, 0.5) == 0


def test_no_budget_is_no_limit() -> None:
    budget = WorkBudget(0)
    assert [budget.charge("a", 1e12, 0.0) for _ in range(5)] == [0] * 5
    with pytest.raises(ValueError, match="must be 0 or more, got -1"):
        WorkBudget(-1)


def test_keys_that_were_rotated_away_are_forgotten() -> None:
    budget = WorkBudget(10.0)
    for i in range(3_000):
        budget.charge(str(i), 10, 0.0)
    assert len(budget._left) <= 1_000
