"""Never below the baseline: the guard by hand, its promise, and the bandit around it."""

import numpy as np
import pytest

from rbmle import Bandit, LinUCB
from rbmle.core.errors import EligibilityError, RepeatError, RewardError, SettingError
from rbmle.evaluation import ConservativeBandit
from rbmle.evaluation.conservative import (
    GUESS,
    OPTIMAL,
    PRIOR,
    SHARES,
    STEP,
    Guard,
    level_of,
)
from rbmle.evaluation.sequences import boundary
from rbmle.studies.conservative import WORLDS, play


def test_two_rounds_by_hand() -> None:
    guard = Guard(0.1, 0.05)
    guard.add(1.0, is_baseline=True, reward=1.0)
    assert guard.surplus == pytest.approx(0.1)  # α r
    assert guard.squares == pytest.approx((0.1 * (1 - GUESS)) ** 2)
    guard.add(0.5, is_baseline=False, reward=0.0)
    q = (1 + PRIOR * GUESS) / (1 + PRIOR)
    xi = -0.9 * q
    assert guard.surplus == pytest.approx(0.1 + xi)
    expected = q - 0.9 * q  # the mean of others begins with q
    assert guard.squares == pytest.approx((0.1 * (1 - GUESS)) ** 2 + (xi - expected) ** 2)
    assert (guard.plays, guard.level, guard.others) == (2, 1, 1)


def test_the_bound_is_the_surplus_less_the_boundary_of_its_scale() -> None:
    guard = Guard(0.1, 0.05, surplus=100.0, squares=50.0)
    for level, share in enumerate(SHARES, 1):
        width = boundary(50.0, 0.05 / len(SHARES), 1 / share, OPTIMAL)
        assert 100 - guard.lower_bound(level) == pytest.approx(width, rel=STEP - 1)
    assert (
        guard.lower_bound(2) == Guard(0.1, 0.05, surplus=100.0, squares=50.0, level=2).lower_bound()
    )
    assert guard.rooms(7.0) == [guard.lower_bound(level) - 7.0 for level in (1, 2, 3)]
    assert guard.loss(0.5) == pytest.approx(0.4)  # 1 − α − ½
    assert guard.share() == SHARES[-1]
    assert guard.share(99.0) == 1.0


def test_the_baseline_alone_plays_until_it_has_earned_room() -> None:
    guard = Guard(0.1, 0.05)
    shares = []
    for _ in range(3_000):
        shares.append(guard.share())
        guard.add(1.0, is_baseline=True, reward=0.5)
    assert shares == sorted(shares, reverse=True)
    assert set(shares) == {1.0, *SHARES}
    assert 0.05 * shares.index(0.5) > boundary(0.0, 0.05 / 3, 2.0, OPTIMAL)


@pytest.mark.parametrize("name", WORLDS)
def test_the_reward_is_never_below_the_promise(name: str) -> None:
    least = [play(WORLDS[name], 0.1, seed, 1_500)[:2] for seed in range(12)]
    assert np.min(least) >= 0.9


def test_a_policy_that_is_better_gets_to_play() -> None:
    *_, mean, opened = play(WORLDS["a policy that learns"], 0.1, 0, 8_000)
    assert opened > 0.5
    assert mean > 0.42  # the baseline earns 0.4


def test_proposals_are_mixed_with_the_baseline_and_propensities_are_exact() -> None:
    safe = ConservativeBandit(
        Bandit(LinUCB(), arms=["a", "b", "c"], features=2, seed=1, floor=0.3), baseline="b"
    )
    decision = safe.decide([1.0, 0.0])
    assert (decision.arm, decision.propensity) == ("b", 1.0)
    assert decision.probabilities is not None
    assert decision.probabilities.tolist() == [0.0, 1.0, 0.0]
    safe.guard.surplus = 1e9
    played = {"a": 0, "b": 0, "c": 0}
    for number in range(4_000):
        proposal = safe.bandit.decide([1.0, 0.0], id=f"d{number}")
        decision = safe.decide([1.0, 0.0], id=f"d{number}")
        assert proposal.probabilities is not None
        assert decision.probabilities is not None
        mixed = 0.9 * proposal.probabilities + [0, 0.1, 0]
        assert decision.probabilities == pytest.approx(mixed)
        assert decision.propensity == decision.probabilities["abc".index(str(decision.arm))]
        if decision.arm == proposal.arm:
            assert decision.context.dense().tolist() == proposal.context.dense().tolist()
        played[str(decision.arm)] += 1
    assert decision.probabilities is not None
    expected = 4_000 * decision.probabilities
    assert list(played.values()) == pytest.approx(expected, abs=4 * 4_000**0.5)


def test_arms_with_rows_of_their_own_get_the_row_of_the_baseline() -> None:
    bandit = Bandit(LinUCB(), features=2, encoding="per-arm")
    safe = ConservativeBandit(bandit)
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for usual in (None, 2):
        decision = safe.decide(X, baseline=usual)
        place = usual or 0
        assert decision.arm == place
        assert decision.context.dense()[0].tolist() == X[place].tolist()
        safe.learn(decision, 1.0)
    assert bandit.round == 2


def test_rewards_count_in_the_order_of_decisions_and_the_worst_is_assumed_meanwhile() -> None:
    safe = ConservativeBandit(Bandit(LinUCB(), arms=2, features=1), rewards=(-1.0, 1.0))
    first, second, third = (safe.decide([1.0]) for _ in range(3))
    safe.learn(second, 1.0)
    assert safe.guard.plays == 0
    assert safe.bandit.round == 1
    safe.learn(first, 0.0)
    assert safe.guard.plays == 2
    assert safe.guard.surplus == pytest.approx(0.1 * (0.5 + 1.0))
    with pytest.raises(RepeatError):
        safe.learn(first, 0.0)
    with pytest.raises(RewardError, match="from -1 to 1"):
        safe.learn(third, 2.0)
    safe.guard.surplus = 60.0
    for number in range(400):
        safe.decide([1.0], id=f"n{number}", baseline=number % 2)
    rounds = list(safe._pending.values())
    assert {entry.chance for entry in rounds} == {*SHARES, 1.0}  # it has closed again
    assert sum(entry.loss for entry in rounds) <= safe.guard.lower_bound()
    with pytest.raises(RepeatError, match="made before"):
        safe.decide([1.0], id="n0")


def test_settings_that_make_no_sense_are_refused() -> None:
    bandit = Bandit(LinUCB(), arms=2, features=1)
    for wrong in ({"tolerance": 0.0}, {"error": 1.0}, {"rewards": (1.0, 0.0)}):
        with pytest.raises(SettingError):
            ConservativeBandit(bandit, **wrong)
    with pytest.raises(EligibilityError, match="not eligible"):
        ConservativeBandit(bandit, baseline=7).decide([1.0])
    assert [level_of(share) for share in SHARES] == [1, 2, 3]
