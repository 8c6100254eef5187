"""Many rounds at once: each is decided as if it were alone."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from rbmle import Bandit
from rbmle.core.choosing import draw_places, shares
from rbmle.core.encoding import per_arm, stack
from rbmle.core.policy import Policy
from rbmle.core.randomness import Purpose, generator, uniform
from rbmle.core.types import Chosen, Contexts
from rbmle.policies import POLICIES

FEATURES = 24
SIZES = [3, 1, 5, 3, 2, 5, 1, 7, 3]
IDS = [f"round {i}" for i in range(len(SIZES))]
SEPARATE = [name for name, kind in POLICIES.items() if getattr(kind, "is_separate", False)]
OTHERS = [name for name in POLICIES if name not in SEPARATE]


def test_which_policies_are_separate() -> None:
    assert {"neural-rbmle-pc", "neural-ucb", "lin-ucb", "lin-rbmle"} <= set(SEPARATE)
    assert {"neural-ts", "neural-rbmle-ga", "uniform"} <= set(OTHERS)


@pytest.mark.parametrize("name", SEPARATE)
def test_indices_of_stacked_contexts_are_to_the_bit_those_of_each(name: str) -> None:
    bandit, rounds = trained(name), sample_rounds()
    policy: Policy[Any] = bandit.policy
    every = policy.index(bandit.state, stack(rounds), generator(0, Purpose.INDEX, ""))
    for contexts in (rounds, [round.row(arm) for round in rounds for arm in range(len(round))]):
        each = [
            policy.index(bandit.state, one, generator(1, Purpose.INDEX, i))
            for i, one in enumerate(contexts)
        ]
        assert np.concatenate(each).tobytes() == every.tobytes()


@pytest.mark.parametrize("name", [*SEPARATE, "neural-ts"])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_a_decision_does_not_depend_on_the_other_rounds(name: str, floor: float) -> None:
    bandit, rounds = trained(name), sample_rounds()
    together = bandit.choose_many(stack(rounds), SIZES, IDS, floor)
    for order in (range(len(SIZES)), reversed(range(len(SIZES))), [4], [2, 5, 7], [8, 0]):
        some = list(order)
        got = bandit.choose_many(
            stack([rounds[i] for i in some]),
            [SIZES[i] for i in some],
            [IDS[i] for i in some],
            floor,
        )
        for i, chosen in zip(some, got, strict=True):
            assert alike(chosen, together[i])


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("floor", [0.0, 0.2, 1.0])
def test_one_id_has_one_answer_alone_or_among_others(name: str, floor: float) -> None:
    bandit, rounds = trained(name), sample_rounds()
    got = bandit.choose_many(stack(rounds), SIZES, IDS, floor)
    for chosen, contexts, id in zip(got, rounds, IDS, strict=True):
        assert alike(chosen, weighed(bandit, contexts, id, floor))
        assert alike(chosen, weighed(bandit, contexts, id, floor))


@pytest.mark.parametrize("name", SEPARATE)
def test_without_a_floor_the_largest_index_is_played_and_no_propensity_is_made_up(
    name: str,
) -> None:
    for chosen in trained(name).choose_many(stack(sample_rounds()), SIZES, IDS, 0.0):
        assert chosen.place == int(chosen.indices.argmax())
        assert chosen.probabilities is None


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_asks_the_model_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rbmle.models.network import Network

    bandit, plain = trained(name), Network.predict
    asked: list[Contexts] = []

    def counted(network: Network, net: Any, contexts: Contexts) -> np.ndarray:
        asked.append(contexts)
        return plain(network, net, contexts)

    monkeypatch.setattr(Network, "predict", counted)
    weighed(bandit, sample_rounds()[0], "one", 0.2)
    policy: Any = bandit.policy
    assert len(asked) <= (policy.networks if name == "bootstrapped-nn" else 1)


def test_arms_are_drawn_from_the_reported_probabilities() -> None:
    bandit, contexts = trained("neural-rbmle-pc"), sample_rounds()[2]
    n, rounds = len(contexts), 4_000
    ids = [f"draw {i}" for i in range(rounds)]
    got = bandit.choose_many(stack([contexts] * rounds), [n] * rounds, ids, 0.5)
    assert got[0].probabilities is not None
    observed = np.bincount([chosen.place for chosen in got], minlength=n)
    assert chisquare(observed, rounds * got[0].probabilities).pvalue > 0.001


def test_zero_rounds_give_zero_decisions() -> None:
    bandit = trained("lin-ucb")
    assert bandit.choose_many(sample_rounds()[0].part(slice(0)), [], [], 0.2) == []


def test_equal_indices_share_what_is_left_over() -> None:
    chances = shares(np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(chances, [[0.0, 0.5, 0.5, 0.0], [0.25] * 4], rtol=1e-15)
    assert shares(np.array([[-1.0, -2.0]])).tolist() == [[1.0, 0.0]]
    assert shares(np.array([[5.0]])).tolist() == [[1.0]]


def test_a_floor_is_under_every_arm() -> None:
    bandit, contexts = trained("lin-ucb"), sample_rounds()[2]
    chances = weighed(bandit, contexts, "one", 0.2).probabilities
    assert chances is not None
    np.testing.assert_allclose(np.sort(chances), [0.04] * 4 + [0.84], rtol=1e-15)


def test_an_arm_without_a_chance_is_never_drawn() -> None:
    chances = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    largest = np.nextafter(1.0, 0.0)
    assert draw_places(chances, np.zeros(4)).tolist() == [1, 0, 0, 2]
    assert draw_places(chances, np.full(4, largest)).tolist() == [1, 2, 0, 2]
    assert draw_places(chances, np.full(4, 0.5)).tolist() == [1, 2, 0, 2]


def test_draws_do_not_depend_on_rounding_of_the_sum() -> None:
    chances = np.full((1, 10), 0.1)  # whose sum is a little less than 1
    for u in (0.0, 0.05, 0.95, np.nextafter(1.0, 0.0)):
        assert draw_places(chances, np.array([u])).tolist() == [min(9, int(u * 10))]


def test_numbers_of_an_id_are_uniform_and_always_the_same() -> None:
    numbers = [uniform(7, Purpose.CHOOSE, f"event {i}") for i in range(5_000)]
    assert min(numbers) >= 0
    assert max(numbers) < 1
    assert kstest(numbers, "uniform").pvalue > 0.001
    assert len(set(numbers)) == len(numbers)
    assert numbers[3] == uniform(7, Purpose.CHOOSE, "event 3")
    others = (
        uniform(8, Purpose.CHOOSE, "event 3"),
        uniform(7, Purpose.INDEX, "event 3"),
        uniform(7, Purpose.CHOOSE, 3),
        uniform(7, Purpose.CHOOSE, "3"),
    )
    assert len({numbers[3], *others}) == 5
    assert 0 <= uniform(0, Purpose.CHOOSE, "\ud800") < 1


@cache
def trained(name: str) -> Bandit:
    """Return a bandit that has learned a little."""
    bandit = Bandit(POLICIES[name](), features=FEATURES, seed=3, encoding="per-arm", draws=16)
    rng = np.random.default_rng(1)
    for _ in range(25):
        bandit.learn(rng.normal(size=FEATURES) / FEATURES**0.5, reward=float(rng.random() < 0.5))
    return bandit


@cache
def sample_rounds() -> list[Contexts]:
    """Return the contexts of some rounds, with zeros and without."""
    rng = np.random.default_rng(2)
    rounds = []
    for size in SIZES:
        X = rng.normal(size=(size, FEATURES)) * (rng.random((size, FEATURES)) < 0.7)
        rounds.append(per_arm(X, FEATURES))
    return rounds


def weighed(bandit: Bandit, contexts: Contexts, id: str, floor: float) -> Chosen:
    """Return what is played in a single round."""
    (only,) = bandit.choose_many(contexts, [len(contexts)], [id], floor)
    return only


def alike(one: Chosen, other: Chosen) -> bool:
    """Return whether two answers are equal to the bit."""
    if one.probabilities is None or other.probabilities is None:
        return one.probabilities is other.probabilities and one.place == other.place
    return (
        one.place == other.place
        and one.indices.tobytes() == other.indices.tobytes()
        and one.probabilities.tobytes() == other.probabilities.tobytes()
    )
