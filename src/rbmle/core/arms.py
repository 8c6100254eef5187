"""Arms by the ids their user gave them; each keeps its block for as long as the bandit lives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbmle.core.errors import ArmError, SettingError
from rbmle.core.types import ArmId


@dataclass(slots=True, kw_only=True)
class Arms:
    """Ids in the order of their blocks, and those of them that are retired."""

    ids: list[ArmId]
    retired: set[ArmId] = field(default_factory=set)
    _blocks: dict[ArmId, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ArmError for an id that stands twice."""
        self._blocks = {}
        for id in self.ids:
            self._enter(id)

    @staticmethod
    def of(arms: int | Iterable[ArmId]) -> "Arms":
        """Return arms with the given ids, or n of them with the ids 0 … n − 1."""
        if isinstance(arms, int | np.integer):
            if arms < 1:
                raise SettingError(f"arms={arms} cannot be; a bandit needs at least one arm")
            return Arms(ids=list(range(int(arms))))
        ids = [_plain(id) for id in arms]
        if not ids:
            raise SettingError("arms=[] cannot be; a bandit needs at least one arm")
        return Arms(ids=ids)

    @property
    def active(self) -> list[ArmId]:
        """Return the arms that may be played."""
        return [id for id in self.ids if id not in self.retired] if self.retired else self.ids

    def block(self, id: ArmId) -> int:
        """Return the block of an arm, retired or not."""
        try:
            return self._blocks[id]
        except (KeyError, TypeError):
            raise ArmError(
                f"there is no arm {id!r}; there are {_some(self.ids)}; add it with add_arm({id!r})"
            ) from None

    def add(self, id: ArmId) -> bool:
        """Add an arm, or bring a retired one back; return whether it is new."""
        id = _plain(id)
        if id in self.retired:
            self.retired.remove(id)
            return False
        self._enter(id)
        self.ids.append(id)
        return True

    def retire(self, id: ArmId) -> None:
        """Take an arm out of play."""
        self.block(id)
        if id in self.retired:
            raise ArmError(f"arm {id!r} is retired already; add_arm({id!r}) brings it back")
        if len(self.retired) + 1 == len(self.ids):
            raise ArmError(f"arm {id!r} is the last one in play; add another before you retire it")
        self.retired.add(id)

    def _enter(self, id: ArmId) -> None:
        """Give an id the next block."""
        if isinstance(id, bool) or not isinstance(id, str | int):
            raise ArmError(f"the arm {id!r} is a {type(id).__name__}; ids are strings or integers")
        if id in self._blocks:
            raise ArmError(f"the arm {id!r} stands twice; each arm needs an id of its own")
        self._blocks[id] = len(self._blocks)


def _plain(id: Any) -> ArmId:
    """Return an id as Python's own string or integer; numpy's equal them, but cannot be saved."""
    if isinstance(id, np.str_):
        return str(id)
    return int(id) if isinstance(id, np.integer) else id


def _some(ids: list[ArmId]) -> str:
    """Return the first ids in words."""
    shown = ", ".join(repr(id) for id in ids[:8])
    return shown if len(ids) <= 8 else f"{shown} and {len(ids) - 8} more"
