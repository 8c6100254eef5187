"""From f to expected rewards, of many contexts at once."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import call_scalar, kernel


@kernel
def expectations(f: Float[np.ndarray, " n"], mean: int, expected: Float[np.ndarray, " n"]) -> None:
    """Write b′(f_i) for every context."""
    for i in range(f.shape[0]):
        expected[i] = call_scalar(mean, f[i])
