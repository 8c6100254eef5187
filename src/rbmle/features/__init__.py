"""From dictionaries of features, which may differ from round to round, to sparse contexts."""

from rbmle.features.hashing import Hashing

__all__ = ["Hashing"]
