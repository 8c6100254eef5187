"""The root of a function of one variable, between two points where its signs differ."""

from collections.abc import Callable
from typing import Any

from rbmle.engine.compiled import inlined


@inlined
def root(
    function: Callable[[float, Any], float],
    given: Any,
    near: float,
    here: float,
    far: float,
    there: float,
    close: float,
) -> float:
    """Return z with function(z, given) = 0, from its values `here` at `near` and `there` at `far`.

    The search is regula falsi, by Dowell and Jarratt (1971): an end that stays counts half, then a quarter, …
    It ends when the two ends are close, relative to z. A short step is not enough: the first ones are short
    where the function is steep at one end and flat at the other.
    """
    z = far
    while abs(far - near) > close * max(abs(z), 1.0) and there != 0.0:
        z = near + (far - near) * here / (here - there)
        value = function(z, given)
        if value * here > 0.0:
            near, here, there = z, value, 0.5 * there
        else:
            far, there, here = z, value, 0.5 * here
    return z
