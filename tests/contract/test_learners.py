"""Every learner of MDPs keeps every promise, and a liar is caught for each promise."""

from typing import Any

import pytest

from rbmle.control import (
    KLUCRL,
    MDP,
    PSRL,
    UCRL2,
    FiniteCE,
    FiniteRBMLE,
    Learner,
    TabularCE,
    TabularRBMLE,
    closed_loop,
    random_mdp,
)
from rbmle.policies.schedules import Logarithm, Power
from rbmle.testing import check_learner, learner_checks
from rbmle.testing.learners import EASY, PROMISES
from tests.contract.learner_liars import LIARS, Honest

NAMES = [promise.__name__ for promise in PROMISES]
FAMILY = closed_loop()
TRUE = FAMILY.mdp(0.02)
STUCK = "its first estimate has a policy that never shows that it is wrong"
KEEPERS: dict[str, tuple[Learner[Any], MDP]] = {
    "rbmle": (TabularRBMLE(), EASY),
    "rbmle, root": (TabularRBMLE(bias=0.1, growth=Power(exponent=0.5)), EASY),
    "rbmle, unscaled": (TabularRBMLE(bias=0.3, is_scaled=False), EASY),
    "rbmle, random MDP": (TabularRBMLE(), random_mdp(4, 3, 1)),
    "psrl": (PSRL(), EASY),
    "psrl, random MDP": (PSRL(prior=0.5), random_mdp(4, 3, 1)),
    "ucrl2": (UCRL2(), EASY),
    "kl-ucrl": (KLUCRL(), EASY),
    "certainty equivalence": (TabularCE(), EASY),
    "finite rbmle": (FiniteRBMLE(family=FAMILY), TRUE),
    "finite rbmle, logarithm": (FiniteRBMLE(family=FAMILY, bias=3.0, growth=Logarithm()), TRUE),
    "finite certainty equivalence": (FiniteCE(family=FAMILY), TRUE),
}
EXCUSED = {"finite certainty equivalence": {"it_learns": STUCK}}


@pytest.mark.parametrize("promise", NAMES)
@pytest.mark.parametrize("name", KEEPERS)
def test_every_learner_keeps_every_promise(name: str, promise: str) -> None:
    learner, mdp = KEEPERS[name]
    dict(learner_checks(learner, mdp=mdp, expected_failures=EXCUSED.get(name)))[promise]()


def test_the_honest_learner_keeps_every_promise() -> None:
    check_learner(Honest())


@pytest.mark.parametrize(("name", "liar"), LIARS, ids=[f"{n}-{type(x).__name__}" for n, x in LIARS])
def test_a_liar_is_caught(name: str, liar: Any) -> None:
    with pytest.raises(AssertionError, match=f"{type(liar).__name__} breaks the promise {name}"):
        dict(learner_checks(liar))[name]()


def test_every_promise_has_a_liar() -> None:
    assert set(NAMES) == {name for name, _ in LIARS}
