"""Which features matter: how much worse rewards are predicted when the values of one are shuffled.

Half of the decisions of some time, drawn at random, fit a ridge regression of the reward on the features of
the context, of the chosen action and their products, hashed as the service hashes them. In the other half

    score = (E′ − E) / Var(r),

E being the mean squared error of its predictions, and E′ that with the values of one feature exchanged
between decisions at random (Breiman 2001; Fisher, Rudin and Dominici 2019). It is 0 for a feature that the
model makes no use of, and 2 at most if one feature tells all. Two features that tell the same share it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsqr

from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation import LogFileError
from rbmle.features import Hashing
from rbmle.features.reading import with_prefix
from rbmle.service.evaluations.judging import Step, log_of
from rbmle.service.exports.rows import ExportRow
from rbmle.service.log.base import Log
from rbmle.service.log.records import EvaluationAsked, FeatureScore, unpacked

BITS = 14
MOST_DECISIONS = 20_000  # the last ones
MOST_FEATURES = 100  # the most frequent ones
FEWEST = 20  # decisions
DAMPING = 1.0  # √λ
SHUFFLES = 3
CONTEXT, ACTION = "context", "action"  # namespaces of features that have none

Features = dict[str, dict[str, Any]]  # by namespace and name


class Round(NamedTuple):
    """A decision: features of its context and of the action that was chosen, and its reward."""

    context: Features
    action: Features
    id: str
    reward: float


def scores(log: Log, asked: EvaluationAsked, step: Step) -> list[FeatureScore]:
    """Return how much each feature matters, the most important first; raise LogFileError for too few."""
    rounds: list[Round] = []
    for row in log_of(log, asked).rows():
        step()
        if row.final_reward is not None:
            rounds.append(_round(row, row.final_reward))
            del rounds[: -2 * MOST_DECISIONS]
    rounds = rounds[-MOST_DECISIONS:]
    if len(rounds) < FEWEST:
        raise LogFileError(
            f"{len(rounds)} decisions of this time are settled, but {FEWEST} are needed; give another time"
        )
    rounds = _scaled(rounds)
    order = generator(0, Purpose.EVALUATE, "halves").permutation(len(rounds)).tolist()
    fitted, tested = [rounds[at] for at in order[::2]], [rounds[at] for at in order[1::2]]
    theta = lsqr(_matrix(fitted), _rewards(fitted), damp=DAMPING)[0]
    r = _rewards(tested)
    error = _error(theta, tested, r)
    scale = max(float(r.var()), 1e-12)
    found = []
    for place, (namespace, name) in enumerate(_names(tested)):
        errors = []
        for shuffle in range(SHUFFLES):
            step()
            rng = generator(0, Purpose.EVALUATE, f"shuffle-{place}-{shuffle}")
            shuffled = _shuffled(tested, namespace, name, rng)
            errors.append(_error(theta, shuffled, r))
        score = (sum(errors) / SHUFFLES - error) / scale
        found.append(FeatureScore(namespace=namespace, name=name, score=score))
    return sorted(found, key=lambda one: -one.score)


def _round(row: ExportRow, reward: float) -> Round:
    shared = [*unpacked(row.decided.context), *unpacked(row.play.features)]
    chosen = row.decided.actions[row.play.chosen]
    return Round(
        _by_namespace(shared, CONTEXT),
        _by_namespace(unpacked(chosen.features), ACTION),
        chosen.id,
        reward,
    )


def _by_namespace(objects: Sequence[dict[str, Any]], default: str) -> Features:
    """Return features by namespace and name; those without a namespace get the default one."""
    found: Features = {}
    for one in objects:
        for name, value in one.items():
            if isinstance(value, dict):
                found.setdefault(name, {}).update(_flat(value))
            else:
                found.setdefault(default, {})[name] = value
    return found


def _flat(group: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace without dictionaries in it, with the names that a model sees."""
    found: dict[str, Any] = {}
    for name, value in group.items():
        found |= _flat(with_prefix(name, value)) if isinstance(value, dict) else {name: value}
    return found


def _scaled(rounds: Sequence[Round]) -> list[Round]:
    """Return rounds whose numbers have the mean 0 and the deviation 1, as the service scales them."""
    seen: dict[tuple[str, str], list[float]] = {}
    for one in rounds:
        for namespace, name, value in _numbers(one):
            seen.setdefault((namespace, name), []).append(value)
    scales = {key: (float(np.mean(found)), float(np.std(found))) for key, found in seen.items()}

    def scaled(features: Features) -> Features:
        return {
            namespace: {
                name: (value - scales[namespace, name][0]) / (scales[namespace, name][1] or 1.0)
                if _is_number(value)
                else value
                for name, value in values.items()
            }
            for namespace, values in features.items()
        }

    return [one._replace(context=scaled(one.context), action=scaled(one.action)) for one in rounds]


def _numbers(one: Round) -> Iterator[tuple[str, str, float]]:
    for features in (one.context, one.action):
        for namespace, values in features.items():
            for name, value in values.items():
                if _is_number(value):
                    yield namespace, name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names(rounds: Sequence[Round]) -> list[tuple[str, str]]:
    """Return the most frequent features."""
    counts = Counter(
        (namespace, name)
        for one in rounds
        for features in (one.context, one.action)
        for namespace, values in features.items()
        for name in values
    )
    return [name for name, _ in counts.most_common(MOST_FEATURES)]


def _shuffled(
    rounds: Sequence[Round], namespace: str, name: str, rng: np.random.Generator
) -> list[Round]:
    """Return rounds whose values of one feature are exchanged; one that has none gives none."""
    order = rng.permutation(len(rounds)).tolist()
    return [
        one._replace(
            context=_exchanged(one.context, rounds[other].context, namespace, name),
            action=_exchanged(one.action, rounds[other].action, namespace, name),
        )
        for one, other in zip(rounds, order, strict=True)
    ]


def _exchanged(own: Features, other: Features, namespace: str, name: str) -> Features:
    """Return features with one of others."""
    values = {key: value for key, value in own.get(namespace, {}).items() if key != name}
    if name in other.get(namespace, {}):
        values[name] = other[namespace][name]
    return {**own, namespace: values}


def _error(
    theta: Float[np.ndarray, " slots"], rounds: Sequence[Round], r: Float[np.ndarray, " rounds"]
) -> float:
    return float(((r - _matrix(rounds) @ theta) ** 2).mean())


def _rewards(rounds: Sequence[Round]) -> Float[np.ndarray, " rounds"]:
    return np.array([one.reward for one in rounds])


def _matrix(rounds: Sequence[Round]) -> csr_matrix:
    """Return features and their products as hashed rows."""
    hashing = Hashing(bits=BITS)
    pairs = [([one.context], [one.action]) for one in rounds]
    _, lengths, _, indices, values = hashing.rows(pairs, [one.id for one in rounds]).rows
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((values, indices, ends), shape=(len(rounds), hashing.size))
