"""Checks of a contract: each promise by name, and whether its keeper keeps it or breaks it as expected."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rbmle.core.errors import RBMLEError

Check = tuple[str, Callable[[], None]]


def checks_of(
    promises: Sequence[Callable[..., None]],
    keeper: Any,
    *given: Any,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return each promise by name, and a function that checks it for the keeper and what else is given."""
    expected = dict(expected_failures or {})
    names = [promise.__name__ for promise in promises]
    for name, reason in expected.items():
        if name not in names:
            raise ValueError(f"there is no promise {name!r}; there are {', '.join(names)}")
        if not reason.strip():
            raise ValueError(f"{name} is expected to fail, but no reason is given; give one")
    return [
        (name, partial(_check, promise, keeper, given, expected.get(name)))
        for name, promise in zip(names, promises, strict=True)
    ]


def _check(
    promise: Callable[..., None], keeper: Any, given: tuple[Any, ...], excuse: str | None
) -> None:
    """Raise AssertionError unless a keeper keeps a promise, or breaks it as expected."""
    try:
        promise(keeper, *given)
    except Exception as error:  # whatever a keeper fails with
        if excuse is not None and isinstance(error, AssertionError | RBMLEError):
            return
        message = str(error).strip() or "no message"
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(
            f"{type(keeper).__name__} breaks the promise {promise.__name__} "
            f"({(promise.__doc__ or '').strip()}): {kind}{message}"
        ) from error
    if excuse is not None:
        raise AssertionError(
            f"{type(keeper).__name__} keeps the promise {promise.__name__}, which was expected to fail "
            f"({excuse}); take it out of expected_failures"
        )
