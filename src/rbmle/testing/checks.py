"""The contract of policies, for policies of your own."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.testing.promises import PROMISES, Promise

Check = tuple[str, Callable[[], None]]


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
    expected = dict(expected_failures or {})
    names = [promise.__name__ for promise in PROMISES]
    for name, reason in expected.items():
        if name not in names:
            raise ValueError(f"there is no promise {name!r}; there are {', '.join(names)}")
        if not reason.strip():
            raise ValueError(f"{name} is expected to fail, but no reason is given; give one")
    return [
        (promise.__name__, partial(_check, promise, policy, bandit, expected.get(promise.__name__)))
        for promise in PROMISES
    ]


def _check(promise: Promise, policy: Policy[Any], bandit: type[Bandit], excuse: str | None) -> None:
    """Raise AssertionError unless a policy keeps a promise, or breaks it as expected."""
    try:
        promise(policy, bandit)
    except Exception as error:  # whatever a policy fails with
        if excuse is not None and isinstance(error, AssertionError | RBMLEError):
            return
        said = str(error).strip() or "no message"
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(
            f"{type(policy).__name__} breaks the promise {promise.__name__} "
            f"({(promise.__doc__ or '').strip()}): {kind}{said}"
        ) from error
    if excuse is not None:
        raise AssertionError(
            f"{type(policy).__name__} keeps the promise {promise.__name__}, which was expected to fail "
            f"({excuse}); take it out of expected_failures"
        )
