"""`python -m benchmarks.evaluation.warm_start`: what a log saves a bandit that begins with it.

The log is of uniform play on a dataset that ships; then bandits go on, some that have learned the log and some
that have not. Regret is that of the rounds after the log.
"""

import argparse

import numpy as np

from rbmle import Bandit
from rbmle.environments import Classification


def regret(name: str, world: Classification, logged: int, rounds: int, seed: int) -> float:
    """Return the regret of some rounds, after a log of some others was learned by partial_fit."""
    bandit = Bandit(name, arms=world.arms, features=world.features, seed=seed)
    rng = np.random.default_rng(seed)
    if logged:
        played = rng.integers(world.arms, size=logged)
        past = [world.round(t, seed) for t in range(logged)]
        rewards = [one.rewards[arm] for one, arm in zip(past, played, strict=True)]
        bandit.partial_fit(np.array([one.x for one in past]), played.tolist(), rewards)
    lost = 0.0
    for t in range(world.rows - rounds, world.rows):
        now = world.round(t, seed)
        decision = bandit.decide(now.x)
        arm = int(decision.arm)
        bandit.learn(decision, now.rewards[arm])
        lost += float(now.means.max() - now.means[arm])
    return lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", default="mushroom,magic,shuttle")
    parser.add_argument("--policies", default="neural-rbmle-pc,lin-ucb")
    given = parser.parse_args()
    logs = (0, 500, 2_000)
    print(f"regret of {given.rounds} rounds after a log of {', '.join(map(str, logs))} rounds")
    for dataset in given.datasets.split(","):
        world = Classification(dataset=dataset)
        for name in given.policies.split(","):
            means = [
                np.mean([regret(name, world, n, given.rounds, s) for s in range(given.seeds)])
                for n in logs
            ]
            print(
                f"  {dataset:9} {name:16} " + ", ".join(f"{mean:,.0f}" for mean in means),
                flush=True,
            )


if __name__ == "__main__":
    main()
