"""Playing a few rounds, so that every kernel of bandits without contexts is compiled."""

from rbmle.classical.kl_ucb import KLUCB
from rbmle.classical.rbmle import RBMLE
from rbmle.policies.warming import play


def warm_up() -> None:
    """Play a few rounds of each policy that has a kernel."""
    play(RBMLE())
    play(KLUCB())
