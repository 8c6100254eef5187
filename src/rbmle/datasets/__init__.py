"""Labelled data: published datasets, two collections of them, digits, and files of the user's own."""

from rbmle.datasets.base import Dataset, Source, Table
from rbmle.datasets.collection import COLLECTIONS, is_collected
from rbmle.datasets.digits import digits
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.load import load
from rbmle.datasets.online import online
from rbmle.datasets.preprocessing import PREPROCESSINGS, preprocess
from rbmle.datasets.registry import DATASETS

__all__ = [
    "COLLECTIONS",
    "DATASETS",
    "PREPROCESSINGS",
    "Dataset",
    "DatasetError",
    "Source",
    "Table",
    "digits",
    "is_collected",
    "load",
    "online",
    "preprocess",
]
