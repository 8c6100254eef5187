"""Every policy keeps every promise, and a liar is caught for each promise."""

from typing import Any

import pytest

from rbmle import (
    POLICIES,
    Bandit,
    Bernoulli,
    Exact,
    FullBatch,
    Memory,
    Mixture,
    Network,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    NeuralTS,
    NeuralUCB,
    Regression,
)
from rbmle.core.errors import DivergenceError
from rbmle.core.policy import Policy
from tests.contract.counterexamples import LIARS, Honest
from tests.contract.promises import PROMISES, Promise

SMALL = Network(width=16)
VARIANTS: dict[str, Policy[Any]] = {
    "ga, full batch": NeuralRBMLEGA(
        model=Regression(network=SMALL, training=FullBatch(steps=20, rate=0.3))
    ),
    "ga, full batch from the start, paired": NeuralRBMLEGA(
        model=Regression(
            network=Network(width=16, start="paired"),
            training=FullBatch(steps=100, rate=0.02, warm=False),
        )
    ),
    "ga, estimate alone, mixture": NeuralRBMLEGA(
        rule="estimate", model=Regression(network=SMALL, likelihood=Mixture())
    ),
    "ga, three layers, bernoulli": NeuralRBMLEGA(
        model=Regression(network=Network(width=16, depth=3), likelihood=Bernoulli())
    ),
    "pc, exact": NeuralRBMLEPC(precision=Exact(), model=Regression(network=SMALL, ridge=0.1)),
    "ucb, exact, becoming dense": NeuralUCB(
        precision=Exact(), model=Regression(network=Network(width=2), ridge=0.1)
    ),
    "ucb, three layers, double": NeuralUCB(
        model=Regression(network=Network(width=16, depth=3, dtype="float64"))
    ),
    "ucb, paired": NeuralUCB(model=Regression(network=Network(width=16, start="paired"))),
    "ucb, window": NeuralUCB(model=Regression(memory=Memory(keep="window", size=50))),
    "ucb, reservoir": NeuralUCB(model=Regression(memory=Memory(keep="reservoir", size=50))),
    "ts, exact": NeuralTS(precision=Exact(), model=Regression(network=SMALL)),
}
KEEPERS: dict[str, Policy[Any]] = {name: make() for name, make in POLICIES.items()} | VARIANTS
DIVERGES = "plain ascent with a fixed step, as the paper states it, diverges on large contexts, and says so"
EXCUSED = {
    ("uniform", "it_learns"): "uniform play is the control that the others must beat",
    ("ga, full batch", "index_is_finite_for_large_small_and_zero_contexts"): DIVERGES,
    (
        "ga, full batch from the start, paired",
        "index_is_finite_for_large_small_and_zero_contexts",
    ): DIVERGES,
}


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", KEEPERS)
def test_every_policy_keeps_every_promise(name: str, promise: Promise) -> None:
    if (name, promise.__name__) in EXCUSED:
        with pytest.raises((AssertionError, DivergenceError)):
            promise(KEEPERS[name], Bandit)
    else:
        promise(KEEPERS[name], Bandit)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_the_honest_policy_keeps_every_promise(promise: Promise) -> None:
    promise(Honest(), Bandit)


@pytest.mark.parametrize(
    ("name", "liar", "make"),
    LIARS,
    ids=[f"{n}-{type(p).__name__}-{m.__name__}" for n, p, m in LIARS],
)
def test_a_liar_is_caught(name: str, liar: Any, make: type[Bandit]) -> None:
    (promise,) = (promise for promise in PROMISES if promise.__name__ == name)
    with pytest.raises((AssertionError, DivergenceError)):
        promise(liar, make)


def test_every_promise_has_a_liar() -> None:
    assert {promise.__name__ for promise in PROMISES} == {name for name, _, _ in LIARS}
