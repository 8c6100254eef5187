"""Policies of rbmle beside learners of coba, in one coba.Experiment on three datasets.

    pip install 'rbmle[experiments,coba,vw]'
    python -m benchmarks.coba_side_by_side --rounds 1500 --shuffles 3

Each class of a dataset is an action, and the right one pays 1. All see the same features in the same order.
It prints the mean reward of a round, as a table in Markdown.
"""

import argparse

import coba
import pandas as pd
from coba.pipes import IterableSource

from rbmle.datasets import load
from rbmle.interop import CobaLearner

DATASETS = ("digits", "magic", "shuttle")
LINEAR = [1, "a", "ax"]  # an intercept and a weight of each feature for each action


def learners() -> dict[str, coba.Learner]:
    """Return what is compared, at its defaults and before any data."""
    return {
        "rbmle NeuralRBMLE-GA": CobaLearner("neural-rbmle-ga"),
        "rbmle NeuralRBMLE-PC": CobaLearner("neural-rbmle-pc"),
        "rbmle NeuralUCB": CobaLearner("neural-ucb"),
        "rbmle LinRBMLE": CobaLearner("lin-rbmle"),
        "coba LinUCB": coba.LinUCBLearner(features=LINEAR),
        "coba VW SquareCB": coba.VowpalSquarecbLearner(features=LINEAR),
        "coba VW ε-greedy": coba.VowpalEpsilonLearner(features=LINEAR),
    }


def environments(name: str, rounds: int, shuffles: int) -> coba.Environments:
    """Return a dataset as environments of coba, one for each order of its rows."""
    data = load(name)
    names = [str(label) for label in range(data.classes)]
    labels = [coba.Categorical(names[label], names) for label in data.labels]
    rows = IterableSource(list(zip(data.X.astype(float).tolist(), labels, strict=True)))
    return coba.Environments.from_supervised(rows, label_type="c").shuffle(n=shuffles).take(rounds)


def mean_rewards(name: str, rounds: int, shuffles: int) -> pd.Series:
    """Return the mean reward of each learner on a dataset."""
    compared = learners()
    experiment = coba.Experiment(environments(name, rounds, shuffles), [*compared.values()])
    played = experiment.run(quiet=True).interactions.to_pandas()
    means = played.groupby("learner_id")["reward"].mean()
    return pd.Series(means.to_numpy(float), index=[*compared], name=name)


def table(means: pd.DataFrame) -> str:
    """Return a table in Markdown, the best of each column in bold."""
    lines = [f"| Mean reward | {' | '.join(means.columns)} |", "|---|" + "---:|" * means.shape[1]]
    for learner, row in means.iterrows():
        is_best = row == means.max()
        cells = [f"**{v:.3f}**" if is_best[name] else f"{v:.3f}" for name, v in row.items()]
        lines.append(f"| {learner} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1500, help="of each dataset")
    parser.add_argument("--shuffles", type=int, default=3, help="orders of the rows")
    given = parser.parse_args()
    columns = [mean_rewards(name, given.rounds, given.shuffles) for name in DATASETS]
    print(table(pd.concat(columns, axis=1)))


if __name__ == "__main__":
    main()
