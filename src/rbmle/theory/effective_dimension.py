"""The effective dimension d̃ of contexts, and the regret bound of the paper's theorems."""

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.numbers import check_positive


def effective_dimension(H: Float[np.ndarray, "n n"], *, ridge: float) -> float:
    """Return d̃ = log det(I + H/λ)/log(1 + TK/λ) for the kernel H of TK contexts.

    >>> round(effective_dimension(np.eye(4), ridge=1.0), 4)  # 4 log 2/log 5
    1.7227
    """
    check_positive("ridge", ridge)
    n = len(H)
    _, log_determinant = np.linalg.slogdet(np.eye(n) + np.asarray(H) / ridge)
    return float(log_determinant / np.log(1 + n / ridge))


def regret_bound(H: Float[np.ndarray, "n n"], *, rounds: int, ridge: float) -> float:
    """Return √T · d̃ · log(1 + TK/λ), the bound of Theorems 1 and 2 up to its constant.

    H is the kernel of the contexts of all arms in all T rounds, n = TK of them.

    >>> round(regret_bound(np.eye(4), rounds=2, ridge=1.0), 4)  # √2 · 4 log 2
    3.921
    """
    n = len(H)
    if rounds < 1 or n % rounds:
        raise SettingError(
            f"{n} contexts cannot be those of {rounds} rounds; give the kernel of the contexts of all "
            "arms in all rounds"
        )
    return float(rounds**0.5 * effective_dimension(H, ridge=ridge) * np.log(1 + n / ridge))
