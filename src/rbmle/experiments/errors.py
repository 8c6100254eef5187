"""The error of a trial."""

from rbmle.core.errors import RBMLEError


class TrialError(RBMLEError, RuntimeError):
    """A trial that failed, with its policy, its dataset and its seed."""
