"""Explain a decision: the estimate of each arm, what exploration adds, and which features matter."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import Float

from rbmle.core.diagnosis import expected_reward
from rbmle.core.encoding import Names, Places, ScalesContexts
from rbmle.core.policy import Policy, Predicts, has
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import ArmId, Contexts, Encoding, Indices, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rbmle.core.bandit import Bandit


class _IndexInRewards(Protocol):
    """A policy whose index is in other units than rewards, and which can convert it."""

    def index_in_rewards(self, state: Any, index: Indices) -> Indices:
        """Return an index in the units of rewards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEffect:
    """By how much the estimate of an arm would change without a feature."""

    name: str
    effect: float  # the estimate minus the estimate without the feature


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmExplanation:
    """Why an arm has its index."""

    arm: ArmId
    index: float  # in the units of rewards; the largest is played, unless the bandit draws an arm
    estimate: float | None  # without exploration; None: the policy has no model
    bonus: float | None  # index − estimate: what exploration adds
    expected_reward: (
        float | None
    )  # b′ of the estimate; the estimate itself for a Gaussian likelihood
    features: tuple[FeatureEffect, ...]  # the largest effects first


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a bandit prefers an arm in a context; print it, or read `arms`, the best first."""

    policy: str
    arms: tuple[ArmExplanation, ...]

    @property
    def best(self) -> ArmExplanation:
        """Return the arm with the largest index."""
        return self.arms[0]

    def __str__(self) -> str:
        width = max(5, *(len(str(row.arm)) for row in self.arms))
        lines = [
            f"{'arm':<{width}}  {'estimate':>9} {'bonus':>9} {'index':>9}  features that matter"
        ]
        for row in self.arms:
            effects = ", ".join(f"{feature.name} {feature.effect:+.3g}" for feature in row.features)
            numbers = " ".join(_format_number(x) for x in (row.estimate, row.bonus, row.index))
            lines.append(f"{row.arm!s:<{width}}  {numbers}  {effects}".rstrip())
        return "\n".join(lines)


def explain(bandit: "Bandit", x: Any, eligible: "Sequence[ArmId] | None", top: int) -> Explanation:
    """Return why a bandit prefers an arm; nothing is learned, and no decision is counted."""
    policy, learner = bandit.policy, bandit.learner
    with learner.reading() as learned:
        ids, contexts = bandit._offers.of_round(x, eligible, learned.arms)
        seen = learner.scale(contexts, learned)
        rng = generator(bandit.seed, Purpose.CHOOSE, learned.round)
        index = np.asarray(policy.index(learned.state, seen, rng), float)
        if has(policy, _IndexInRewards):
            index = policy.index_in_rewards(learned.state, index)
        value = _estimator(policy, learned.state)
        estimates = None if value is None else value(seen)
        effects: list[tuple[FeatureEffect, ...]] = [()] * len(ids)
        if value is not None and estimates is not None and top > 0:
            if isinstance(bandit.encoder, Places | Names | ScalesContexts):
                names = _names(bandit.encoder)
                effects = [
                    _largest(zip(*_without_entries(seen, arm, names, value), strict=True), top)
                    for arm in range(len(ids))
                ]
            elif bandit.encoding is Encoding.DISJOINT or isinstance(x, tuple | list):

                def estimate(changed: Any) -> Float[np.ndarray, " arms"]:
                    _, others = bandit._offers.of_round(changed, ids, learned.arms)
                    assert value is not None  # checked above
                    return value(learner.scale(others, learned))

                effects = _without_names(x, len(ids), estimates, estimate, top)
        expected = expected_reward(policy, learned.state)
        rewards = None if expected is None else [expected(seen.row(i)) for i in range(len(ids))]
    arms = [
        ArmExplanation(
            arm=id,
            index=float(index[place]),
            estimate=None if estimates is None else float(estimates[place]),
            bonus=None if estimates is None else float(index[place] - estimates[place]),
            expected_reward=None if rewards is None else rewards[place],
            features=effects[place],
        )
        for place, id in enumerate(ids)
    ]
    arms.sort(key=lambda arm: -arm.index)
    return Explanation(policy=type(policy).__name__, arms=tuple(arms))


def _estimator(
    policy: Policy[Any], state: Any
) -> Callable[[Contexts], Float[np.ndarray, " arms"]] | None:
    """Return the estimates in the units of the policy's index; None if it has no model."""
    expected = expected_reward(policy, state)
    if expected is None or not has(policy, Predicts):
        return None
    if getattr(policy, "index_is_reward", False):
        return lambda seen: np.array([expected(seen.row(i)) for i in range(len(seen))])
    return lambda seen: np.asarray(policy.predict(state, seen), float)


def _names(encoder: Any) -> list[str]:
    """Return the names of features that are known by place or by name."""
    plain = getattr(encoder, "of", encoder)
    if isinstance(plain, Names):
        return list(plain.names)
    return [f"x[{place}]" for place in range(plain.size)]


def _without_entries(
    seen: Contexts,
    arm: int,
    names: list[str],
    value: Callable[[Contexts], Float[np.ndarray, " arms"]],
) -> tuple[list[str], Float[np.ndarray, " features"]]:
    """Return the features of an arm that are not 0, and by how much each raises its estimate."""
    context = seen.row(arm)
    _, _, (block,), indices, values = context.rows
    kept = np.flatnonzero((values != 0) & (indices < len(names)))  # beyond are added constants
    n, size = len(kept), len(values)
    if n == 0:
        return [], np.zeros(0)
    changed = np.tile(values, (n, 1))
    changed[np.arange(n), kept] = 0.0
    rows = Rows(
        np.arange(n) * size,
        np.full(n, size),
        np.full(n, block),
        np.tile(indices, n),
        changed.reshape(-1),
    )
    without = value(Contexts(rows=rows, features=seen.features))
    return [names[place] for place in indices[kept]], value(context)[0] - without


def _without_names(
    x: Any,
    arms: int,
    estimates: Float[np.ndarray, " arms"],
    estimate: Callable[[Any], Float[np.ndarray, " arms"]],
    top: int,
) -> list[tuple[FeatureEffect, ...]]:
    """Return the largest effects of each arm, for features in dictionaries."""
    effects: list[list[tuple[str, float]]] = [[] for _ in range(arms)]
    for name, changed, arm in _changes(x):
        for place, effect in enumerate((estimates - estimate(changed)).tolist()):
            if (arm is None or arm == place) and effect != 0:
                effects[place].append((name, effect))
    return [_largest(of_arm, top) for of_arm in effects]


def _changes(x: Any) -> Iterator[tuple[str, Any, int | None]]:
    """Yield each feature, the features without it, and the arm that it belongs to (None: all arms)."""
    if isinstance(x, tuple):
        shared, per_arm = x
        for name, changed in _removals(shared):
            yield name, (changed, per_arm), None
        for name, changed, arm in _changes(list(per_arm)):
            yield name, (shared, changed), arm
    elif isinstance(x, list):
        for arm, features in enumerate(x):
            for name, changed in _removals(features):
                yield name, [*x[:arm], changed, *x[arm + 1 :]], arm
    else:
        for name, changed in _removals(x):
            yield name, changed, None


def _removals(features: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each feature of a dictionary as name=value, with the dictionary without it."""
    if not isinstance(features, dict):
        return
    for name, value in features.items():
        if isinstance(value, dict):
            for inner, changed in _removals(value, f"{prefix}{name}."):
                yield inner, {**features, name: changed}
        else:
            rest = copy(features)
            del rest[name]
            yield f"{prefix}{name}={value}", rest


def _largest(effects: Any, top: int) -> tuple[FeatureEffect, ...]:
    """Return the effects that are largest in size."""
    ordered = sorted(effects, key=lambda named: -abs(named[1]))[:top]
    return tuple(FeatureEffect(name=name, effect=float(effect)) for name, effect in ordered)


def _format_number(x: float | None) -> str:
    return f"{'–' if x is None else f'{x:.4f}':>9}"
