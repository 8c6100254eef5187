"""What the index of a policy promises."""

from typing import Any

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.contexts import disjoint, per_arm
from rbmle.core.policy import IgnoresContexts, KnowsProbabilities, Policy, SeparateIndex, has
from rbmle.core.randomness import Purpose, generator
from rbmle.testing.playing import (
    ARMS,
    FEATURES,
    content,
    index_of,
    require,
    some_contexts,
    trained,
    vectors,
)


def index_is_one_finite_number_for_each_arm(policy: Policy[Any], make: type[Bandit]) -> None:
    """Before any data and after some, for 1, 2 and 50 arms, in both encodings."""
    for arms in (1, 2, 50):
        for encoding in ("disjoint", "per-arm"):
            bandit = make(policy, arms=arms, features=FEATURES, encoding=encoding)
            for t in range(3):
                x = vectors(t)[0] if encoding == "disjoint" else vectors(t, arms)
                decision = bandit.decide(x)
                shape = decision.indices.shape
                require(shape == (arms,), f"for {arms} arms the index has the shape {shape}")
                require(np.isfinite(decision.indices).all(), f"round {t}: {decision.indices}")
                bandit.learn(decision, 1.0)


def index_is_finite_for_large_small_and_zero_contexts(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Features are what users send: no scale may break the arithmetic."""
    for size in (0.0, 1e-12, 1e6, 1e11):
        bandit = make(policy, arms=3, features=FEATURES)
        for t in range(5):
            decision = bandit.decide(size * vectors(t)[0])
            require(np.isfinite(decision.indices).all(), f"contexts of size {size}")
            bandit.learn(decision, float(t % 2))


def index_changes_nothing(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither state nor contexts, byte for byte."""
    bandit = trained(policy, make)
    contexts = some_contexts()
    state, before = content(bandit.state), content(contexts.rows)
    policy.index(bandit.state, contexts, generator(0, Purpose.INDEX, 0))
    if has(policy, KnowsProbabilities):
        policy.weigh(bandit.state, contexts, 10, generator(0, Purpose.INDEX, 0))
    require(content(bandit.state) == state, "the state changed: only `update` may learn")
    require(content(contexts.rows) == before, "the contexts changed: copy before you scale")


def index_asked_twice_answers_the_same(policy: Policy[Any], make: type[Bandit]) -> None:
    """With equal streams."""
    bandit = trained(policy, make)
    np.testing.assert_array_equal(index_of(policy, bandit.state), index_of(policy, bandit.state))


def arms_may_be_listed_in_any_order(policy: Policy[Any], make: type[Bandit]) -> None:
    """Permuted contexts have permuted indices, in both encodings."""
    order = [3, 0, 2, 1]
    for encoding in ("disjoint", "per-arm"):
        bandit = trained(policy, make, encoding=encoding)
        if encoding == "disjoint":
            x = vectors(9)[0]
            listed = disjoint(x, np.arange(ARMS), FEATURES)
            permuted = disjoint(x, np.array(order), FEATURES)
        else:
            X = vectors(9, ARMS)
            listed, permuted = per_arm(X, FEATURES), per_arm(X[order], FEATURES)
        np.testing.assert_allclose(
            index_of(policy, bandit.state, permuted),
            index_of(policy, bandit.state, listed)[order],
            rtol=1e-12,
        )


def twins_tie(policy: Policy[Any], make: type[Bandit]) -> None:
    """Two arms with one context have one index."""
    bandit = trained(policy, make, encoding="per-arm")
    X = vectors(9, ARMS)
    X[2] = X[0]
    indices = index_of(policy, bandit.state, per_arm(X, FEATURES))
    require(indices[0] == indices[2], f"equal contexts have {indices[0]} and {indices[2]}")


def a_new_arm_leaves_the_others_as_they_were(policy: Policy[Any], make: type[Bandit]) -> None:
    """Growing forgets nothing, and the new arm has an index and learns."""
    bandit = trained(policy, make)
    x = vectors(9)[0]
    before = index_of(policy, bandit.state, disjoint(x, np.arange(ARMS), FEATURES))
    bandit.add_arm("new")
    after = index_of(policy, bandit.state, disjoint(x, np.arange(ARMS + 1), FEATURES))
    np.testing.assert_array_equal(after[:ARMS], before)
    require(np.isfinite(after[ARMS]), f"the index of the new arm is {after[ARMS]}")
    bandit.learn(x, arm="new", reward=1.0)


def probabilities_are_a_distribution(policy: Policy[Any], make: type[Bandit]) -> None:
    """Those of a policy that knows them sum to 1; with a floor all policies have some that keep it."""
    bandit = trained(policy, make)
    if has(policy, KnowsProbabilities):
        rng = generator(0, Purpose.INDEX, 0)
        _, chances = policy.weigh(bandit.state, some_contexts(), 50, rng)
        if chances is None:
            raise AssertionError("`weigh` returns no probabilities, though 50 draws were granted")
        require((chances >= 0).all(), f"a probability is below 0: {chances}")
        require(np.isclose(chances.sum(), 1), f"the probabilities sum to {chances.sum()}, not to 1")
    floored = make(policy, arms=ARMS, features=FEATURES, floor=0.2, draws=20)
    decision = floored.decide(np.ones(FEATURES))
    found = decision.probabilities
    if found is None or decision.propensity is None:
        raise AssertionError("a floor gives probabilities and a propensity, but there are none")
    require((found >= 0.2 / ARMS - 1e-12).all(), f"a floor of 0.2 is not kept: {found}")
    require(np.isclose(found.sum(), 1), f"with a floor they sum to {found.sum()}, not to 1")


def a_separate_index_does_not_draw(policy: Policy[Any], make: type[Bandit]) -> None:
    """A policy that says `is_separate` answers the same for every stream."""
    bandit = trained(policy, make)
    if not has(policy, SeparateIndex):
        return
    streams = [generator(0, Purpose.INDEX, t) for t in range(5)]
    answers = [policy.index(bandit.state, some_contexts(), rng) for rng in streams]
    require(
        all((answer == answers[0]).all() for answer in answers),
        "the policy says `is_separate`, but its index differs from stream to stream",
    )


def who_ignores_contexts_reads_none(policy: Policy[Any], make: type[Bandit]) -> None:
    """A policy that says `ignores_contexts` answers the same for every context."""
    bandit = trained(policy, make)
    if not has(policy, IgnoresContexts):
        return
    seen = [disjoint(vectors(t)[0], np.arange(ARMS), FEATURES) for t in range(5)]
    stream = (generator(0, Purpose.INDEX, 0) for _ in seen)
    answers = [policy.index(bandit.state, *each) for each in zip(seen, stream, strict=True)]
    require(
        all((answer == answers[0]).all() for answer in answers),
        "the policy says `ignores_contexts`, but its index differs from context to context",
    )
