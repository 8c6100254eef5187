"""Learners of unknown transitions in rivers, a random MDP and a grid: who plays, where, and the runs."""

import time
from dataclasses import dataclass
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
    DASH_DOT_DOT,
    DOTS,
    GREEN,
    GREY,
    LONG,
    ORANGE,
    PURPLE,
    SHORT,
    VERMILION,
    Style,
)
from rbmle.studies.measurements import JSONRecord

LENGTHS = (6, 9, 12, 16, 20)  # states of rivers
RIVERS = tuple(f"RiverSwim, {n} states" for n in LENGTHS)
POINTS = 60  # of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A learner with its name and its line."""

    title: str
    learner: Learner[Any]
    style: Style


ENTRANTS = (
    Entrant(
        title="RBMLE",
        learner=TabularRBMLE(),
        style=Style(colour=VERMILION, width=2.6),
    ),
    Entrant(
        title="RBMLE, unscaled",
        learner=TabularRBMLE(bias=0.3, is_scaled=False),
        style=Style(colour=PURPLE, dashes=DASH_DOT_DOT, width=1.8),
    ),
    Entrant(title="PSRL", learner=PSRL(), style=Style(colour=BLUE, dashes=SHORT, width=1.8)),
    Entrant(title="UCRL2", learner=UCRL2(), style=Style(colour=GREEN, dashes=DASH_DOT, width=1.8)),
    Entrant(title="KL-UCRL", learner=KLUCRL(), style=Style(colour=ORANGE, dashes=LONG, width=1.8)),
    Entrant(
        title="certainty equivalence",
        learner=TabularCE(),
        style=Style(colour=GREY, dashes=DOTS, width=1.8),
    ),
)


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
    runs = [simulate(mdp, learner, times.tolist(), seed) for seed in range(seeds)]
    return {
        "times": times.tolist(),
        "regrets": [run.regrets.tolist() for run in runs],
        "cpu_seconds": time.process_time() - begun,
    }
