"""A news page has a log of what it showed and what was clicked: which policy should choose from now on?

The log is made here, so that the example runs alone: readers of three kinds, six articles, of which the old
page showed mostly the newest. Replace `old_page` by `open_log("your.parquet")`, or by the folder of a service.
"""

import json

import numpy as np

from rbmle import Bandit, Hashing
from rbmle.evaluation import TableLog, evaluate, warm_start

READERS = ("sport", "politics", "science")
ARTICLES = [
    {"id": f"{topic}-{n}", "features": {"topic": topic, "words": 200 + 400 * n}}
    for topic in READERS
    for n in range(2)
]

# A network for features that are hashed, with the settings of the decision service.
HASHED = (
    "neural-rbmle-pc:model.network=Network(width=32,fan_in=4096)"
    ":model.training=Replay(steps=20,rate=0.02,average=0)"
)


def clicks(reader: str, article: dict[str, object]) -> float:
    """Return the chance of a click: readers like their own topic."""
    return 0.35 if str(article["id"]).startswith(reader) else 0.05


def old_page(rounds: int, seed: int) -> TableLog:
    """Return the log of a page that shows the first article half of the time, and any other else."""
    rng = np.random.default_rng(seed)
    chances = np.array([0.5, *[0.1] * (len(ARTICLES) - 1)])
    readers = rng.choice(READERS, size=rounds)
    shown = rng.choice(len(ARTICLES), size=rounds, p=chances)
    paid = [
        float(rng.random() < clicks(reader, ARTICLES[k]))
        for reader, k in zip(readers, shown, strict=True)
    ]
    return TableLog(
        {
            "context": [json.dumps({"reader": str(reader)}) for reader in readers],
            "actions": [json.dumps(ARTICLES)] * rounds,
            "arm": [ARTICLES[k]["id"] for k in shown],
            "propensity": chances[shown],
            "reward": paid,
        }
    )


def main() -> None:
    """Judge three policies on the log, and let the best of them begin warm."""
    log = old_page(3_000, seed=0)
    policies = {"uniform": "uniform", "lin-ucb": "lin-ucb", "neural-rbmle-pc": HASHED}
    found = evaluate(log, policies, estimators="snips,dr", frozen=0.5, floor=0.1)
    print(f"The old page earned {found.mean:.3f} clicks a round.")
    for one in found.estimates:
        print(f"{one.policy:16} {one.estimator:6} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]")
    values = {one.policy: one.value or 0.0 for one in found.estimates if one.estimator == "dr"}
    best = max(values, key=lambda name: values[name])

    bandit = Bandit(
        policies[best], features=Hashing(bits=10), encoding="per-arm", floor=0.05, seed=0
    )
    rounds = warm_start(bandit, log)
    own = [article["features"] for article in ARTICLES]
    ids = [str(article["id"]) for article in ARTICLES]
    decision = bandit.decide(({"reader": "science"}, own), eligible=ids)
    print(f"{best} has learned {rounds:,} rounds, and shows a reader of science {decision.arm}.")


if __name__ == "__main__":
    main()
