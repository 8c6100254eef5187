"""The exception of data that cannot be had or read."""

from rbmle.core.errors import RBMLEError


class DatasetError(RBMLEError, ValueError):
    """A dataset that is unknown, out of reach, damaged, or a file that is no table of labelled rows."""
