"""Vowpal Wabbit as a policy: its contextual bandits with action-dependent features.

An arm's features are its context, in the arm's own block. The pmf that Vowpal Wabbit predicts is the
policy's index and its probabilities: arms are drawn by the bandit, and propensities are exact.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Observation, Probabilities, Rows
from rbmle.interop.needs import need
from rbmle.models.history import History, Memory

ALL = Memory()
FIRST_CAPACITY = 64
LEAST = 1e-3  # probability: an observation weighs at most 1,000 times as much as another
SPACE = "x"  # the namespace of all features


@dataclass(kw_only=True)
class VWState:
    """The observations that Vowpal Wabbit learned, in order; a loaded or copied state learns them again.

    Its model file is not enough: predicting changes the file, and a loaded `--cover` continues differently.
    """

    history: History
    arms: Int[np.ndarray, " slots"]  # how many there were when an observation was learned
    chances: Float[np.ndarray, " slots"]  # of the arm that was played

    def __post_init__(self) -> None:
        self.workspace: Any = None
        self.lock = threading.Lock()  # a workspace is for one thread at a time

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # it is this class's own


@dataclass(frozen=True, slots=True, kw_only=True)
class VowpalWabbit(ABC):
    """The pmf of an explorer of Vowpal Wabbit, over linear models of costs."""

    interactions: Literal["none", "quadratic"] = "none"  # quadratic: all products of two features
    bits: int = 18  # of the table of weights; Vowpal Wabbit's own default
    lowest: float = 0.0  # reward; explorers by regression need the range of costs
    highest: float = 1.0

    def __post_init__(self) -> None:
        need("vowpalwabbit", "vw", type(self).__name__)
        if not self.lowest < self.highest:
            raise SettingError(
                f"`lowest` must be less than `highest`, got {self.lowest} and {self.highest}"
            )
        if self.interactions not in ("none", "quadratic"):
            raise SettingError(
                f"`interactions` must be 'none' or 'quadratic', got {self.interactions!r}"
            )

    @property
    @abstractmethod
    def explorer(self) -> str:
        """Return the options of the explorer."""

    @property
    def rewards(self) -> tuple[float, float]:
        return self.lowest, self.highest

    @property
    def options(self) -> str:
        """All options; a cost is −reward, so that untried arms have the prediction 0."""
        products = f" -q {SPACE}{SPACE}" if self.interactions == "quadratic" else ""
        return f"--cb_explore_adf {self.explorer}{products} -b {self.bits} --quiet"

    @property
    def cost_range(self) -> str:
        return f"--cb_min_cost {-self.highest} --cb_max_cost {-self.lowest}"

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> VWState:
        slots = FIRST_CAPACITY
        return VWState(
            history=History.empty(blocks, "float64"),
            arms=np.zeros(slots, np.int64),
            chances=np.zeros(slots),
        )

    def index(self, state: VWState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        with state.lock:
            pmf = np.array(self._live(state, contexts.features).predict(lines(contexts)))
        return pmf / pmf.sum()

    def weigh(
        self, state: VWState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the pmf twice: it is the index, and the probabilities."""
        pmf = self.index(state, contexts, rng)
        return pmf, pmf

    def update(self, state: VWState, seen: Observation, rng: np.random.Generator) -> None:
        """Learn from one observation.

        The played arm's probability is computed again. It is the propensity of the decision if nothing was
        learned in between, and all arms were eligible.
        """
        block, arms = int(seen.context.rows.blocks[0]), len(state.history.member_starts)
        texts = lines(everywhere(seen.context, arms))
        with state.lock:
            live = self._live(state, seen.context.features)
            pmf = np.array(live.predict(texts))
            chance = max(float(pmf[block] / pmf.sum()), LEAST)  # if it would never play the arm
            live.learn(add_label(texts, block, seen.reward, chance))
            at = state.history.seen
            if at == len(state.chances):
                state.chances, state.arms = _double(state.chances), _double(state.arms)
            state.chances[at], state.arms[at] = chance, arms
            state.history.append(seen, ALL, rng)

    def grow(self, state: VWState, blocks: int, rng: np.random.Generator) -> None:
        state.history.grow(blocks)

    def _live(self, state: VWState, features: int) -> Any:
        """Return the workspace, which has learned all observations of the state; the lock is held."""
        if state.workspace is None:
            from vowpalwabbit import Workspace  # it takes a moment to import

            state.workspace = Workspace(self.options)
            for example in examples(state, features):
                state.workspace.learn(example)
        return state.workspace


def examples(state: VWState, features: int) -> Iterator[list[str]]:
    """Yield the examples that were learned, in order."""
    starts, lengths, blocks, indices, values = state.history.rows
    for at in range(state.history.count):
        only = slice(at, at + 1)
        row = Rows(starts[only], lengths[only], blocks[only], indices, values)
        context = Contexts(rows=row, features=features)
        reward, chance = float(state.history.rewards[at]), float(state.chances[at])
        texts = lines(everywhere(context, int(state.arms[at])))
        yield add_label(texts, int(blocks[at]), reward, chance)


def add_label(texts: list[str], place: int, reward: float, chance: float) -> list[str]:
    """Return the lines of all arms, the played one with its cost and probability."""
    label = f"{place}:{-reward!r}:{chance!r} "
    return [label + text if at == place else text for at, text in enumerate(texts)]


def everywhere(context: Contexts, arms: int) -> Contexts:
    """Return one context in the blocks of all arms; one block if arms have their own rows."""
    (start,), (length,), _, indices, values = context.rows
    rows = Rows(np.full(arms, start), np.full(arms, length), np.arange(arms), indices, values)
    return Contexts(rows=rows, features=context.features)


def lines(contexts: Contexts) -> list[str]:
    """Return a line for each arm; the name of a feature is its number among those of all blocks."""
    starts, lengths, blocks, indices, values = contexts.rows
    texts: dict[tuple[int, int], tuple[np.ndarray, list[str]]] = {}
    formatted = []
    spans = zip(starts.tolist(), lengths.tolist(), blocks.tolist(), strict=True)
    for start, length, block in spans:
        entries = slice(start, start + length)
        if (start, length) not in texts:
            numbers = [f":{value!r}" for value in values[entries].tolist()]
            texts[start, length] = indices[entries].astype(np.int64), numbers
        places, numbers = texts[start, length]
        names = (places + block * contexts.features).tolist()
        named = [f"{name}{number}" for name, number in zip(names, numbers, strict=True)]
        formatted.append(f"|{SPACE} {' '.join(named)}")
    return formatted


def _double(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareCB(VowpalWabbit):
    """pmf by inverse gap weighting (Foster, Rakhlin 2020, "Beyond UCB")."""

    scale: float = 10.0  # γ = scale · t^exponent
    exponent: float = 0.5

    @property
    def explorer(self) -> str:
        gamma = f"--gamma_scale {self.scale} --gamma_exponent {self.exponent}"
        return f"--squarecb {gamma} {self.cost_range}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegCB(VowpalWabbit):
    """pmf on the arm of the smallest cost that a model may have (Foster et al. 2018, "Practical CB")."""

    mellowness: float = 0.1  # c₀, which keeps how bad a model may fit

    @property
    def explorer(self) -> str:
        return f"--regcbopt --mellowness {self.mellowness} {self.cost_range}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover(VowpalWabbit):
    """pmf of a cover of policies (Agarwal et al. 2014, "Taming the monster"), without uniform play."""

    policies: int = 16
    diversity: float = 0.1  # ψ

    @property
    def explorer(self) -> str:
        return f"--cover {self.policies} --psi {self.diversity} --nounif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Epsilon(VowpalWabbit):
    """pmf of 1 − ε on the arm of the smallest cost, plus ε/n on each."""

    epsilon: float = 0.05  # ε

    @property
    def explorer(self) -> str:
        return f"--epsilon {self.epsilon}"


@dataclass(frozen=True, slots=True, kw_only=True)
class First(VowpalWabbit):
    """pmf of uniform play at first, then on the arm of the smallest cost."""

    rounds: int = 100  # of uniform play

    @property
    def explorer(self) -> str:
        return f"--first {self.rounds}"
