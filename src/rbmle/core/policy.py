"""What a policy promises, and its optional capabilities."""

from functools import cache
from typing import Any, ClassVar, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices, Observation, Probabilities

State = TypeVar("State")
Capability = TypeVar("Capability")
LARGEST_REWARD = 1e9  # with larger ones, networks in single precision diverge


@runtime_checkable
class Policy(Protocol[State]):
    """Hyperparameters and the functions of a fold: a frozen dataclass whose `repr` rebuilds it.

    `index` reads and never learns: asked twice with equal `rng`, it answers twice the same.
    `update` is the only writer of a state, apart from `grow`.

    The protocols below are capabilities. A policy has one by having its member; a bandit asks with
    `has`, and does without where it is missing.
    """

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> State:
        """Return the state before any data; blocks are the arms, or 1 if contexts are per arm."""
        ...

    def index(self, state: State, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm; the largest is played."""
        ...

    def update(self, state: State, seen: Observation, rng: np.random.Generator) -> None:
        """Learn from the context that was played and its reward."""
        ...

    def grow(self, state: State, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks; what was learned stays."""
        ...


class SeparateIndex(Protocol):
    """A policy whose index for an arm depends on that arm's context alone, and on no random numbers.

    It is asked for the arms of many rounds in one call.
    """

    is_separate: ClassVar[bool]

    def index(self, state: Any, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each context."""
        ...


class KnowsProbabilities(Protocol):
    """A policy that plays at random, and knows or estimates with which probabilities."""

    def weigh(
        self, state: Any, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the index, and each arm's probability of being played.

        Probabilities that are not known are counted in `draws` draws of the index; with 0 draws they
        are None, and the largest index is played.
        """
        ...


class IgnoresContexts(Protocol):
    """A policy that learns nothing from contexts, so that its bandit needs none."""

    ignores_contexts: ClassVar[bool]

    def index(self, state: Any, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm, whatever the features are."""
        ...


class Predicts(Protocol):
    """A policy over a model of the reward."""

    def predict(self, state: Any, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        ...


class LimitsRewards(Protocol):
    """A policy whose likelihood excludes some rewards."""

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        ...


class StandardisesRewards(Protocol):
    """A policy that may learn rewards less their mean, in units of their deviation.

    If it does, its choices do not depend on the unit or the offset of rewards.
    """

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        ...


class LearnsBatches(Protocol):
    """A policy that learns many observations at once, and need not fit to each of them."""

    def update_all(self, state: Any, batch: Batch) -> None:
        """Learn a batch, to the bit as if its observations came one by one."""
        ...


class Freezes(Protocol):
    """A policy whose `index` does not read all of its state, or reads parts that never change."""

    def frozen(self, state: Any) -> Any:
        """Return a state with the same index, which stays as it is when the original learns."""
        ...


def has(policy: object, capability: type[Capability]) -> TypeGuard[Capability]:
    """Return whether a policy has a capability; `isinstance` would look again each time, for 20 µs.

    >>> from rbmle import LinUCB, Uniform
    >>> has(LinUCB(), SeparateIndex), has(Uniform(), SeparateIndex)
    (True, False)
    """
    return _has(type(policy), capability)  # type: ignore[arg-type]  # a class is hashable


def limits_of(policy: Policy[Any]) -> tuple[float, float]:
    """Return the smallest and the largest reward that a policy can learn from.

    >>> from rbmle import LinUCB, NeuFastCB
    >>> limits_of(LinUCB()), limits_of(NeuFastCB())
    ((-1000000000.0, 1000000000.0), (0.0, 1.0))
    """
    any_reward = (-LARGEST_REWARD, LARGEST_REWARD)
    low, high = policy.rewards if has(policy, LimitsRewards) else any_reward
    return max(low, -LARGEST_REWARD), min(high, LARGEST_REWARD)


@cache
def _has(kind: type, capability: type) -> bool:
    """Return whether a class has all members of a protocol."""
    members = {*vars(capability), *vars(capability).get("__annotations__", ())}
    return all(hasattr(kind, name) for name in members if name[0] != "_")
