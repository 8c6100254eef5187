"""The exception for data that cannot be found or read."""

from rbmle.core.errors import RBMLEError


class DatasetError(RBMLEError, ValueError):
    """A dataset is unknown, out of reach or damaged, or a file is not a table of labelled rows."""


def first_line(error: Exception) -> str:
    """Return what kind of error it is, and the first line it says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
