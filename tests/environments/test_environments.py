"""Every environment keeps every promise, a liar is caught for each, and h is what a hand computes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle import NeuralUCB, Uniform
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.core.types import Contexts, Indices, Observation
from rbmle.environments import (
    ALTERATIONS,
    COINS,
    DEVELOPMENT,
    EVERYDAY,
    FAMILIES,
    REPORTED,
    SYNTHETIC,
    Altered,
    BernoulliNoise,
    Change,
    Classification,
    Coins,
    Environment,
    Everyday,
    GaussianNoise,
    Synthetic,
    gap_closed,
    problem,
)
from rbmle.environments.synthetic import Cosine, InnerProduct, Quadratic
from rbmle.experiments.summary import summarise
from rbmle.experiments.trial import Run, Trial, play
from tests.contract.environment_liars import LIARS, Honest
from tests.contract.environment_promises import PROMISES, Promise, rounds

QUIET = GaussianNoise(deviation=0.1)
DIGITS = Classification(dataset="digits")
CHANGES = ALTERATIONS | {"switch": Change(begin=5), "drift": Change(begin=5, end=15)}  # early
CHANGED = [
    Altered(world=DIGITS, suffix=f"+{name}", change=change) for name, change in CHANGES.items()
]
KEEPERS: dict[str, tuple[Environment, list[Environment]]] = {
    "honest": (Honest(), [Honest(world=Synthetic(function="quadratic", noise=QUIET))]),
    "digits": (DIGITS, [replace(DIGITS, preprocessing="paper"), replace(DIGITS, data_dir=Path())]),
    **{
        name: (
            world,
            [
                *(other for other in SYNTHETIC.values() if other != world),
                replace(world, arms=3),
                replace(world, features=3),
                replace(world, noise=QUIET),
                replace(world),
            ],
        )
        for name, world in SYNTHETIC.items()
    },
    **{
        name: (
            world,
            [
                *(other for other in COINS.values() if other != world),
                replace(world, irrelevant=2),
                replace(world, chances=(0.5, 0.5, 0.6)),
                replace(world),
            ],
        )
        for name, world in COINS.items()
    },
    **{
        name: (world, [*(other for other in EVERYDAY.values() if other != world), replace(world)])
        for name, world in EVERYDAY.items()
    },
    **{
        world.settings["name"]: (world, [DIGITS, *(other for other in CHANGED if other != world)])
        for world in CHANGED
    },
}


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", KEEPERS)
def test_every_environment_keeps_every_promise(name: str, promise: Promise) -> None:
    promise(*KEEPERS[name])


@pytest.mark.parametrize(("liar", "promise"), LIARS, ids=lambda part: part.__name__)
def test_a_liar_is_caught(liar: type[Honest], promise: Promise) -> None:
    others = [liar(world=Synthetic(function="quadratic", noise=QUIET))]
    with pytest.raises(AssertionError):
        promise(liar(), others)


def test_each_promise_has_a_liar() -> None:
    assert {promise for _, promise in LIARS} == set(PROMISES)


X = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, -0.6]])
A = np.array([[1.0, 2.0], [0.0, 2.0]])  # AᵀA = [[1, 2], [2, 8]]


def test_quadratic_is_ten_times_the_square() -> None:
    h = Quadratic(a=np.array([0.6, 0.8]))
    np.testing.assert_allclose(h.values(X), [3.6, 6.4, 10.0, 0.0], atol=1e-12)
    assert h.bounds == (0.0, 10.0)


def test_inner_product_is_a_quadratic_form() -> None:
    h = InnerProduct(A=A, largest=(9 + 65**0.5) / 2)
    np.testing.assert_allclose(h.values(X), [1.0, 8.0, 7.4, 1.6], atol=1e-12)


def test_inner_product_is_bounded_by_the_largest_eigenvalue() -> None:
    h = InnerProduct.draw(5, np.random.default_rng(0))
    values, vectors = np.linalg.eigh(h.A.T @ h.A)
    assert h.bounds == pytest.approx((0.0, values[-1]))
    assert h.values(vectors[:, -1:].T)[0] == pytest.approx(h.largest)


def test_cosine_is_of_three_times_the_product() -> None:
    h = Cosine(a=np.array([0.6, 0.8]))
    expected = [math.cos(1.8), math.cos(2.4), math.cos(3.0), 1.0]
    np.testing.assert_allclose(h.values(X), expected, atol=1e-12)
    assert h.bounds == (-1.0, 1.0)


def test_bernoulli_means_are_h_between_its_bounds() -> None:
    noise, h = BernoulliNoise(), np.array([-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(noise.means(h, (-1.0, 1.0)), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(noise.means(np.array([2.5, 10.0]), (0.0, 10.0)), [0.25, 1.0])


@pytest.mark.parametrize("function", ["quadratic", "inner-product", "cosine"])
def test_bernoulli_rewards_are_zeros_and_ones_with_means_between(function: str) -> None:
    offers = list(rounds(Synthetic(function=function, noise=BernoulliNoise()), 300))
    assert {reward for offer in offers for reward in offer.rewards} == {0.0, 1.0}
    assert all(0 <= offer.means.min() <= offer.means.max() <= 1 for offer in offers)


def test_gaussian_noise_has_the_stated_deviation() -> None:
    noise = [offer.rewards - offer.means for offer in rounds(Synthetic(function="cosine"), 2000)]
    assert np.std(noise) == pytest.approx(1.0, abs=0.05)


def test_contexts_are_spread_evenly_over_the_unit_sphere() -> None:
    contexts = np.concatenate([offer.x for offer in rounds(SYNTHETIC["cosine"], 2000)])
    np.testing.assert_allclose(np.linalg.norm(contexts, axis=1), 1.0)
    np.testing.assert_allclose(contexts.mean(axis=0), 0.0, atol=0.015)  # deviation 0.0025
    np.testing.assert_allclose(contexts.T @ contexts / len(contexts), np.eye(20) / 20, atol=0.005)


def test_problems_with_another_function_have_the_same_contexts() -> None:
    first, *others = (world.round(7, 3).x for world in SYNTHETIC.values())
    assert all((first == other).all() for other in others)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"function": "sine"},
            "no reward function 'sine' \\(did you mean 'cosine'\\?\\); there are quadratic",
        ),
        ({"arms": 0}, "`arms` must be an integer of at least 1, got 0"),
        ({"features": 2.5}, "`features` must be an integer of at least 1, got 2.5"),
    ],
)
def test_a_mistaken_problem_gets_a_message(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Synthetic(**{"function": "cosine"} | settings)


@pytest.mark.parametrize("deviation", [-1.0, math.nan, math.inf])
def test_a_mistaken_deviation_gets_a_message(deviation: float) -> None:
    with pytest.raises(SettingError, match="`deviation`"):
        GaussianNoise(deviation=deviation)


def test_coins_pay_with_their_chances_whatever_the_features_say() -> None:
    offers = list(rounds(COINS["clicks"], 4000))
    assert all(offer.means.tolist() == [0.05, 0.1] and offer.x[0] == 1 for offer in offers)
    paid = np.mean([offer.rewards for offer in offers], axis=0)
    np.testing.assert_allclose(paid, [0.05, 0.1], atol=0.02)  # deviation 0.005


@pytest.mark.parametrize(
    ("name", "right", "wrong"), [("noise", 0.8, 0.2), ("rare", 0.1, 0.02), ("shift", 5, -5)]
)
def test_an_altered_mean_is_that_of_a_right_or_a_wrong_choice(
    name: str, right: float, wrong: float
) -> None:
    for t in range(50):
        plain, altered = DIGITS.round(t, 0), problem(f"digits+{name}").round(t, 0)
        np.testing.assert_array_equal(altered.x, plain.x)
        np.testing.assert_allclose(altered.means, np.where(plain.means == 1, right, wrong))


def test_after_a_switch_each_arm_has_the_rewards_of_the_next_one() -> None:
    for t in (0, 1999, 2000, 2001):
        plain, altered = DIGITS.round(t, 0), problem("digits+switch").round(t, 0)
        expected = plain.means if t < 2000 else np.roll(plain.means, -1)
        np.testing.assert_array_equal(altered.means, expected)


def test_a_drift_is_gradual() -> None:
    world = Altered(world=DIGITS, change=Change(begin=0, end=1000))
    moved = [(world.round(t, 0).means != DIGITS.round(t, 0).means).any() for t in range(1200)]
    shares = [np.mean(moved[begin : begin + 200]) for begin in (0, 400, 800)]
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.15)
    assert all(moved[1000:])


def test_changes_are_made_one_after_the_other() -> None:
    world = problem("coins+noise+shift")
    assert world.settings["name"] == "coins+noise+shift"
    np.testing.assert_allclose(world.round(0, 0).means, [0.47 * 10 - 5, 0.53 * 10 - 5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Coins(chances=()), "`chances` must be probabilities"),
        (lambda: Coins(chances=(0.5, 1.5)), "`chances` must be probabilities"),
        (lambda: Coins(irrelevant=-1), "`irrelevant` must be 0 or more, got -1"),
        (lambda: Change(right=1.1), "must be probabilities, between 0 and 1"),
        (lambda: Change(end=10), "`end` must not be before `begin`"),
        (lambda: Change(begin=20, end=10), "`end` must not be before `begin`"),
    ],
)
def test_a_mistaken_change_gets_a_message(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Plays at random, and keeps all that it is shown by the bandit that plays the trial."""

    blocks: list[int] = field(default_factory=list)
    contexts: list[np.ndarray] = field(default_factory=list)
    seen: list[Observation] = field(default_factory=list)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> None:
        for kept in (self.blocks, self.contexts, self.seen):
            kept.clear()
        self.blocks.append(blocks)

    def index(self, state: None, contexts: Contexts, rng: np.random.Generator) -> Indices:
        self.contexts.append(contexts.dense())
        return np.zeros(len(contexts))

    def update(self, state: None, seen: Observation, rng: np.random.Generator) -> None:
        self.seen.append(seen)

    def grow(self, state: None, blocks: int, rng: np.random.Generator) -> None: ...


def test_a_policy_sees_the_contexts_and_the_reward_of_its_arm_alone() -> None:
    witness, world = Witness(), SYNTHETIC["cosine"]
    played(witness, world, horizon=30)
    assert witness.blocks == [1]  # one network, which all arms share
    for offer, contexts, seen in zip(
        rounds(world, 30), witness.contexts, witness.seen, strict=True
    ):
        np.testing.assert_array_equal(contexts, offer.x)
        arm = int((offer.x == seen.context.dense()).all(axis=1).argmax())
        assert seen.reward == offer.rewards[arm]


def test_regret_is_of_the_means() -> None:
    witness, world = Witness(), SYNTHETIC["quadratic-bernoulli"]
    run = played(witness, world, horizon=30)
    for offer, seen, regret in zip(rounds(world, 30), witness.seen, run.regrets, strict=True):
        arm = int((offer.x == seen.context.dense()).all(axis=1).argmax())
        assert regret == pytest.approx(offer.means.max() - offer.means[arm])


def test_neural_ucb_has_less_than_half_the_regret_of_uniform_play_on_cosine() -> None:
    world = Synthetic(function="cosine", noise=QUIET)  # σ = 1 takes thousands of rounds
    regret = played(NeuralUCB(), world, horizon=500).final_regret
    assert regret < played(Uniform(), world, horizon=500).final_regret / 2


def test_late_rewards_are_learned_after_their_delay() -> None:
    witness, world = Witness(), Everyday(family="clicks")
    played(witness, world, horizon=60)
    assert len(witness.seen) == 60 - world.delay
    first = world.round(0, 0)
    np.testing.assert_array_equal(witness.seen[0].context.dense()[0], first.x)


def test_altered_everyday_problems_keep_their_delay() -> None:
    assert problem("everyday-clicks+shift").delay == 50  # type: ignore[attr-defined]  # of this one


def test_the_delay_of_an_everyday_problem_can_be_set() -> None:
    witness = Witness()
    played(witness, Everyday(family="clicks", late=7), horizon=20)
    assert len(witness.seen) == 13
    with pytest.raises(SettingError, match="`late` must be at least 0"):
        Everyday(family="clicks", late=-1)


def test_a_log_is_learned_before_the_first_round() -> None:
    witness, world = Witness(), Everyday(family="imported")
    played(witness, world, horizon=60)
    log = world.log(seed=0)
    assert log is not None
    assert len(witness.seen) == len(log.X) + 60 - world.delay
    np.testing.assert_array_equal([seen.reward for seen in witness.seen[: len(log.X)]], log.rewards)
    assert Everyday(family="ads").log(seed=0) is None


def test_the_old_rule_of_a_log_plays_better_than_chance_but_not_well() -> None:
    world = Everyday(family="imported")
    log = world.log(seed=0)
    assert log is not None
    drawn = np.bincount(log.arms, minlength=world.arms) / len(log.arms)
    assert drawn.min() > 0.005  # each arm is tried now and then
    assert drawn.max() > 0.2


def test_a_list_has_a_reward_for_each_place_and_regret_against_the_best_list() -> None:
    witness, world = Witness(), Everyday(family="lists", late=0)
    run = played(witness, world, horizon=10)
    assert len(witness.seen) == 10 * world.shown == 30
    for t, offer in enumerate(rounds(world, 10)):
        arms = [int(seen.context.rows.blocks[0]) for seen in witness.seen[3 * t : 3 * t + 3]]
        assert len(set(arms)) == 3
        best = np.sort(offer.means)[-3:].sum()
        assert run.regrets[t] == pytest.approx(best - offer.means[arms].sum(), abs=1e-6)


@pytest.mark.parametrize("family", ["ads", "playlist", "catalogue"])
def test_baselines_are_the_regrets_of_uniform_play_and_of_the_best_fixed_arms(family: str) -> None:
    world = Everyday(family=family)
    means = np.array([offer.means for offer in rounds(world, 400)])
    best = np.sort(means, axis=1)[:, -world.shown :].sum()
    found = world.baselines(400, seed=0)
    assert found.uniform == pytest.approx(best - world.shown * means.mean(axis=1).sum())
    fixed = min(
        best - means[:, list(arms)].sum() for arms in combinations(range(world.arms), world.shown)
    )
    assert found.fixed == pytest.approx(fixed)
    regret = played(Uniform(), world, horizon=400).final_regret
    assert regret == pytest.approx(found.uniform, rel=0.2)


def test_no_family_is_both_for_choosing_defaults_and_for_judging_them() -> None:
    assert not DEVELOPMENT.keys() & REPORTED.keys()
    assert FAMILIES == DEVELOPMENT | REPORTED


@pytest.mark.parametrize("name", EVERYDAY)
def test_no_reward_leaves_the_range_of_its_family(name: str) -> None:
    low, high = FAMILIES[EVERYDAY[name].family].rewards
    rewards = np.array([offer.rewards for offer in rounds(EVERYDAY[name], 500)])
    assert low <= rewards.min()
    assert rewards.max() <= high


def test_an_unknown_family_gets_a_message() -> None:
    with pytest.raises(SettingError, match="no everyday family 'weather'; there are clicks, seg"):
        Everyday(family="weather")


def test_the_closed_gap_is_the_share_of_uniform_regret_that_is_saved() -> None:
    assert gap_closed(0.0, 50.0) == 1.0
    assert gap_closed(50.0, 50.0) == 0.0
    assert gap_closed(60.0, 50.0) == pytest.approx(-0.2)


@pytest.mark.parametrize("name", EVERYDAY)
def test_in_every_everyday_family_the_best_arm_depends_on_the_context(name: str) -> None:
    means = np.array([offer.means for offer in rounds(EVERYDAY[name], 500)])
    uniform = (means.max(axis=1) - means.mean(axis=1)).sum()
    fixed = (means.max(axis=1) - means[:, means.mean(axis=0).argmax()]).sum()
    assert 0 < fixed
    assert gap_closed(fixed, uniform) < 0.95


def test_runs_with_other_noise_are_separate_in_tables() -> None:
    worlds = (SYNTHETIC["cosine"], Synthetic(function="cosine", noise=QUIET))
    summary = summarise([played(Uniform(), world, horizon=20) for world in worlds])
    titles = [summary.title(problem) for problem in summary.problems]
    assert titles == ["cosine (deviation 0.1)", "cosine (deviation 1.0)"]


def test_run_and_report_take_synthetic_problems_beside_datasets(tmp_path: Path) -> None:
    names = ["cosine", "inner-product-bernoulli", "digits", "coins", "digits+rare"]
    arguments = ["run", "--dataset", ",".join(names), "--policy", "lin-ucb,uniform"]
    more = ["--rounds", "20", "--seeds", "2", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *more])
    assert result.exit_code == 0, result.output
    assert all((tmp_path / f"{name}.png").exists() for name in names)
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "inner-product-bernoulli" in (tmp_path / "report.html").read_text()


def test_synthetic_problems_are_listed_with_the_datasets() -> None:
    output = CliRunner().invoke(app, ["datasets"]).output
    assert all(
        name in output for name in ("synthetic", *SYNTHETIC, *COINS, *EVERYDAY, *ALTERATIONS)
    )


def played(policy: Policy[Any], world: Environment, horizon: int) -> Run:
    """Return a run with seed 0."""
    name = type(policy).__name__
    return play(Trial(policy=policy, name=name, environment=world, horizon=horizon, seed=0))
