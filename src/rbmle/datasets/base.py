"""What a dataset is: where it comes from, its raw table, and the numbers a policy sees."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from rbmle.datasets.reading import Reading

if TYPE_CHECKING:
    import pandas as pd  # it takes half a second to import


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A published dataset: its shape, its checksum, and whom to thank."""

    name: str
    title: str
    file: str | None  # None: it comes with scikit-learn
    rows: int
    features: int
    counts: tuple[int, ...]  # rows of each class, in the order of the classes
    sha256: str  # of the file; of pixels and labels as bytes if there is no file
    licence: str
    citation: str
    doi: str
    openml_id: int | None  # None: not there, or not the same rows
    openml_version: int | None
    shipped: bool  # is it part of this package or of one it needs?

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return len(self.counts)

    @property
    def url(self) -> str:
        """Return where the citation leads."""
        return f"https://doi.org/{self.doi}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Raw rows, as they stand in a file; labels are 0 … K − 1 and classes their names."""

    name: str
    frame: "pd.DataFrame" = field(repr=False)
    labels: Int[np.ndarray, " rows"] = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    digest: str  # sha256 of the file
    reading: Reading | None = None  # of a user's file


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Labelled rows; classes are 0 … K − 1."""

    name: str
    X: Float[np.ndarray, "rows features"] = field(repr=False)
    labels: Int[np.ndarray, " rows"] = field(repr=False)
    preprocessing: str = "none"
    digest: str = ""  # sha256 of the file it was read from; empty for arrays of the caller's own
    content: str = ""  # blake2b of X, so that a changed preprocessing is seen
    reading: Reading | None = None  # of a user's file
    frame: "pd.DataFrame | None" = field(default=None, repr=False)  # raw, if X depends on the order
    classes: int = field(init=False)

    def __post_init__(self) -> None:
        """Count the classes, once: a run asks in every round."""
        object.__setattr__(self, "classes", int(self.labels.max()) + 1)
