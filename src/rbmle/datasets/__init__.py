"""Labelled data: six published datasets, scikit-learn's digits, and files of the user's own."""

from rbmle.datasets.base import Dataset, Source, Table
from rbmle.datasets.digits import digits
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.load import load
from rbmle.datasets.preprocessing import PREPROCESSINGS, preprocess
from rbmle.datasets.registry import DATASETS

__all__ = [
    "DATASETS",
    "PREPROCESSINGS",
    "Dataset",
    "DatasetError",
    "Source",
    "Table",
    "digits",
    "load",
    "preprocess",
]
