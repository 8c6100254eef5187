"""Learners of unknown transitions in rivers, a random MDP and a grid: who plays, where, and the runs."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbmle.control import (
    KLUCRL,
    MDP,
    PSRL,
    UCRL2,
    Learner,
    TabularCE,
    TabularRBMLE,
    grid_world,
    random_mdp,
    river_swim,
    simulate,
)
from rbmle.experiments.styles import (
    BLUE,
    DASH_DOT,
    DOTS,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    SHORT,
    VERMILION,
    Style,
)
from rbmle.studies.measurements import JSONRecord

LENGTHS = (6, 9, 12, 16, 20)  # states of rivers
RIVERS = tuple(f"RiverSwim, {n} states" for n in LENGTHS)
POINTS = 60  # of a line
FIRST_SEED = 200  # of the regrets that are reported
TUNING_SEED, TUNING_SEEDS = 100, 5  # of the regrets by which constants are chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A learner with its name and its line, and what its constant is chosen from."""

    title: str
    learner: Any  # with the constant that was chosen
    style: Style
    constant: str = ""  # the setting that is tuned; empty: none
    values: tuple[float, ...] = ()  # that it is tuned on, as many for each learner

    @property
    def value(self) -> float:
        """Return the constant that was chosen."""
        return float(getattr(self.learner, self.constant))

    def with_constant(self, value: float) -> "Entrant":
        """Return it with another constant."""
        return replace(self, learner=replace(self.learner, **{self.constant: value}))


ENTRANTS = (
    Entrant(
        title="RBMLE",
        learner=TabularRBMLE(bias=1.0),
        style=Style(colour=VERMILION, width=2.6),
        constant="bias",
        values=(0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    ),
    Entrant(
        title="PSRL",
        learner=PSRL(prior=0.1),
        style=Style(colour=BLUE, dashes=SHORT, width=1.8),
        constant="prior",
        values=(2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01),
    ),
    Entrant(
        title="UCRL2",
        learner=UCRL2(width=0.02),
        style=Style(colour=GREEN, dashes=DASH_DOT, width=1.8),
        constant="width",
        values=(1.0, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005),
    ),
    Entrant(
        title="KL-UCRL",
        learner=KLUCRL(width=0.01),
        style=Style(colour=ORANGE, dashes=LONG, width=1.8),
        constant="width",
        values=(1.0, 0.1, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001),
    ),
    Entrant(
        title="UCRL2, as published",
        learner=UCRL2(),
        style=Style(colour=GREEN, dashes=DOTS, width=1.2),
    ),
    Entrant(
        title="KL-UCRL, as published",
        learner=KLUCRL(),
        style=Style(colour=ORANGE, dashes=DOTS, width=1.2),
    ),
    Entrant(
        title="certainty equivalence",
        learner=TabularCE(),
        style=Style(colour=GREY, dashes=DOTS, width=1.8),
    ),
)


def tuning_worlds() -> dict[str, MDP]:
    """Return the MDPs on which constants are chosen, none of which is reported."""
    rivers = {f"RiverSwim, {n} states": river_swim(n) for n in (7, 10, 14, 18)}
    return rivers | {
        "random, 8 states, 2 actions": random_mdp(8, 2, seed=1),
        "random, 12 states, 4 actions": random_mdp(12, 4, seed=2),
        "grid, 3 × 3": grid_world(3),
        "grid, 5 × 5": grid_world(5),
    }


def tuning_regrets(entrant: Entrant, value: float, steps: int) -> JSONRecord:
    """Return the regrets of a learner with one value of its constant, by MDP and seed."""
    learner = entrant.with_constant(value).learner
    seeds = range(TUNING_SEED, TUNING_SEED + TUNING_SEEDS)
    return {
        world: [float(simulate(mdp, learner, [steps], seed).regrets[-1]) for seed in seeds]
        for world, mdp in tuning_worlds().items()
    }


def tuning_score(record: JSONRecord) -> float:
    """Return the geometric mean over MDPs of the mean regret, which counts as 1 below that."""
    means = [max(float(np.mean(regrets)), 1.0) for regrets in record.values()]
    return float(np.exp(np.mean(np.log(means))))


def worlds() -> dict[str, MDP]:
    """Return the MDPs by name: rivers of growing length, a random MDP and a grid."""
    rivers = {name: river_swim(n) for name, n in zip(RIVERS, LENGTHS, strict=True)}
    return rivers | {
        "random, 10 states, 3 actions": random_mdp(10, 3, seed=0),
        "grid, 4 × 4": grid_world(4),
    }


def play(mdp: MDP, learner: Learner[Any], seeds: int, steps: int) -> JSONRecord:
    """Play all seeds, and return their regrets over time."""
    times = np.unique(np.geomspace(10, steps, POINTS).round().astype(np.int64))
    simulate(mdp, learner, [10], seed=0)  # kernels are compiled or loaded before the clock starts
    begun = time.process_time()
    played = range(FIRST_SEED, FIRST_SEED + seeds)
    runs = [simulate(mdp, learner, times.tolist(), seed) for seed in played]
    return {
        "times": times.tolist(),
        "regrets": [run.regrets.tolist() for run in runs],
        "cpu_seconds": time.process_time() - begun,
    }
