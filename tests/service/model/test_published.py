"""What a learner publishes is what it has, bit for bit."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from rbmle.core.bandit import Bandit
from rbmle.core.saving import parts_of
from rbmle.features import Hashing
from rbmle.policies.registry import policy_with
from rbmle.service.log.records import NO_FEATURES, GuardRule, OfferedAction, pack_features
from rbmle.service.model.published import PublicationReader, Published, encode
from rbmle.service.model.settings import ModelSettings, offer_of
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.guarding import Grant
from tests.services import SMALL

POLICIES = ["neural-rbmle-pc", "neural-rbmle-ga", "neural-ts", "lin-ucb", "uniform"]


def taught(model: ModelSettings, rounds: int) -> Bandit:
    """Return a bandit that has learned something."""
    bandit, rng = model.start(), np.random.default_rng(0)
    for _ in range(rounds):
        who = pack_features([{"who": f"u{rng.integers(5)}", "age": float(rng.integers(16, 80))}])
        offers = [offer_of(who, NO_FEATURES, [OfferedAction(id=f"a{rng.integers(3)}")])]
        bandit.learn_all(model.contexts(offers, bandit), [float(rng.random() < 0.5)])
    return bandit


@pytest.mark.parametrize("rounds", [0, 30])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_published_model_is_the_learner_s_bit_for_bit(policy: str, rounds: int) -> None:
    settings = "" if policy in {"lin-ucb", "uniform"} else SMALL
    featuriser = Hashing(bits=6, is_scaled=True)
    model = ModelSettings(policy=policy_with(policy, settings), featuriser=featuriser, seed=3)
    snapshot = taught(model, rounds).snapshot()
    after = ServiceConfiguration(exploration=0.5)
    given = Published(model=model, bandit=snapshot, configuration=after, seq=7, time=9)
    found = PublicationReader().decode(encode(given, "a log"), "a log")
    assert found is not None
    assert replace(found, bandit=snapshot) == given
    arrays, numbers, round = parts_of(snapshot)
    same_arrays, same_numbers, same_round = parts_of(found.bandit)
    assert (same_numbers, same_round) == (numbers, round)
    assert {name: array.tobytes() for name, array in same_arrays.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }


def test_a_grant_of_conservative_mode_is_published_too() -> None:
    model = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=6))
    rule = GuardRule(tolerance=0.1, error=0.05, low=-1.0, high=1.0)
    grant = Grant(rule=rule, plays=[9, 8, 7], fronts={"f": 3})
    published = Published(model=model, bandit=model.start().snapshot(), grant=grant)
    decoded = PublicationReader().decode(encode(published, "a log"), "a log")
    assert decoded is not None
    assert decoded.grant == grant


def test_what_another_log_published_is_not_taken() -> None:
    model = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=6))
    published = Published(model=model, bandit=model.start().snapshot())
    assert PublicationReader().decode(encode(published, "a log"), "another log") is None


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Turn the garbage collector off, so that what is in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def publications(model: ModelSettings, n: int) -> Iterator[bytes]:
    """Yield what a learner would publish after each of n observations."""
    bandit, rng = model.start(), np.random.default_rng(0)
    for seq in range(n):
        who = pack_features([{"who": f"u{rng.integers(50)}"}])
        offers = [offer_of(who, NO_FEATURES, [OfferedAction(id=f"a{rng.integers(9)}")])]
        bandit.learn_all(model.contexts(offers, bandit), [float(rng.random() < 0.5)])
        yield encode(Published(model=model, bandit=bandit.snapshot(), seq=seq), "a log")


def contents(bandit: Bandit) -> dict[str, bytes]:
    """Return the arrays of a bandit as bytes."""
    return {name: array.tobytes() for name, array in parts_of(bandit)[0].items()}


LARGE = ModelSettings(
    policy=policy_with("neural-rbmle-pc", "model.network=Network(width=32)"),
    featuriser=Hashing(bits=12),
    seed=3,
)


@pytest.mark.parametrize("kind", ["snapshot", "copy"])
@pytest.mark.usefixtures("no_collector")
def test_a_model_that_nobody_uses_is_freed_at_once(kind: str) -> None:
    bandit = LARGE.start()
    twin = bandit.snapshot() if kind == "snapshot" else bandit.__copy__()
    model, weights = weakref.ref(twin), weakref.ref(twin.state.regression.net.theta.first)
    del twin
    assert model() is None
    assert weights() is None


@pytest.mark.usefixtures("no_collector")
def test_a_front_end_keeps_two_copies_of_large_arrays_however_many_models_it_follows() -> None:
    reader, memories, models = PublicationReader(), set(), []
    current: Published | None = None
    for content in islice(publications(LARGE, 35), 5, None):  # weights move once rewards differ
        current = reader.decode(content, "a log")
        assert current is not None
        models.append(weakref.ref(current.bandit))
        memories.add(current.bandit.state.regression.net.theta.first.ctypes.data)
    assert len(memories) == 2
    assert sum(model() is not None for model in models) == 1


def test_a_model_in_memory_that_was_used_before_is_the_learner_s_bit_for_bit() -> None:
    contents_in_turn = list(publications(LARGE, 12))
    reader = PublicationReader()
    current: Published | None = None
    for content in [*contents_in_turn, contents_in_turn[2], contents_in_turn[0]]:
        current, alone = (
            reader.decode(content, "a log"),
            PublicationReader().decode(content, "a log"),
        )
        assert current is not None
        assert alone is not None
        assert contents(current.bandit) == contents(alone.bandit)


def test_a_model_that_still_decides_is_left_alone() -> None:
    first, *others = publications(LARGE, 6)
    reader = PublicationReader()
    held = reader.decode(first, "a log")
    assert held is not None
    before = contents(held.bandit)
    row = held.bandit.state.regression.net.theta.first[5:7, 1:]  # a view of a view
    expected = row.copy()
    for content in others:
        reader.decode(content, "a log")
        assert contents(held.bandit) == before
    del held
    for content in others * 3:
        reader.decode(content, "a log")
        assert np.array_equal(row, expected)
