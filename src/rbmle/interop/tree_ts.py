"""TreeTS: randomised trees of scikit-learn, refitted at growing intervals, with bootstrap draws.

After TreeBootstrap (Elmachtoub, McNellis, Oh, Petrik 2017, "A practical method for solving contextual
bandit problems using decision trees"), with three differences: trees are extremely randomised (Geurts,
Ernst, Wehenkel 2006) and a committee of them decides, so that noise averages out; they are fitted
when the data have grown by a third, not in every round; and each sees two made-up observations.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.choosing import shares
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Observation, Probabilities
from rbmle.interop.needs import need
from rbmle.models.history import History, Memory

ALL = Memory()
FEWEST = 20  # observations before the first fit, or two of each arm
LARGEST_SEED = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class Forest:
    """The trees of all blocks, their nodes in one list; a leaf is its own child."""

    roots: Int[np.ndarray, "blocks trees"]
    left: Int[np.ndarray, " nodes"]
    right: Int[np.ndarray, " nodes"]
    feature: Int[np.ndarray, " nodes"]
    threshold: Float[np.ndarray, " nodes"]
    value: Float[np.ndarray, " nodes"]
    depth: int

    def predict(self, contexts: Contexts) -> Float[np.ndarray, "arms trees"]:
        """Return the prediction of each tree of an arm's block."""
        X = contexts.dense().astype(np.float32)  # as trees are fitted
        node = self.roots[contexts.rows.blocks]
        for _ in range(self.depth):
            is_left = np.take_along_axis(X, self.feature[node], axis=1) <= self.threshold[node]
            node = np.where(is_left, self.left[node], self.right[node])
        return self.value[node]


@dataclass(slots=True, kw_only=True)
class TreeState:
    """The history, the trees of the last fit, and when the next fit is due."""

    history: History
    forest: Forest
    due: int  # observations


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTS:
    """Index: the mean of a committee of trees, drawn in each round from those of an arm's bootstraps."""

    trees: int = 50  # of each arm, each with its own bootstrap
    committee: int = 25  # trees that a draw is the mean of, with replacement
    leaf: int = 2  # observations in a leaf, at least
    ratio: float = 1.3  # of the observations at two fits
    lowest: float = 0.0  # reward of a made-up observation in each tree, so that no arm is abandoned
    highest: float = 1.0  # reward of another

    def __post_init__(self) -> None:
        need("sklearn", "experiments", type(self).__name__)
        for name in ("trees", "committee", "leaf"):
            if getattr(self, name) < 1:
                raise SettingError(f"`{name}` must be at least 1, got {getattr(self, name)}")
        if not 1 < self.ratio < math.inf:
            raise SettingError(f"`ratio` must be a number above 1, got {self.ratio}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TreeState:
        return TreeState(
            history=History.empty(blocks, "float64"),
            forest=_stumps(np.zeros((blocks, self.trees), np.int64), self._prior),
            due=max(FEWEST, 2 * blocks),
        )

    def index(self, state: TreeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the mean of one committee, the same trees for all arms."""
        (draw,) = self._draws(state.forest.predict(contexts), 1, rng)
        return draw

    def weigh(
        self, state: TreeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        indices = self._draws(state.forest.predict(contexts), max(draws, 1), rng)
        return indices[0], shares(indices).mean(axis=0) if draws else None

    def predict(self, state: TreeState, contexts: Contexts) -> Indices:
        return state.forest.predict(contexts).mean(axis=1)

    def update(self, state: TreeState, seen: Observation, rng: np.random.Generator) -> None:
        """Remember an observation, and refit all trees if that is due."""
        state.history.append(seen, ALL, rng)
        if state.history.count >= state.due:
            state.forest = self._fit(state.history, seen.context.features, rng)
            state.due = math.ceil(self.ratio * state.due)

    def grow(self, state: TreeState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks, whose trees predict the prior until the next fit."""
        state.history.grow(blocks)
        forest = state.forest
        more = np.full((blocks - len(forest.roots), self.trees), len(forest.value))
        new = _stumps(more, self._prior)
        names = ("roots", "left", "right", "feature", "threshold", "value")
        parts = {
            name: np.concatenate([getattr(forest, name), getattr(new, name)]) for name in names
        }
        state.forest = Forest(depth=forest.depth, **parts)

    @property
    def _prior(self) -> float:
        return (self.lowest + self.highest) / 2

    def _draws(
        self, votes: Float[np.ndarray, "arms trees"], draws: int, rng: np.random.Generator
    ) -> Float[np.ndarray, "draws arms"]:
        members = rng.integers(self.trees, size=(draws, self.committee))
        return votes[:, members].mean(axis=2).T

    def _fit(self, history: History, features: int, rng: np.random.Generator) -> Forest:
        """Return trees fitted to bootstraps of each block's observations."""
        X = np.zeros((history.count, features), np.float32)
        lengths = history.lengths[: history.count]
        rows = np.repeat(np.arange(history.count), lengths)
        firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        entries = (
            np.repeat(history.starts[: history.count], lengths) + np.arange(len(rows)) - firsts
        )
        X[rows, history.indices[entries]] = history.values[entries]
        rewards = history.rewards[: history.count]
        trees = []
        for start, count in zip(history.member_starts, history.member_counts, strict=True):
            members = history.members[start : start + count]
            trees += [self._tree(X, rewards, members, rng) for _ in range(self.trees)]
        return join_trees(trees, (len(history.member_starts), self.trees))

    def _tree(
        self,
        X: Float[np.ndarray, "n features"],
        rewards: Float[np.ndarray, " n"],
        members: Int[np.ndarray, " observations"],
        rng: np.random.Generator,
    ) -> Any:
        """Return a tree of scikit-learn, fitted to a bootstrap and two made-up observations."""
        from sklearn.tree import ExtraTreeRegressor  # it takes a second to import

        drawn = members[rng.integers(len(members), size=len(members))] if len(members) else members
        made_up = rng.integers(len(X), size=2)
        y = np.concatenate([rewards[drawn], [self.lowest, self.highest]])
        seed = int(rng.integers(LARGEST_SEED))
        tree = ExtraTreeRegressor(min_samples_leaf=self.leaf, random_state=seed)
        return tree.fit(X[np.concatenate([drawn, made_up])], y, check_input=False).tree_


def _stumps(roots: Int[np.ndarray, "blocks trees"], value: float) -> Forest:
    """Return trees that share a single leaf."""
    leaf = roots.reshape(-1)[:1].copy()
    nothing = np.zeros(len(leaf), np.int64)
    return Forest(
        roots=roots,
        left=leaf,
        right=leaf.copy(),
        feature=nothing,
        threshold=np.zeros(len(leaf)),
        value=np.full(len(leaf), value),
        depth=0,
    )


def join_trees(trees: list[Any], shape: tuple[int, int]) -> Forest:
    """Join trees of scikit-learn into one list of nodes."""
    ends = np.cumsum([tree.node_count for tree in trees])
    starts = ends - [tree.node_count for tree in trees]
    is_leaf = np.concatenate([tree.children_left for tree in trees]) < 0
    shift = np.repeat(starts, ends - starts)
    nodes = np.arange(len(shift))
    left = np.concatenate([tree.children_left for tree in trees]) + shift
    right = np.concatenate([tree.children_right for tree in trees]) + shift
    return Forest(
        roots=starts.reshape(shape),
        left=np.where(is_leaf, nodes, left),
        right=np.where(is_leaf, nodes, right),
        feature=np.where(is_leaf, 0, np.concatenate([tree.feature for tree in trees])),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        value=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
        depth=max(tree.max_depth for tree in trees),
    )
