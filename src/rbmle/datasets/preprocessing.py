"""From a raw table to numbers a policy sees, by a named method."""

import hashlib

import numpy as np

from rbmle.datasets.base import Dataset, Table
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.paired import paired
from rbmle.datasets.paper import paper
from rbmle.datasets.standard import standard

ONLINE = "online"
_METHODS = {"standard": standard, ONLINE: standard, "paper": paper, "paired": paired}
PREPROCESSINGS = tuple(_METHODS)


def preprocess(table: Table, method: str) -> Dataset:
    """Return the table as single-precision rows; labels stay as they are.

    `online` is fitted as rows come, so that the table stays at hand; X shows how many features there are.
    """
    if method not in _METHODS:
        raise DatasetError(
            f"there is no preprocessing {method!r}; there are {', '.join(PREPROCESSINGS)}"
        )
    X = _METHODS[method](table.frame)
    return Dataset(
        name=table.name,
        X=X,
        labels=table.labels,
        preprocessing=method,
        digest=table.digest,
        content=hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=16).hexdigest(),
        reading=table.reading,
        frame=table.frame if method == ONLINE else None,
    )
