"""What a learner publishes is what it has, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from rbmle.core.bandit import Bandit
from rbmle.core.saving import parts_of
from rbmle.features import Hashing
from rbmle.policies.specification import policy_with
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.model import ModelSettings, offered
from rbmle.service.learning.published import Published, decode, encode
from rbmle.service.log.records import NO_FEATURES, OfferedAction, packed
from tests.services import SMALL

POLICIES = ["neural-rbmle-pc", "neural-rbmle-ga", "neural-ts", "lin-ucb", "uniform"]


def taught(model: ModelSettings, rounds: int) -> Bandit:
    """Return a bandit that has learned something."""
    bandit, rng = model.start(), np.random.default_rng(0)
    for _ in range(rounds):
        who = packed([{"who": f"u{rng.integers(5)}", "age": float(rng.integers(16, 80))}])
        offers = [offered(who, NO_FEATURES, [OfferedAction(id=f"a{rng.integers(3)}")])]
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
    found = decode(encode(given, "a log"), "a log")
    assert found is not None
    assert replace(found, bandit=snapshot) == given
    arrays, numbers, round = parts_of(snapshot)
    same_arrays, same_numbers, same_round = parts_of(found.bandit)
    assert (same_numbers, same_round) == (numbers, round)
    assert {name: array.tobytes() for name, array in same_arrays.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }


def test_what_another_log_published_is_not_taken() -> None:
    model = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=6))
    published = Published(model=model, bandit=model.start().snapshot())
    assert decode(encode(published, "a log"), "another log") is None
