"""LinUCB of MABWiser as a policy, for comparison."""

import threading
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Observation, rows_at
from rbmle.interop.needs import need
from rbmle.models.history import History, Memory

ALL = Memory()


@dataclass(kw_only=True)
class MABWiserState:
    """The observations that MABWiser learned, in order; a loaded or copied state learns them again."""

    history: History
    features: int

    def __post_init__(self) -> None:
        self.live: Any = None
        self.lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # it is this class's own


@dataclass(frozen=True, slots=True, kw_only=True)
class MABWiserLinUCB:
    """Index θ̂ᵀx + α √(xᵀ A⁻¹ x) of MABWiser's LearningPolicy.LinUCB, a ridge regression for each arm."""

    exploration: float = 1.0  # α
    ridge: float = 1.0  # λ

    def __post_init__(self) -> None:
        need("mabwiser", "mabwiser", type(self).__name__)
        for name, value in (("exploration", self.exploration), ("ridge", self.ridge)):
            if not 0 <= value < float("inf"):
                raise SettingError(f"`{name}` must be a finite number, 0 or more, got {value}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> MABWiserState:
        return MABWiserState(history=History.empty(blocks, "float64"), features=features)

    def index(self, state: MABWiserState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return MABWiser's expectations; before any data it has none, and they are 0."""
        if state.history.count == 0:
            return np.zeros(len(contexts))
        places = contexts.rows.blocks
        is_shared = len(set(contexts.rows.starts.tolist())) == 1
        X = contexts.part(slice(1)).dense() if is_shared else contexts.dense()
        # The bandit refuses indices that are not finite.
        with state.lock, np.errstate(invalid="ignore"):
            expectations = self._live(state).predict_expectations(X)
        by_arm = [expectations] if isinstance(expectations, dict) else expectations
        by_arm = by_arm * len(places) if is_shared else by_arm
        return np.array(
            [of_context[int(place)] for of_context, place in zip(by_arm, places, strict=True)]
        )

    def update(self, state: MABWiserState, seen: Observation, rng: np.random.Generator) -> None:
        with state.lock:
            live = self._live(state)
            _teach(live, seen.context, seen.reward, state.history.count == 0)
            state.history.append(seen, ALL, rng)

    def grow(self, state: MABWiserState, blocks: int, rng: np.random.Generator) -> None:
        with state.lock:
            state.history.grow(blocks)
            state.live = None  # it learns everything again, with more arms

    def _live(self, state: MABWiserState) -> Any:
        """Return MABWiser's bandit, which has learned all observations of the state; the lock is held."""
        if state.live is None:
            from mabwiser.mab import MAB, LearningPolicy  # it takes a moment to import

            arms = list(range(len(state.history.member_starts)))
            kind = LearningPolicy.LinUCB(alpha=self.exploration, l2_lambda=self.ridge)
            state.live = MAB(arms, kind)
            for at in range(state.history.count):
                rows = rows_at(state.history.rows, slice(at, at + 1))
                context = Contexts(rows=rows, features=state.features)
                _teach(state.live, context, float(state.history.rewards[at]), at == 0)
        return state.live


def _teach(live: Any, context: Contexts, reward: float, is_first: bool) -> None:
    learn = live.fit if is_first else live.partial_fit
    learn([int(context.rows.blocks[0])], [reward], context.dense())
