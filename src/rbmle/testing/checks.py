"""The contract of policies, for policies of your own."""

from collections.abc import Mapping
from typing import Any

from rbmle.core.bandit import Bandit
from rbmle.core.policy import Policy
from rbmle.testing.promises import PROMISES
from rbmle.testing.verdicts import Check, checks_of


def check_policy(
    policy: Policy[Any],
    *,
    expected_failures: Mapping[str, str] | None = None,
    bandit: type[Bandit] = Bandit,
) -> None:
    """Raise AssertionError, naming the promise, if a policy breaks one.

    `expected_failures` has the promises that the policy cannot keep, each with the reason; one that
    it keeps after all is an error too, and so is any exception but an RBMLEError.

    >>> from rbmle import LinUCB
    >>> check_policy(LinUCB(exploration=0.5))
    """
    for _, check in policy_checks(policy, expected_failures=expected_failures, bandit=bandit):
        check()


def policy_checks(
    policy: Policy[Any],
    *,
    expected_failures: Mapping[str, str] | None = None,
    bandit: type[Bandit] = Bandit,
) -> list[Check]:
    """Return each promise by name, and a function that checks it; pytest can be parametrised with them."""
    return checks_of(PROMISES, policy, bandit, expected_failures=expected_failures)
