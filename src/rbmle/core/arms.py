"""Arms by the ids their user gave them; each keeps its block for as long as the bandit lives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbmle.core.checks import check_arm_id, listed, whole_number
from rbmle.core.errors import ArmError, SettingError
from rbmle.core.types import ArmId


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """Ids in the order of their blocks, and those of them that are retired."""

    ids: tuple[ArmId, ...]
    retired: frozenset[ArmId] = frozenset()
    _blocks: dict[ArmId, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ArmError for an id that is listed twice."""
        blocks: dict[ArmId, int] = {}
        for id in self.ids:
            check_arm_id(id)
            if id in blocks:
                raise ArmError(f"arm {id!r} is listed twice; each arm needs an id of its own")
            blocks[id] = len(blocks)
        object.__setattr__(self, "_blocks", blocks)

    @staticmethod
    def of(arms: int | Iterable[ArmId]) -> "Arms":
        """Return arms with the given ids, or n of them with the ids 0 … n − 1."""
        if isinstance(arms, int | float | complex | np.number | np.bool_):
            count = whole_number("arms", arms)
            if count < 1:
                raise SettingError(f"`arms` must be at least 1, got {count}")
            return Arms(ids=tuple(range(count)))
        ids = tuple(_plain(id) for id in listed("arms", arms))
        if not ids:
            raise SettingError("`arms` is empty; a bandit needs at least one arm")
        return Arms(ids=ids)

    @property
    def active(self) -> tuple[ArmId, ...]:
        """Return the arms that may be played."""
        return tuple(id for id in self.ids if id not in self.retired) if self.retired else self.ids

    def block(self, id: ArmId) -> int:
        """Return the block of an arm, retired or not."""
        if type(id) is not str and type(id) is not int:
            check_arm_id(id)
        try:
            return self._blocks[id]
        except KeyError:
            raise ArmError(
                f"there is no arm {id!r}; there are {_some(self.ids)}; add it with add_arm({id!r})"
            ) from None

    def check_active(self, id: ArmId) -> None:
        """Raise ArmError for an arm that does not exist or is retired."""
        self.block(id)
        if id in self.retired:
            raise ArmError(f"arm {id!r} is retired; add_arm({id!r}) brings it back")

    def with_arm(self, id: ArmId) -> "Arms":
        """Return these arms and one more, or with a retired one back in play."""
        id = _plain(id)
        check_arm_id(id)
        if id in self.retired:
            return Arms(ids=self.ids, retired=self.retired - {id})
        if id in self._blocks:
            raise ArmError(
                f"arm {id!r} is known already, and in play; give a new arm an id of its own"
            )
        return Arms(ids=(*self.ids, id), retired=self.retired)

    def without(self, id: ArmId) -> "Arms":
        """Return these arms with one of them retired."""
        self.block(id)
        if id in self.retired:
            raise ArmError(f"arm {id!r} is retired already; add_arm({id!r}) brings it back")
        if len(self.retired) + 1 == len(self.ids):
            raise ArmError(f"arm {id!r} is the last one in play; add another before you retire it")
        return Arms(ids=self.ids, retired=self.retired | {id})


def _plain(id: Any) -> ArmId:
    """Return an id as Python's own string or integer; numpy's equal them, but cannot be saved."""
    if isinstance(id, np.str_):
        return str(id)
    return int(id) if isinstance(id, np.integer) else id


def _some(ids: tuple[ArmId, ...]) -> str:
    """Return the first ids in words."""
    shown = ", ".join(repr(id) for id in ids[:8])
    return shown if len(ids) <= 8 else f"{shown} and {len(ids) - 8} more"
