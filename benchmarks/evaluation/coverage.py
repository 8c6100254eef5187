"""`python -m benchmarks.evaluation.coverage`: how often intervals hold, on logs whose truth is known.

A log has three arms, of which the logging policy plays each with its own probability, by a context of two
kinds; the judged policy plays the best arm of each kind with probability 0.8. Rewards are clicks. Logs are
drawn as arrays, without files, so that many can be.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

from rbmle.evaluation.estimators import ESTIMATORS, Bounds, Judged, OfferedArms
from rbmle.evaluation.intervals import bernstein, bootstrap, normal
from rbmle.evaluation.sequences import SEQUENCES, ValueSequence
from rbmle.evaluation.sums import RatioSums

MEANS = np.array([[0.1, 0.3, 0.2], [0.4, 0.1, 0.2]])  # of each kind of context
LOGGING = np.array([[0.6, 0.1, 0.3], [0.2, 0.6, 0.2]])
JUDGED = np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])
TRUTH = float((JUDGED * MEANS).sum(axis=1).mean())
BOUNDS = Bounds(low=0.0, high=1.0, weight=float((JUDGED / LOGGING).max()), clip=10.0)
MODEL = 0.9 * MEANS + 0.02  # q̂, which is a little wrong
DAYS = 30


def drawn(n: int, rng: np.random.Generator) -> Judged:
    """Return a log of n rounds."""
    kinds = rng.integers(2, size=n)
    arms = (LOGGING[kinds].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    weights = JUDGED[kinds, arms] / LOGGING[kinds, arms]
    chances = JUDGED[kinds]
    offered = OfferedArms(
        sizes=np.full(n, 3),
        at=3 * np.arange(n) + arms,
        chances=chances.ravel(),
        falls=(chances / LOGGING[kinds] - chances).ravel(),
        predictions=MODEL[kinds].ravel(),
    )
    return Judged(
        rewards=(rng.random(n) < MEANS[kinds, arms]).astype(float),
        weights=weights,
        predicted=MODEL[kinds, arms],
        expected=(JUDGED * MODEL).sum(axis=1)[kinds],
        accepted=rng.random(n) * BOUNDS.weight < weights,
        offered=offered,
    )


def part(judged: Judged, first: int, last: int) -> Judged:
    """Return the rounds from the first to before the last."""
    rewards, weights, predicted, expected, accepted, offered = judged
    assert offered is not None
    here, arms = slice(first, last), slice(3 * first, 3 * last)
    return Judged(
        rewards=rewards[here],
        weights=weights[here],
        predicted=predicted[here],
        expected=expected[here],
        accepted=accepted[here],
        offered=OfferedArms(
            sizes=offered.sizes[first:last],
            at=offered.at[first:last] - 3 * first,
            chances=offered.chances[arms],
            falls=offered.falls[arms],
            predictions=offered.predictions[arms],
        ),
    )


def interval(kind: str, name: str, judged: Judged) -> tuple[float, float]:
    """Return an interval at 95 %."""
    sums = RatioSums()
    sums.add(*ESTIMATORS[name].terms(judged, BOUNDS))
    if kind == "bernstein":
        return bernstein(sums, 0.95, ESTIMATORS[name].spread(BOUNDS), 0.0, 1.0)
    found = bootstrap(sums, 0.95, 0) if kind == "bootstrap" else normal(sums, 0.95)
    assert found is not None
    return found


def coverage(kind: str, name: str, logs: int, n: int) -> float:
    """Return in which part of the logs the truth is in the interval."""
    held = 0
    for seed in range(logs):
        low, high = interval(kind, name, drawn(n, np.random.default_rng(seed)))
        held += low <= TRUTH <= high
    return held / logs


def uniform_coverage(name: str, logs: int, n: int) -> float:
    """Return in which part of the logs a sequence has the truth at every time; it is looked at often."""
    looks = np.unique(np.geomspace(1, n, 40).astype(int))
    held = 0
    for seed in range(logs):
        judged = drawn(n, np.random.default_rng(seed))
        sequence = ValueSequence(name, 0.0, 1.0)
        held += _always(partial(_taken, sequence), judged, looks)
    return held / logs


def peeking(logs: int, n: int) -> dict[str, float]:
    """Return in which part of the logs one of 30 daily looks says what is not true: a z-test, and ours."""
    wrong = {"z-test": 0, "sequence": 0}
    looks = np.linspace(n / DAYS, n, DAYS).astype(int)
    for seed in range(logs):
        judged = drawn(n, np.random.default_rng(seed))
        sums, sequence = RatioSums(), ValueSequence("ips", 0.0, 1.0)
        wrong["z-test"] += not _always(partial(_tested, sums), judged, looks)
        wrong["sequence"] += not _always(partial(_taken, sequence), judged, looks)
    return {name: count / logs for name, count in wrong.items()}


def _taken(sequence: ValueSequence, some: Judged) -> tuple[float, float]:
    sequence.add(some)
    return sequence.interval(0.95) or (0.0, 1.0)


def _tested(sums: RatioSums, some: Judged) -> tuple[float, float]:
    sums.add(*ESTIMATORS["ips"].terms(some, BOUNDS))
    return normal(sums, 0.95) or (0.0, 1.0)


def _always(
    look: Callable[[Judged], tuple[float, float]], judged: Judged, looks: np.ndarray
) -> bool:
    """Return whether the truth is in the interval at all looks."""
    for first, last in zip([0, *looks[:-1]], looks, strict=True):
        low, high = look(part(judged, int(first), int(last)))
        if not low <= TRUTH <= high:
            return False
    return True


def errors(name: str, logs: int, n: int) -> tuple[float, float]:
    """Return the bias and the standard deviation of an estimator."""
    values = []
    for seed in range(logs):
        sums = RatioSums()
        sums.add(*ESTIMATORS[name].terms(drawn(n, np.random.default_rng(seed)), BOUNDS))
        values.append(sums.value or 0.0)
    return float(np.mean(values)) - TRUTH, float(np.std(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=1_000)
    given = parser.parse_args()
    print(
        f"{given.logs} logs of {given.rounds} rounds; intervals of 95 %; the truth is {TRUTH:.4f}"
    )
    for name in ("replay", "ips", "snips", "dr"):
        row = [
            f"{kind} {100 * coverage(kind, name, given.logs, given.rounds):.1f} %"
            for kind in ("bootstrap", "bernstein", "normal")
        ]
        print(f"  {name:7} " + ", ".join(row))
    for name in SEQUENCES:
        share = uniform_coverage(name, given.logs, 5 * given.rounds)
        print(f"  {name:7} sequence, at every time at once: {100 * share:.1f} %")
    for name, share in peeking(given.logs, 3 * given.rounds).items():
        print(f"  {DAYS} daily looks, {name}: wrong in {100 * share:.1f} % of the logs")
    for n in (250, 1_000, 4_000):
        told = [
            f"{name} {b:+.4f} ± {s:.4f}"
            for name in ESTIMATORS
            for b, s in [errors(name, given.logs, n)]
        ]
        print(f"  bias and deviation with {n} rounds: " + ", ".join(told))


if __name__ == "__main__":
    main()
