"""Classification as a bandit, as in the paper's appendix F: reward 1 for the right class, else 0."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32

from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.datasets import DATASETS, Dataset, is_collected, load, online
from rbmle.environments.base import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The rows of a dataset in an order that the seed decides; each class is an arm.

    It holds the name of the data, not the data, so it is small and can be sent to another process.
    """

    dataset: str  # a name of the registry or a collection, or a path
    target: str | None = None  # the label's column, for a path
    drop: tuple[str, ...] = ()  # columns to leave out, for a path
    preprocessing: str = "standard"
    data_dir: Path | None = field(default=None, compare=False)
    loaded: Dataset | None = field(default=None, compare=False, repr=False)
    encoding: ClassVar = Encoding.DISJOINT  # all arms share a row

    def load_data(self) -> "Classification":
        return replace(self, loaded=self.data)

    @property
    def data(self) -> Dataset:
        """Return the rows and labels; the process caches those that were read last."""
        return self.loaded or load(
            self.dataset,
            target=self.target,
            drop=self.drop,
            preprocessing=self.preprocessing,
            data_dir=self.data_dir,
        )

    @property
    def arms(self) -> int:
        return self.data.classes

    @property
    def features(self) -> int:
        return int(self.data.X.shape[1])

    @property
    def rows(self) -> int:
        return len(self.data.labels)

    @property
    def file(self) -> str | None:
        """Return the path of the data; None for a dataset of the registry or a collection."""
        is_named = self.dataset in DATASETS or is_collected(self.dataset)
        return None if is_named else str(Path(self.dataset).expanduser().resolve())

    @property
    def settings(self) -> dict[str, Any]:
        data = self.data
        return {
            "name": data.name,
            "digest": data.digest,
            "content": data.content,
            "target": self.target,
            "preprocessing": self.preprocessing,
            **({} if data.reading is None else data.reading.settings),
            "file": self.file,
        }

    @property
    def notice(self) -> str:
        return "" if self.data.reading is None else self.data.reading.notice

    def round(self, t: int, seed: int) -> Round:
        data = self.data
        row = _order(len(data.labels), seed)[t % len(data.labels)]
        X = data.X if data.frame is None else _fit_online(self, data.content, seed)
        rewards = np.zeros(data.classes)
        rewards[data.labels[row]] = 1.0
        return Round(x=X[row], rewards=rewards, means=rewards)


@lru_cache(maxsize=8)
def _order(rows: int, seed: int) -> np.ndarray:
    return generator(seed, Purpose.ENVIRONMENT, 0).permutation(rows)


@lru_cache(maxsize=2)
def _fit_online(
    world: Classification, content: str, seed: int
) -> Float32[np.ndarray, "rows features"]:
    """Return the rows, each prepared by the statistics of the rows before it in the order of the seed."""
    data = world.data
    X = online(data.frame, _order(len(data.labels), seed))
    X.flags.writeable = False
    return X
