"""The contract of learners of MDPs, for learners of your own."""

from collections.abc import Mapping
from typing import Any

from rbmle.control import MDP, Learner
from rbmle.testing.learner_promises import EASY, PROMISES
from rbmle.testing.verdicts import Check, checks_of


def check_learner(
    learner: Learner[Any],
    *,
    mdp: MDP = EASY,
    expected_failures: Mapping[str, str] | None = None,
) -> None:
    """Raise AssertionError, naming the promise, if a learner breaks one.

    `mdp` is where it is tried; a learner of a finite set needs one of that set. `expected_failures` has the
    promises that the learner cannot keep, each with the reason; one that it keeps after all is an error too.

    >>> from rbmle.control import PSRL
    >>> check_learner(PSRL())
    """
    for _, check in learner_checks(learner, mdp=mdp, expected_failures=expected_failures):
        check()


def learner_checks(
    learner: Learner[Any],
    *,
    mdp: MDP = EASY,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return each promise by name, and a function that checks it; pytest can be parametrised with them."""
    return checks_of(PROMISES, learner, mdp, expected_failures=expected_failures)
