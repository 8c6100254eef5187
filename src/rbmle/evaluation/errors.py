"""What goes wrong with logs, and what is doubtful about an evaluation."""

from rbmle.core.errors import RBMLEError


class LogFileError(RBMLEError, ValueError):
    """A log that cannot be found or read, or a row of it that makes no sense."""


class EvaluationWarning(UserWarning):
    """A number that should not be trusted as it stands."""
