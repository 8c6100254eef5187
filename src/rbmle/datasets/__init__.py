"""Labelled data, one loader per file."""

from rbmle.datasets.base import Dataset
from rbmle.datasets.digits import digits

DATASETS = {"digits": digits}

__all__ = ["DATASETS", "Dataset", "digits"]
