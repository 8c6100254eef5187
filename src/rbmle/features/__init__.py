"""Encoders of features: hashing of dictionaries, and running scaling of numbers."""

from rbmle.features.hashing import Hashing

__all__ = ["Hashing"]
