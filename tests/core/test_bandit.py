"""What a user holds: arms, contexts, propensities, late rewards, messages."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from rbmle import (
    POLICIES,
    Bandit,
    Bernoulli,
    EpsilonGreedy,
    LinTS,
    LinUCB,
    NeuralTS,
    NeuralUCB,
    Regression,
    Uniform,
)
from rbmle.core.encoding import disjoint, per_arm
from rbmle.core.errors import (
    ArmError,
    ContextError,
    EligibilityError,
    RewardError,
    SettingError,
    SnapshotError,
)
from tests.samples import bytes_of


def test_arms_have_the_ids_of_the_user() -> None:
    bandit = Bandit(LinUCB(), arms=["tea", 7, "coffee"], features=2)
    decision = bandit.decide([1.0, 2.0])
    assert decision.arms == ("tea", 7, "coffee")
    assert decision.arm in decision.arms
    bandit.learn([0.0, 1.0], arm=7, reward=0.0)
    bandit.learn([1.0, 0.0], arm="coffee", reward=1.0)
    assert bandit.decide([1.0, 0.0]).arm == "coffee"


def test_ids_and_numbers_may_be_those_of_numpy(tmp_path: Path) -> None:
    five, one, two, late = np.int64(5), np.float32(1.0), np.int64(2), np.str_("late")
    ids: Any = np.array([3, 5])
    bandit = Bandit(LinUCB(), arms=ids, features=1)
    bandit.learn([1.0], arm=3, reward=0.0)
    bandit.learn(np.float32([1.0]), arm=five, reward=one)  # type: ignore[arg-type]  # numpy's numbers
    bandit.add_arm(late)
    bandit.save(tmp_path / "b")
    decision = Bandit.load(tmp_path / "b").decide([1.0])
    assert decision.arms == (3, 5, "late")
    assert decision.arm == 5
    assert Bandit(LinUCB(), arms=two, features=1).decide([1.0]).arms == (0, 1)  # type: ignore[arg-type]  # numpy's


def test_eligible_restricts_a_call_and_keeps_its_order() -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b", "c"], features=1)
    bandit.learn([1.0], arm="a", reward=0.0)
    bandit.learn([1.0], arm="b", reward=1.0)
    all_arms = bandit.decide([1.0])
    assert all_arms.arm == "b"
    decision = bandit.decide([1.0], eligible=["c", "a"])
    assert decision.arms == ("c", "a")
    np.testing.assert_array_equal(decision.indices, all_arms.indices[[2, 0]])


def test_arms_come_and_go_while_it_runs() -> None:
    bandit = Bandit(NeuralUCB(), arms=["a", "b"], features=2)
    bandit.add_arm("c")
    assert bandit.decide([1.0, 0.0]).arms == ("a", "b", "c")
    bandit.retire_arm("a")
    decision = bandit.decide([1.0, 0.0])
    assert decision.arms == ("b", "c")
    bandit.learn([1.0, 0.0], arm="a", reward=1.0)  # a late reward of a retired arm
    with pytest.raises(ArmError, match="'a' is retired"):
        bandit.decide([1.0, 0.0], eligible=["a"])
    bandit.add_arm("a")
    assert bandit.decide([1.0, 0.0]).arms == ("a", "b", "c")
    with pytest.raises(ArmError, match="'c' is already in play"):
        bandit.add_arm("c")
    bandit.retire_arm("b")
    bandit.retire_arm("c")
    with pytest.raises(ArmError, match="last one"):
        bandit.retire_arm("a")


def test_contexts_per_arm_may_have_other_arms_in_each_round() -> None:
    bandit = Bandit(NeuralUCB(), features=2, encoding="per-arm")
    assert bandit.decide(np.eye(2)).arms == (0, 1)
    decision = bandit.decide(np.ones((3, 2)), eligible=["x", "y", "z"])
    assert decision.arms == ("x", "y", "z")
    bandit.learn(decision, 1.0)
    bandit.learn([1.0, 0.0], reward=0.0)
    assert bandit.round == 2
    with pytest.raises(EligibilityError, match="3 rows of features for 2 eligible arms"):
        bandit.decide(np.ones((3, 2)), eligible=["x", "y"])
    with pytest.raises(EligibilityError, match="0 rows"):
        bandit.decide(np.ones((0, 2)))


@pytest.mark.parametrize("name", POLICIES)
def test_sparse_features_are_the_dense_ones(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 6)) * (
        np.random.default_rng(1).random((30, 6)) < 0.4
    )
    dense = Bandit(POLICIES[name](), arms=3, features=6, seed=2)
    thin = Bandit(POLICIES[name](), arms=3, features=6, seed=2)
    for i, x in enumerate(X):
        decision, same = dense.decide(x), thin.decide(sparse.csr_array(X[i : i + 1]))
        assert decision.arm == same.arm
        np.testing.assert_array_equal(decision.indices, same.indices)
        dense.learn(decision, float(decision.arm == 1))
        thin.learn(same, float(same.arm == 1))
    assert bytes_of(dense) == bytes_of(thin)


def test_sparse_rows_per_arm_are_the_dense_ones() -> None:
    X = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    bandit = Bandit(NeuralUCB(), features=3, encoding="per-arm")
    np.testing.assert_array_equal(
        bandit.decide(X, id="q").indices, bandit.decide(sparse.coo_array(X), id="q").indices
    )


def test_deciding_and_learning_from_elsewhere_is_the_same_learning() -> None:
    """`learn(decision, r)` and `learn(x, arm, r)` and `partial_fit` leave one state."""
    X, rewards = np.random.default_rng(0).normal(size=(20, 3)), [0.0, -2.5, 1e3, 1.0] * 5
    decided, told, batch = (Bandit(NeuralUCB(), arms=4, features=3, seed=1) for _ in range(3))
    arms = []
    for x, reward in zip(X, rewards, strict=True):
        decision = decided.decide(x)
        arms.append(decision.arm)
        decided.learn(decision, reward)
        told.learn(x, arm=decision.arm, reward=reward)
    assert batch.partial_fit(X, arms, rewards) is batch
    assert bytes_of(decided) == bytes_of(told) == bytes_of(batch)


def test_rewards_may_come_late_and_in_any_order() -> None:
    bandit = Bandit(LinUCB(), arms=2, features=2)
    decisions = [bandit.decide([1.0, t]) for t in range(5)]
    for decision in reversed(decisions):
        bandit.learn(decision, 1.0)
    assert bandit.round == 5
    assert len({decision.id for decision in decisions}) == 5


def test_a_decision_does_not_change_with_the_users_array() -> None:
    x = np.array([1.0, 2.0])
    bandit, other = Bandit(LinUCB(), arms=1, features=2), Bandit(LinUCB(), arms=1, features=2)
    decision = bandit.decide(x)
    x[:] = 99.0
    bandit.learn(decision, 1.0)
    other.learn([1.0, 2.0], arm=0, reward=1.0)
    assert bytes_of(bandit) == bytes_of(other)


def test_an_empty_id_is_an_id() -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2, seed=0)
    assert bandit.decide([1.0, 0.0], id="").id == ""
    assert bandit.rank([1.0, 0.0], k=1, id="")[0].id == ""


def test_the_same_id_gets_the_same_answer() -> None:
    bandit = Bandit(LinTS(exploration=1.0), arms=5, features=2, seed=4)
    first = bandit.decide([1.0, 1.0], id="event/1 é")
    again = bandit.decide([1.0, 1.0], id="event/1 é")
    assert first.arm == again.arm
    np.testing.assert_array_equal(first.indices, again.indices)
    assert bandit.decisions == 0
    assert bandit.decide([1.0, 1.0], id="").id == bandit.rank([1.0, 1.0], 1, id="")[0].id == ""
    others = {bandit.decide([1.0, 1.0], id=str(i)).arm for i in range(50)}
    assert len(others) > 1


# Propensities.


def test_a_deterministic_policy_without_a_floor_has_no_propensity() -> None:
    bandit = Bandit(NeuralUCB(), arms=3, features=1)
    assert bandit.decide([1.0]).propensity is None


def test_a_floor_gives_true_propensities() -> None:
    """The best of four arms has 1 − ε + ε/4, the others ε/4, and arms are played as often."""
    bandit = Bandit(LinUCB(exploration=0.0), arms=4, features=1, floor=0.4, seed=3)
    bandit.learn([1.0], arm=0, reward=0.0)
    bandit.learn([1.0], arm=2, reward=1.0)
    decision = bandit.decide([1.0])
    assert decision.probabilities is not None
    np.testing.assert_allclose(decision.probabilities, [0.1, 0.1, 0.7, 0.1])
    counts = np.zeros(4)
    for _ in range(4000):
        decision = bandit.decide([1.0])
        counts[decision.arms.index(decision.arm)] += 1
        assert decision.propensity == pytest.approx(0.7 if decision.arm == 2 else 0.1)
    assert stats.chisquare(counts, 4000 * np.array([0.1, 0.1, 0.7, 0.1])).pvalue > 0.001


def test_uniform_and_epsilon_greedy_know_their_propensities() -> None:
    assert Bandit(Uniform(), arms=4, features=1).decide([1.0]).propensity == 0.25
    bandit = Bandit(EpsilonGreedy(epsilon=0.2), arms=4, features=1)
    for _ in range(20):
        bandit.learn([1.0], arm=0, reward=0.0)
        bandit.learn([1.0], arm=1, reward=1.0)
    probabilities = bandit.decide([1.0]).probabilities
    assert probabilities is not None
    np.testing.assert_allclose(probabilities, [0.05, 0.85, 0.05, 0.05])


@pytest.mark.parametrize("policy", [NeuralTS(exploration=3.0), LinTS(exploration=1.0)])
def test_thompson_sampling_estimates_its_propensities_by_draws(policy: Any) -> None:
    """With 400 draws, each probability is a count of them, and near how often the arm is played."""
    bandit = Bandit(policy, arms=3, features=1, draws=400, seed=1)
    silent = Bandit(policy, arms=3, features=1, seed=1)
    for held in (bandit, silent):
        for t in range(6):
            held.learn([1.0], arm=t % 3, reward=t / 5)
    assert silent.decide([1.0]).propensity is None
    decision = bandit.decide([1.0])
    assert decision.propensity is not None
    assert decision.propensity * 400 == pytest.approx(round(decision.propensity * 400))
    played = [silent.decide([1.0]).arm for _ in range(1500)]
    frequencies = np.bincount(played, minlength=3) / 1500
    chances = [bandit.decide([1.0]).probabilities for _ in range(20)]
    estimates = sum(chance for chance in chances if chance is not None) / 20
    np.testing.assert_allclose(estimates, frequencies, atol=0.05)


# Threads.


def test_several_bandits_live_in_several_threads() -> None:
    def run(seed: int, out: dict[int, bytes]) -> None:
        bandit = Bandit(NeuralUCB(), arms=3, features=4, seed=seed)
        for t in range(150):
            x = np.random.default_rng([seed, t]).normal(size=4)
            decision = bandit.decide(x)
            bandit.learn(decision, float(decision.arm == 0))
        out[seed] = bytes_of(bandit)

    alone: dict[int, bytes] = {}
    for seed in range(4):
        run(seed, alone)
    together: dict[int, bytes] = {}
    threads = [threading.Thread(target=run, args=(seed, together)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert len(set(alone.values())) == 4


# Messages: what is wrong with its value, what was expected, what to do.


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (
            lambda b: b.decide([1.0]),
            ContextError,
            r"shape \(1,\).*vector of shape \(2,\).*features=1",
        ),
        (lambda b: b.decide([[1.0, 2.0]]), ContextError, r"shape \(1, 2\).*x\[0\]"),
        (lambda b: b.decide(np.ones((3, 2))), ContextError, "decide_many"),
        (
            lambda b: b.decide([np.nan, 1.0]),
            ContextError,
            "feature 0 of the context is nan.*replace",
        ),
        (lambda b: b.decide([1.0, -np.inf]), ContextError, "feature 1 of the context is -inf"),
        (lambda b: b.decide([1.0, 1e20]), ContextError, "1e\\+20.*scale"),
        (
            lambda b: b.decide(["x", 1.0]),
            ContextError,
            "not an array of numbers.*encode categories",
        ),
        (lambda b: b.decide([[1.0], [1.0, 2.0]]), ContextError, "not an array of numbers"),
        (lambda b: b.decide(sparse.csr_array(np.ones((2, 2)))), ContextError, "2 rows.*per-arm"),
        (lambda b: b.decide(sparse.csr_array(np.ones((1, 3)))), ContextError, "3 features, but 2"),
        (lambda b: b.decide([1.0, 1.0], eligible=[]), EligibilityError, "`eligible` is empty"),
        (
            lambda b: b.decide([1.0, 1.0], eligible=["z"]),
            ArmError,
            "no arm 'z'; there are 'a', 'b'",
        ),
        (lambda b: b.decide([1.0, 1.0], eligible=["a", "a"]), ArmError, "twice"),
        (lambda b: b.learn([1.0, 1.0], reward=1.0), ArmError, "arm is missing"),
        (lambda b: b.learn([1.0, 1.0], arm=["a"], reward=1.0), ArmError, "strings or integers"),
        (lambda b: b.learn([1.0, 1.0], arm="a"), RewardError, "finite number, got None"),
        (
            lambda b: b.learn([1.0, 1.0], arm="a", reward=np.inf),
            RewardError,
            "finite number, got inf",
        ),
        (lambda b: b.learn(b.decide([1.0, 1.0]), 1.0, arm="a"), ArmError, "one of the two"),
        (lambda b: b.add_arm(1.5), ArmError, "strings or integers, got 1.5, a float"),
        (lambda b: b.add_arm(True), ArmError, "bool"),
        (lambda b: b.retire_arm("q"), ArmError, "no arm 'q'"),
        (
            lambda b: b.partial_fit([[1.0, 1.0]], ["a"], []),
            ContextError,
            "1 contexts, 1 arms and 0",
        ),
    ],
)
def test_a_mistake_gets_a_message_and_changes_nothing(
    attempt: Any, error: Any, message: str
) -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2)
    bandit.learn([1.0, 0.5], arm="a", reward=1.0)
    before = bytes_of(bandit)
    with pytest.raises(error, match=message):
        attempt(bandit)
    assert bytes_of(bandit) == before
    assert bandit.arms is not None
    assert bandit.arms.ids == ("a", "b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": 0, "features": 2}, "`arms` must be at least 1, got 0"),
        ({"arms": [], "features": 2}, "at least one arm"),
        ({"features": 2}, "`arms` is missing"),
        ({"arms": 2, "features": 0}, "`features` must be an integer of at least 1, got 0"),
        ({"arms": 2, "features": 1.5}, "got 1.5"),
        (
            {"arms": 2, "features": 2, "floor": 1.5},
            "`floor` must be a probability between 0 and 1, got 1.5",
        ),
        (
            {"arms": 2, "features": 2, "draws": -1},
            "`draws` must be an integer of at least 0, got -1",
        ),
        ({"arms": 2, "features": 2, "encoding": "both"}, "`encoding` must be .*got 'both'"),
        ({"arms": 2, "features": 2, "seed": None}, "`seed` must be an integer, got None"),
    ],
)
def test_a_mistaken_setting_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Bandit(LinUCB(), **settings)


def test_a_reward_that_the_likelihood_excludes_is_refused() -> None:
    policy = NeuralUCB(model=Regression(likelihood=Bernoulli()))
    bandit = Bandit(policy, arms=2, features=1)
    with pytest.raises(RewardError, match=r"between 0 and 1 .* got 5; scale .* Gaussian\(\)"):
        bandit.learn([1.0], arm=0, reward=5)
    with pytest.raises(RewardError, match=r"got -0\.5"):
        bandit.partial_fit([[1.0], [1.0]], [0, 1], [1.0, -0.5])
    with pytest.raises(RewardError, match="between 0 and 1"):
        bandit.learn_all(disjoint([1.0], np.array([0]), 1), [1.5])
    assert bandit.round == 0
    bandit.learn([1.0], arm=0, reward=0.25)
    bandit.learn_all(disjoint([1.0], np.array([0]), 1), [1.5], allow_any_reward=True)
    assert bandit.round == 2


def test_a_reward_that_no_network_survives_is_refused() -> None:
    bandit = Bandit(NeuralUCB(), arms=2, features=1)
    with pytest.raises(RewardError, match=r"at most 1e\+09 in size, got -1e\+20; scale"):
        bandit.learn([1.0], arm=0, reward=-1e20)
    bandit.learn([1.0], arm=0, reward=1e9)
    assert np.isfinite(bandit.decide([1.0]).indices).all()


def test_a_decision_of_another_bandit_is_refused() -> None:
    decision = Bandit(LinUCB(), arms=["a"], features=3).decide([1.0, 1.0, 1.0])
    with pytest.raises(ContextError, match="3 features, but this bandit has 2"):
        Bandit(LinUCB(), arms=["a"], features=2).learn(decision, 1.0)
    stranger = Bandit(LinUCB(), arms=["s"], features=2).decide([1.0, 1.0])
    with pytest.raises(ArmError, match="no arm 's'"):
        Bandit(LinUCB(), arms=["a"], features=2).learn(stranger, 1.0)


def test_a_snapshot_can_neither_learn_nor_be_saved(tmp_path: Path) -> None:
    snapshot = Bandit(NeuralUCB(), arms=["a", "b"], features=2).snapshot()
    with pytest.raises(SnapshotError, match="use the bandit it was taken from"):
        snapshot.learn([1.0, 0.0], arm="a", reward=1.0)
    with pytest.raises(SnapshotError, match="can only decide"):
        snapshot.save(tmp_path / "bandit")
    assert not list(tmp_path.iterdir())


def test_an_observation_without_a_fit_is_seen_by_the_next_fit() -> None:
    fitted, remembered = (Bandit(NeuralUCB(), features=2, encoding="per-arm") for _ in range(2))
    contexts = per_arm([[1.0, 0.0], [0.0, 1.0]], 2)
    before = remembered.state.regression.net.theta.first.copy()
    remembered.learn_all(contexts, [1.0, 0.0], is_fitted=np.zeros(2, bool))
    np.testing.assert_array_equal(remembered.state.regression.net.theta.first, before)
    assert remembered.round == remembered.state.round == 2
    for bandit in (fitted, remembered):
        for _ in range(20):
            bandit.learn_all(contexts.row(1), [0.0])
    known, unknown = (bandit.decide([[1.0, 0.0]]).indices[0] for bandit in (remembered, fitted))
    assert known > unknown + 0.2  # though no step of its own was on the first context


def test_an_invalid_batch_is_refused_and_changes_nothing() -> None:
    bandit = Bandit(NeuralUCB(), features=2, encoding="per-arm")
    before, contexts = bytes_of(bandit), per_arm([[1.0, 0.0]], 2)
    with pytest.raises(RewardError, match="finite"):
        bandit.learn_all(contexts, [np.nan])
    with pytest.raises(ContextError, match="one reward for each"):
        bandit.learn_all(contexts, [1.0, 0.0])
    with pytest.raises(ContextError, match="3 features"):
        bandit.learn_all(per_arm([[1.0, 0.0, 0.0]], 3), [1.0])
    assert bytes_of(bandit) == before
    assert bandit.round == 0
