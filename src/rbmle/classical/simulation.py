"""Simulations: a policy without contexts in many runs at once, and its regret over time."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from rbmle.classical.base import ArmPolicy, Arms
from rbmle.classical.instances import Instance
from rbmle.core.randomness import Purpose, generator


def simulate(
    instance: Instance, policy: ArmPolicy, times: Sequence[int], *, runs: int, seed: int = 0
) -> Float[np.ndarray, "runs times"]:
    """Return the regret Σ_t μ* − μ_{a(t)} of each run after each of some numbers of rounds, in order.

    >>> from rbmle.classical import UCB1, BernoulliArms
    >>> simulate(BernoulliArms(means=(0.2, 0.8)), UCB1(), [10, 100], runs=3).shape
    (3, 2)
    """
    if runs < 1:
        raise ValueError(f"`runs` must be 1 or more, got {runs}")
    if list(times) != sorted(times) or (len(times) and times[0] < 0):
        raise ValueError(f"`times` must be 0 or more and in order, got {list(times)}")
    means = np.array(instance.means)
    gaps, each = means.max() - means, np.arange(runs)
    plays, totals = np.zeros((runs, len(means))), np.zeros((runs, len(means)))
    regret, found, t = np.zeros(runs), [], 0
    for end in times:
        while t < end:
            t += 1
            indices = policy.of_arms(plays, totals, t, generator(seed, Purpose.INDEX, t))
            played = largest(indices, generator(seed, Purpose.CHOOSE, t))
            reward = instance.rewards(played, generator(seed, Purpose.ENVIRONMENT, t))
            plays[each, played] += 1
            totals[each, played] += reward
            regret += gaps[played]
        found.append(regret.copy())
    return np.stack(found, axis=1) if found else np.empty((runs, 0))


def largest(indices: Arms, rng: np.random.Generator) -> Int[np.ndarray, " runs"]:
    """Return the arm with the largest index in each run, at random where several have it."""
    best = indices == indices.max(axis=1, keepdims=True)
    return np.where(best, rng.random(indices.shape), -1.0).argmax(axis=1)
