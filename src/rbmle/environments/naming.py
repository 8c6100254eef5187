"""Problems by name: what is drawn, datasets, and suffixes that alter either."""

from rbmle.environments.altered import ALTERATIONS, Altered
from rbmle.environments.base import Environment
from rbmle.environments.classification import Classification
from rbmle.environments.coins import Coins
from rbmle.environments.everyday import EVERYDAY
from rbmle.environments.noise import BernoulliNoise, GaussianNoise
from rbmle.environments.reward_functions import FUNCTIONS
from rbmle.environments.synthetic import Synthetic

# The name of a synthetic problem on the command line, and in tables.
SYNTHETIC: dict[str, Synthetic] = {
    world.name: world
    for noise in (GaussianNoise(), BernoulliNoise())
    for world in (Synthetic(function=function, noise=noise) for function in FUNCTIONS)
}
COINS: dict[str, Coins] = {
    world.name: world
    for world in (
        Coins(name="coins", chances=(0.45, 0.55), irrelevant=5),
        Coins(name="clicks", chances=(0.05, 0.1), irrelevant=5),
    )
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


def altered(world: Environment, changes: tuple[str, ...]) -> Environment:
    """Return a problem with changes made to it."""
    for change in changes:
        world = Altered(world=world, suffix=f"+{change}", change=ALTERATIONS[change])
    return world


def problem(name: str) -> Environment:
    """Return the problem of a name, such as "coins", "adult", "adult+noise" or "adult+rare+switch"."""
    plain, changes = split(name)
    return altered(DRAWN.get(plain) or Classification(dataset=plain), changes)
