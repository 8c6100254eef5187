"""The measures of the bake-off, on numbers that a hand can check."""

import math

import numpy as np
import pytest

from rbmle.core.errors import SettingError
from rbmle.experiments.measures import (
    LOOSE,
    SIGNIFICANT,
    best_mean,
    critical_difference,
    loss_p_value,
    measure,
    ranks,
    significant_wins,
)
from rbmle.experiments.summary import Problem, Summary, summarise
from rbmle.experiments.tables import (
    comparison_table,
    is_compared,
    loss_table,
    markdown,
    pairs_table,
)
from rbmle.experiments.trial import Run

NOISE = {"right": 0.8, "wrong": 0.2, "scale": 1.0, "offset": 0.0}
RARE = {"right": 0.1, "wrong": 0.02, "scale": 1.0, "offset": 0.0}
SHIFT = {"right": 1.0, "wrong": 0.0, "scale": 10.0, "offset": -5.0}


def test_the_test_of_two_losses_is_two_sided() -> None:
    """0.1 · 0.9 + 0.2 · 0.8 = 0.25; over 25 rounds its root is 0.1 (z = 1), over 100 rounds 0.05 (z = 2)."""
    assert loss_p_value(0.1, 0.2, 25) == pytest.approx(0.3173105)
    assert loss_p_value(0.2, 0.1, 100) == pytest.approx(0.0455003, rel=1e-5)
    assert loss_p_value(0.1, 0.2, 100) == loss_p_value(0.2, 0.1, 100)
    z = 1.959964  # the two-sided 5 % of a normal number
    assert loss_p_value(0.5 - z / 2**0.5 / 1000, 0.5, 1_000_000) == pytest.approx(
        SIGNIFICANT, rel=1e-4
    )


def test_the_level_of_earlier_tables_is_reported_too() -> None:
    """1 − erf(z) < 0.05 from z = 1.386 on, where the two-sided p is 0.166; 0.05 asks for 1.96."""
    z = 1.3859038
    assert math.erf(z) == pytest.approx(0.95)
    assert math.erfc(z / 2**0.5) == pytest.approx(LOOSE, abs=1e-6)
    losses = np.array([[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]])  # z = 1.4, 1.8 and 2
    rounds = np.array([49, 81, 100])
    assert significant_wins(losses, rounds)[0, 1] == 1
    assert significant_wins(losses, rounds, LOOSE)[0, 1] == 3


def test_p_values_of_equal_and_of_certain_losses() -> None:
    assert loss_p_value(0.3, 0.3, 1000) == 1
    assert loss_p_value(0.0, 0.0, 10) == 1
    assert loss_p_value(0.0, 1.0, 10) == 0


def test_wins_are_counted_where_both_were_played() -> None:
    """0.1 against 0.2 is significant over 100 rounds, not over 25."""
    losses = np.array([[0.1, 0.1, 0.1], [0.2, 0.2, math.nan]])
    wins = significant_wins(losses, np.array([100, 25, 100]))
    np.testing.assert_array_equal(wins, [[0, 1], [0, 0]])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [([], 1.0), ([NOISE], 0.8), ([RARE], 0.1), ([RARE, NOISE], 0.26), ([SHIFT], math.nan)],
)
def test_the_right_choice_has_its_mean_reward(changes: list[object], expected: float) -> None:
    """Of a mean of 0.1, noise makes 0.2 + 0.6 · 0.1 = 0.26."""
    details = {"changes": changes} if changes else {}
    problem = Problem(dataset="d", preprocessing="standard", horizon=10, details=details)
    assert best_mean(problem) == pytest.approx(expected, nan_ok=True)
    assert math.isnan(best_mean(Problem(dataset="cosine", preprocessing="", horizon=10)))


def test_losses_regrets_and_stuck_trials() -> None:
    """Means 10, 20 and 60 have the median 20: a regret of over 40 is stuck."""
    found = measure(example())
    assert found.policies == ("a", "b", "c")
    np.testing.assert_allclose(found.losses[:, 0], [0.1, 0.2, 0.6])
    np.testing.assert_allclose(found.losses[:, 1], 0.2 + np.array([0.06, 0.06, 0.3]))
    np.testing.assert_allclose(found.regrets, [[10, 6], [20, 6], [60, 30]])
    np.testing.assert_array_equal(found.stuck, [0, 0, 3])
    np.testing.assert_array_equal(found.trials, [4, 4, 4])
    np.testing.assert_allclose(found.stuck_share, [0, 0, 0.75])
    np.testing.assert_allclose(found.milliseconds, [20, 20, 20])


def test_regret_relative_to_the_best_is_a_geometric_mean() -> None:
    """b has twice the best regret on one problem and the best on the other: √2."""
    found = measure(example())
    np.testing.assert_allclose(found.ratios, [[1, 1], [2, 1], [6, 5]])
    np.testing.assert_allclose(found.relative, [1, 2**0.5, 30**0.5])


def test_a_ratio_has_its_standard_error_over_datasets() -> None:
    """b has 2 and 8 times a's regret on two variants of d, which is one dataset with 4 times, and as much on e.

    The standard error of the mean of log 4 and log 1 is (log 4)/2.
    """
    runs = [run(*each, 0) for each in (("a", "d", 10), ("b", "d", 20))]
    runs += [run(*each, 0) for each in (("a", "d+noise", 10), ("b", "d+noise", 80))]
    runs += [run(*each, 0) for each in (("a", "e", 10), ("b", "e", 10))]
    found = measure(summarise(runs))
    ratios, errors = found.relative_to(found.policies.index("a"))
    assert ratios[0] == 1
    assert errors[0] == 0
    ratio = 16 ** (1 / 3)  # of 2, 8 and 1
    assert ratios[1] == pytest.approx(ratio)
    assert errors[1] == pytest.approx(ratio * math.log(4) / 2)
    alone = measure(summarise(runs[:2]))
    assert math.isnan(alone.relative_to(0)[1][1])


def test_a_regret_of_zero_counts_as_one() -> None:
    runs = [run("a", "d", 0, 0), run("b", "d", 5, 0)]
    np.testing.assert_allclose(measure(summarise(runs)).relative, [1, 5])


def test_wins_less_losses_put_policies_in_order() -> None:
    """On plain data all three differ over 100 rounds; with noise only c is told from the others."""
    found = measure(example())
    np.testing.assert_array_equal(found.wins, [[0, 1, 2], [0, 0, 2], [0, 0, 0]])
    np.testing.assert_array_equal(found.net, [3, 1, -4])
    assert found.order == [0, 1, 2]


def test_the_critical_difference_is_that_of_the_literature() -> None:
    """Demšar (2006): four classifiers on 14 sets, q = 2.569 and CD = 1.25."""
    assert critical_difference(4, 14) == pytest.approx(2.569 * (20 / 84) ** 0.5, abs=1e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_ties_share_ranks_and_incomplete_problems_are_left_out() -> None:
    numbers = np.array([[1.0, 1, 5, 1], [2, 1, 6, math.nan], [3, 2, 4, 2]])
    found = ranks(("a", "b", "c"), numbers)
    assert found.problems == 3
    np.testing.assert_allclose(found.means, [(1 + 1.5 + 2) / 3, (2 + 1.5 + 3) / 3, (3 + 3 + 1) / 3])


def test_cliques_are_groups_of_tied_policies() -> None:
    """CD of four policies on 30 problems is 0.86; the ranks are 1, 2, 3 and 4, less so with noise."""
    orders = [[1, 2, 3, 4]] * 15 + [[2, 1, 3, 4]] * 12 + [[2, 3, 1, 4]] * 3
    found = ranks(("a", "b", "c", "d"), np.array(orders, float).T)
    np.testing.assert_allclose(found.means, [1.5, 1.7, 2.8, 4.0])
    assert found.difference == pytest.approx(2.569 * (20 / 180) ** 0.5, abs=1e-3)
    assert found.cliques == [(0, 1)]
    assert found.p < 1e-6


def test_ranks_of_one_policy_are_refused() -> None:
    with pytest.raises(SettingError, match="at least two policies and two problems"):
        ranks(("a",), np.ones((1, 5)))


def test_the_tables_say_it() -> None:
    summary = example()
    found = measure(summary)
    assert is_compared(found)
    text = markdown(comparison_table(found))
    assert "| a | **+3** | +3 | 3 | 0 | **1.000** | 1.000 | 1.25 | 0 of 4 | 20.000 |" in text
    assert "| b | +1 | +1 | 2 | 1 | 1.414 | 1.414 | 1.75 | 0 of 4 | 20.000 |" in text
    assert "| c | −4 | −4 | 0 | 4 | 5.477 | 5.477 | 3.00 | 3 of 4 | 20.000 |" in text
    pairs = markdown(pairs_table(found))
    assert "| a | · | **1–0** | **2–0** |" in pairs
    assert "| c | 0–2 | 0–2 | · |" in pairs
    losses = markdown(loss_table(found, summary))
    assert "| plain, 100 rounds | **0.1000** | 0.2000 | 0.6000 |" in losses
    assert "| plain+noise, 100 rounds | **0.2600** | **0.2600** | 0.5000 |" in losses


def test_policies_that_share_no_two_problems_are_not_compared() -> None:
    runs = [run("a", "d", 1, 0), run("a", "e", 1, 0), run("b", "e", 2, 0)]
    assert not is_compared(measure(summarise(runs)))
    nothing = measure(summarise([]))
    assert not is_compared(nothing)
    assert nothing.order == []


def example() -> Summary:
    """Three policies, two problems, two seeds, 100 rounds of 2 seconds in all."""
    plain = {"a": (5, 15), "b": (15, 25), "c": (39, 81)}
    noisy = {"a": (6, 6), "b": (6, 6), "c": (30, 30)}
    return summarise(
        run(policy, dataset, regret, seed)
        for dataset, regrets in (("plain", plain), ("plain+noise", noisy))
        for policy, pair in regrets.items()
        for seed, regret in enumerate(pair)
    )


def run(policy: str, dataset: str, regret: float, seed: int) -> Run:
    changes = {"changes": [NOISE]} if dataset.endswith("+noise") else {}
    world = {"name": dataset, "preprocessing": "standard", **changes}
    return Run(
        id=f"{policy} {dataset} {seed}",
        settings={"policy": policy, "settings": policy, "environment": world, "seed": seed},
        regrets=np.full(100, regret / 100),
        cpu_seconds=2.0,
        wall_seconds=2.0,
        versions={},
    )
