"""The search for a root, on functions whose roots are known."""

import math
from typing import Any

import pytest

from rbmle.engine.compiled import inlined
from rbmle.engine.exponential_family import root


@inlined
def power_less(z: float, given: tuple[float, float]) -> float:
    """Return z^n − c."""
    exponent, target = given
    return z**exponent - target


@pytest.mark.parametrize(
    ("exponent", "target", "far"), [(1.0, 0.3, 1.0), (2.0, 2.0, 2.0), (9.0, 5.0, 40.0)]
)
def test_the_root_of_a_power_is_found_from_either_side(
    exponent: float, target: float, far: float
) -> None:
    given, by_hand = (exponent, target), math.exp(math.log(target) / exponent)
    ends = [(z, z**exponent - target) for z in (0.0, far)]
    for near, other in (ends, ends[::-1]):
        assert _found(given, near, other) == pytest.approx(by_hand, abs=1e-9)


def test_an_end_that_is_the_root_is_returned() -> None:
    assert _found((1.0, 1.0), (0.0, -1.0), (1.0, 0.0)) == 1.0


def _found(given: Any, near: tuple[float, float], far: tuple[float, float]) -> float:
    """Return the root between two points, each with its value."""
    return root(power_less, given, *near, *far, 1e-10)
