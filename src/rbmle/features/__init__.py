"""Dictionaries of features, different from round to round, to sparse contexts."""

from rbmle.features.hashing import Hashing

__all__ = ["Hashing"]
