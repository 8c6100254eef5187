"""Every policy keeps every promise, and a liar is caught for each promise."""

from typing import Any

import pytest

from rbmle import (
    GLM,
    GLMRBMLE,
    POLICIES,
    Bandit,
    Bernoulli,
    Exact,
    FullBatch,
    Gaussian,
    LinTS,
    LinUCB,
    Memory,
    Mixture,
    Network,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    NeuralTS,
    NeuralUCB,
    Regression,
    Ridge,
)
from rbmle.classical import KLUCB, RBMLE, UCB1, BetaTS, GaussianTS
from rbmle.core.policy import LARGEST_REWARD, Policy, StandardisesRewards, has, limits_of
from rbmle.policies.epsilon_greedy import Uniform
from rbmle.testing import check_policy, policy_checks
from rbmle.testing.policies import PROMISES
from tests.contract.counterexamples import LIARS, Crashes, Honest, NeverLearns

SMALL = Network(width=16)
VARIANTS: dict[str, Policy[Any]] = {
    "ga, full batch": NeuralRBMLEGA(
        model=Regression(network=SMALL, training=FullBatch(steps=20, rate=0.1))
    ),
    "ga, full batch, standard start": NeuralRBMLEGA(
        model=Regression(
            network=Network(width=16, start="standard"),
            ridge=0.001,
            training=FullBatch(steps=20, rate=0.3),
        )
    ),
    "ga, full batch from the start, paired": NeuralRBMLEGA(  # as printed
        bias=0.01,
        is_scaled=False,
        model=Regression(
            network=Network(width=16, start="paired"),
            training=FullBatch(steps=100, rate=0.02, warm=False),
        ),
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
    "ucb, standard": NeuralUCB(model=Regression(network=Network(width=16, start="standard"))),
    "ucb, window": NeuralUCB(model=Regression(memory=Memory(keep="window", size=50))),
    "ucb, reservoir": NeuralUCB(model=Regression(memory=Memory(keep="reservoir", size=50))),
    "lin-ucb, diagonal": LinUCB(model=Ridge(precision="diagonal")),
    "lin-ts, diagonal": LinTS(model=Ridge(precision="diagonal")),
    "glm-rbmle, diagonal": GLMRBMLE(model=GLM(precision="diagonal")),
    "ts, exact": NeuralTS(precision=Exact(), model=Regression(network=SMALL)),
}
CLASSICAL: dict[str, Policy[Any]] = {
    "rbmle": RBMLE(),
    "rbmle, pessimistic, gaussian": RBMLE(likelihood=Gaussian(), bias=-1.0),
    "ucb1": UCB1(),
    "kl-ucb": KLUCB(),
    "beta ts": BetaTS(),
    "gaussian ts": GaussianTS(),
}
REGISTERED: dict[str, Policy[Any]] = {name: make() for name, make in POLICIES.items()}
KEEPERS = REGISTERED | VARIANTS | CLASSICAL
NAMES = [promise.__name__ for promise in PROMISES]
DIVERGES = (
    "plain ascent with a fixed step, as the paper states it, diverges on large numbers, and says so"
)
FULL_BATCH = {
    "index_is_finite_for_large_small_and_zero_contexts": DIVERGES,
}
EXCUSED = {
    **{name: {"it_learns": "which arm is right depends on contexts"} for name in CLASSICAL},
    "uniform": {"it_learns": "uniform play is the control that the others must beat"},
    "ga, full batch": FULL_BATCH,
    "ga, full batch, standard start": FULL_BATCH,
    "ga, full batch from the start, paired": FULL_BATCH,
}


def test_every_policy_without_a_range_of_rewards_standardises_them() -> None:
    for name, policy in REGISTERED.items():
        has_a_range = limits_of(policy)[1] < LARGEST_REWARD
        is_indifferent = isinstance(policy, Uniform)
        standardises = policy.standardises if has(policy, StandardisesRewards) else False
        assert has_a_range or is_indifferent or standardises, name


@pytest.mark.parametrize("promise", NAMES)
@pytest.mark.parametrize("name", KEEPERS)
def test_every_policy_keeps_every_promise(name: str, promise: str) -> None:
    dict(policy_checks(KEEPERS[name], expected_failures=EXCUSED.get(name)))[promise]()


def test_the_honest_policy_keeps_every_promise() -> None:
    check_policy(Honest())


@pytest.mark.parametrize(
    ("name", "liar", "make"),
    LIARS,
    ids=[f"{n}-{type(p).__name__}-{m.__name__}" for n, p, m in LIARS],
)
def test_a_liar_is_caught(name: str, liar: Any, make: type[Bandit]) -> None:
    with pytest.raises(AssertionError, match=f"{type(liar).__name__} breaks the promise {name}"):
        dict(policy_checks(liar, bandit=make))[name]()


def test_every_promise_has_a_liar() -> None:
    assert set(NAMES) == {name for name, _, _ in LIARS}


def test_a_check_that_was_expected_to_fail_must_fail() -> None:
    liar = {"it_learns": "it never learns"}
    dict(policy_checks(NeverLearns(), expected_failures=liar))["it_learns"]()
    with pytest.raises(AssertionError, match="keeps the promise it_learns, which was expected"):
        check_policy(Honest(), expected_failures=liar)
    with pytest.raises(ValueError, match="no promise 'it_flies'"):
        policy_checks(Honest(), expected_failures={"it_flies": "no wings"})
    with pytest.raises(ValueError, match="no reason is given"):
        policy_checks(Honest(), expected_failures={"it_learns": ""})


def test_an_error_inside_a_policy_is_a_broken_promise() -> None:
    with pytest.raises(AssertionError, match=r"Crashes breaks the promise .*ZeroDivisionError"):
        check_policy(Crashes())
