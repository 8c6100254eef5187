"""Play a few rounds with policies and their variants, so that every kernel they need is compiled."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.encoding import Places, per_arm
from rbmle.core.policy import Policy
from rbmle.features import Hashing
from rbmle.features.running import Running
from rbmle.likelihoods import LIKELIHOODS
from rbmle.models.arm_ascent import FEW
from rbmle.models.linear import GLM, Ridge
from rbmle.models.network import Network
from rbmle.models.precision import Exact
from rbmle.models.regression import FullBatch, Regression
from rbmle.policies.settings import has_setting

ARMS, FEATURES, WIDTH = 2, 2, 2
MANY = 2 * FEW  # arms, of which GA ascends those that may win
ROUNDS = 20  # enough that the exact Z⁻¹ of a network of this size becomes a matrix
STEPS = 1


def variants(policy: Any) -> Iterator[Policy[Any]]:
    """Yield a policy, and small ones like it with each setting that needs kernels of its own."""
    yield policy
    model = getattr(policy, "model", None)
    if isinstance(model, Ridge | GLM):
        yield replace(policy, model=replace(model, precision="diagonal"))
    if not isinstance(model, Regression):
        return
    for likelihood in LIKELIHOODS:
        yield replace(policy, model=replace(model, likelihood=likelihood()))
    dtypes: tuple[Literal["float32", "float64"], ...] = ("float32", "float64")
    for dtype, training in product(dtypes, (model.training, FullBatch(steps=STEPS))):
        network = Network(width=WIDTH, dtype=dtype)
        small = replace(policy, model=replace(model, network=network, training=training))
        yield small
        if has_setting(policy, "precision"):
            yield replace(small, precision=Exact())


def play(policy: Policy[Any]) -> None:
    """Decide and learn for a few rounds."""
    bandit = Bandit(policy, arms=ARMS, features=FEATURES, seed=0)
    for _ in range(ROUNDS):
        bandit.learn(bandit.decide(np.ones(FEATURES)), reward=1.0)
    many = Bandit(policy, features=FEATURES, encoding="per-arm")
    many.learn(many.decide(np.eye(MANY, FEATURES)), reward=1.0)
    many.decide(np.eye(MANY, FEATURES))


def encode() -> None:
    """Hash a dictionary of features, and scale numbers."""
    Hashing().row({"name": "value"}, None)
    numbers = Running(of=Places(size=FEATURES))
    numbers.scale(per_arm(np.eye(FEATURES), FEATURES), numbers.start(), is_learning=True)
