"""What every environment promises, one function each; a broken promise is an AssertionError.

A function takes the environment, and others of its kind.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Encoding
from rbmle.environments import Environment, Round

ROUNDS = 2000
SIGMAS = 5.0  # that a mean may be off by chance

Promise = Callable[[Environment, Sequence[Environment]], None]


def rounds_are_a_function_of_t_and_seed(world: Environment, others: Sequence[Environment]) -> None:
    assert same(world.round(3, 0), world.round(3, 0))
    assert not same(world.round(3, 0), world.round(4, 0))
    assert not same(world.round(3, 0), world.round(3, 1))


def rounds_come_in_any_order(world: Environment, others: Sequence[Environment]) -> None:
    there = {(t, seed): world.round(t, seed) for seed in range(3) for t in range(20)}
    back = {key: world.round(*key) for key in reversed(there)}
    assert all(same(there[key], back[key]) for key in there)


def rounds_have_the_stated_shape(world: Environment, others: Sequence[Environment]) -> None:
    is_shared = world.encoding is Encoding.DISJOINT
    for offer in rounds(world, 100):
        assert offer.x.shape == ((world.features,) if is_shared else (world.arms, world.features))
        assert offer.rewards.shape == offer.means.shape == (world.arms,)


def numbers_are_finite(world: Environment, others: Sequence[Environment]) -> None:
    for offer in rounds(world, 500):
        assert all(np.isfinite(part).all() for part in parts(offer))


def means_are_the_expected_rewards(world: Environment, others: Sequence[Environment]) -> None:
    """For each arm, over all rounds and in proportion to the mean: swapped means average out."""
    means = np.array([offer.means for offer in rounds(world, ROUNDS)])
    noise = np.array([offer.rewards for offer in rounds(world, ROUNDS)]) - means
    for part in (noise, noise * (means - means.mean(axis=0))):
        assert (np.abs(part.mean(axis=0)) <= SIGMAS * part.std(axis=0) / ROUNDS**0.5).all()


def settings_are_json(world: Environment, others: Sequence[Environment]) -> None:
    try:
        text = json.dumps(world.settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(str(error)) from None
    assert json.loads(text) == world.settings
    assert isinstance(world.settings["name"], str)


def settings_determine_the_problem(world: Environment, others: Sequence[Environment]) -> None:
    assert others
    for other in others:
        alike = all(same(world.round(t, 0), other.round(t, 0)) for t in range(20))
        assert (world.settings == other.settings) == alike


def it_can_be_sent_to_another_process(world: Environment, others: Sequence[Environment]) -> None:
    try:
        copy = pickle.loads(pickle.dumps(world))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(str(error)) from None
    assert copy.settings == world.settings
    assert same(copy.round(5, 2), world.round(5, 2))


def a_reader_cannot_change_a_round(world: Environment, others: Sequence[Environment]) -> None:
    before = pickle.dumps(world.round(5, 2))
    for part in parts(world.round(5, 2)):
        if part.flags.writeable:
            part.fill(7.0)
    assert same(pickle.loads(before), world.round(5, 2))


def what_is_seen_does_not_tell_what_is_paid(
    world: Environment, others: Sequence[Environment]
) -> None:
    """No feature is an affine function of a mean or a reward."""
    seen = np.array([offer.x.ravel() for offer in rounds(world, ROUNDS)])
    paid = np.array([np.r_[offer.means, offer.rewards] for offer in rounds(world, ROUNDS)])
    assert np.abs(standard(seen).T @ standard(paid)).max() < 0.99 * ROUNDS


PROMISES: tuple[Promise, ...] = (
    rounds_are_a_function_of_t_and_seed,
    rounds_come_in_any_order,
    rounds_have_the_stated_shape,
    numbers_are_finite,
    means_are_the_expected_rewards,
    settings_are_json,
    settings_determine_the_problem,
    it_can_be_sent_to_another_process,
    a_reader_cannot_change_a_round,
    what_is_seen_does_not_tell_what_is_paid,
)


def rounds(world: Environment, n: int) -> Iterator[Round]:
    """Yield the first rounds of a run."""
    return (world.round(t, 0) for t in range(n))


def parts(offer: Round) -> tuple[np.ndarray, ...]:
    """Return the arrays of a round."""
    return offer.x, offer.rewards, offer.means


def same(first: Round, second: Round) -> bool:
    """Return whether two rounds are equal, bit for bit."""
    pairs = zip(parts(first), parts(second), strict=True)
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def standard(X: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n columns"]:
    """Return columns of mean 0 and deviation 1; constant ones become 0."""
    X = X - X.mean(axis=0)
    return X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
