"""The exceptions that a caller may want to catch.

RBMLEError
├── ContextError       contexts of the wrong shape, with NaN, infinity or an absurd size (a ValueError)
│   └── FeatureError   features in a dictionary that have the wrong form
├── RewardError        a reward that is not a finite number, or that the likelihood excludes (a ValueError)
├── ArmError           an arm that does not exist, is retired, or was listed twice (a KeyError)
├── EligibilityError   no arm to choose from, or arms and rows that do not match (a ValueError)
├── RepeatError        a decision that was learned before (a ValueError)
├── DivergenceError    an index that is not a finite number: training has diverged (an ArithmeticError)
├── SnapshotError      an attempt to teach or save a snapshot (a TypeError)
├── SettingError       a hyperparameter out of its range (a ValueError)
├── DatasetError       data that cannot be found or read (a ValueError); in datasets/catalog.py
├── LogFileError       a log of decisions that cannot be found or read (a ValueError); in evaluation/results.py
└── FileError          a saved bandit that is damaged, foreign or from a later version (a ValueError)
"""


class RBMLEError(Exception):
    """The root of the tree."""


class ContextError(RBMLEError, ValueError):
    """Contexts of the wrong shape, with NaN, infinity or an absurd size."""


class FeatureError(ContextError):
    """Features in a dictionary that have the wrong form."""


class RewardError(RBMLEError, ValueError):
    """A reward that is not a finite number, or that the likelihood excludes."""


class ArmError(RBMLEError, KeyError):
    """An arm that does not exist, is retired, or was listed twice."""

    def __str__(self) -> str:
        return str(self.args[0])


class EligibilityError(RBMLEError, ValueError):
    """No arm to choose from, or arms and rows that do not match."""


class RepeatError(RBMLEError, ValueError):
    """A decision that was learned before."""


class DivergenceError(RBMLEError, ArithmeticError):
    """An index that is not a finite number: training has diverged."""


class SnapshotError(RBMLEError, TypeError):
    """An attempt to teach or save a snapshot."""


class SettingError(RBMLEError, ValueError):
    """A hyperparameter out of its range."""


class FileError(RBMLEError, ValueError):
    """A saved bandit that is damaged, foreign or from a later version."""
