"""The model that decides: a copy of the one that learns."""

from dataclasses import dataclass

from rbmle.core.bandit import Bandit
from rbmle.service.learning.model import Model


@dataclass(frozen=True, slots=True)
class Published:
    """A model that decides: a copy that nobody changes."""

    model: Model
    bandit: Bandit
    seq: int = 0  # the last record that it knows
    time: int = 0  # of that record, in milliseconds
