"""Labelled data: published datasets, two collections of them, digits, and a user's own files."""

from rbmle.datasets.catalog import DATASETS, Dataset, DatasetError, Source, Table
from rbmle.datasets.load import COLLECTIONS, digits, is_collected, load
from rbmle.datasets.preprocessing import PREPROCESSINGS, online, preprocess

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
