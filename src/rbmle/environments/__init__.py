"""Problems: labelled data, synthetic and everyday ones, by name, with suffixes that alter the rewards."""

from typing import Any

from rbmle.environments.altered import ALTERATIONS, Altered, Change
from rbmle.environments.base import Environment, Round, notice_of
from rbmle.environments.classification import Classification
from rbmle.environments.everyday import EVERYDAY, FAMILIES, Everyday, gap_closed
from rbmle.environments.everyday_families import DEVELOPMENT, REPORTED
from rbmle.environments.synthetic import FUNCTIONS, BernoulliNoise, Coins, GaussianNoise, Synthetic

__all__ = [
    "ALTERATIONS",
    "COINS",
    "DEVELOPMENT",
    "DRAWN",
    "EVERYDAY",
    "FAMILIES",
    "FUNCTIONS",
    "REPORTED",
    "SYNTHETIC",
    "Altered",
    "BernoulliNoise",
    "Change",
    "Classification",
    "Coins",
    "Environment",
    "Everyday",
    "GaussianNoise",
    "Round",
    "Synthetic",
    "alter",
    "gap_closed",
    "notice_of",
    "problem",
    "split",
]

# The name of a synthetic problem on the command line, and in tables.
SYNTHETIC: dict[str, Synthetic] = {
    world.name: world
    for noise in (GaussianNoise(), BernoulliNoise())
    for world in (Synthetic(function=function, noise=noise) for function in FUNCTIONS)
}
COINS: dict[str, Coins] = {
    "coins": Coins(name="coins", chances=(0.45, 0.55), irrelevant=5),
    "clicks": Coins(name="clicks", chances=(0.05, 0.1), irrelevant=5),
}
DRAWN: dict[str, Environment] = {**SYNTHETIC, **COINS, **EVERYDAY}


def split(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a problem and the changes that are made to it, in their order.

    >>> split("my+data.csv+rare+switch")
    ('my+data.csv', ('rare', 'switch'))
    """
    plain, _, last = name.rpartition("+")
    if not plain or last not in ALTERATIONS:
        return name, ()
    name, changes = split(plain)
    return name, (*changes, last)


def alter(world: Environment, changes: tuple[str, ...]) -> Environment:
    """Return a problem with changes made to it."""
    for change in changes:
        world = Altered(world=world, suffix=f"+{change}", change=ALTERATIONS[change])
    return world


def problem(name: str, **reading: Any) -> Environment:
    """Return the problem of a name, such as "coins", "adult", "adult+noise" or "adult+rare+switch".

    `reading` are settings of `Classification` that say how a dataset is read; a problem that is drawn has none.
    """
    plain, changes = split(name)
    return alter(DRAWN.get(plain) or Classification(dataset=plain, **reading), changes)
