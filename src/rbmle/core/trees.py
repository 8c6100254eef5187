"""A state as a tree: dataclasses, named tuples and lists, with arrays and numbers as its leaves."""

import dataclasses
from typing import Any

import numpy as np


def leaves(tree: Any, at: str = "state") -> tuple[dict[str, np.ndarray], dict[str, float | int]]:
    """Return the arrays and the numbers of a tree by their path."""
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, float | int] = {}
    match tree:
        case np.ndarray():
            arrays[at] = tree
        case bool() | int() | float():
            numbers[at] = tree
        case _:
            for name, branch in _branches(tree):
                more_arrays, more_numbers = leaves(branch, f"{at}.{name}")
                arrays |= more_arrays
                numbers |= more_numbers
    return arrays, numbers


def replace_leaves(
    tree: Any, arrays: dict[str, np.ndarray], numbers: dict[str, Any], at: str = "state"
) -> Any:
    """Return the tree with its leaves taken from the arrays and numbers."""
    match tree:
        case np.ndarray():
            if at not in arrays and tree.size == 0:  # saved by a version that had no such part
                return tree
            if arrays[at].dtype != tree.dtype or arrays[at].ndim != tree.ndim:
                raise ValueError(f"{at} is {arrays[at].dtype} {arrays[at].shape}, not {tree.dtype}")
            return arrays[at]
        case bool() | int() | float():
            return type(tree)(numbers[at])
        case _:
            parts = {
                name: replace_leaves(branch, arrays, numbers, f"{at}.{name}")
                for name, branch in _branches(tree)
            }
    if isinstance(tree, list):
        return list(parts.values())
    return type(tree)(**parts)


def _branches(tree: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(tree):
        return [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree)]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(zip(tree._fields, tree, strict=True))
    if isinstance(tree, list):
        return [(str(i), branch) for i, branch in enumerate(tree)]
    raise TypeError(
        f"a state holds a {type(tree).__name__}, which cannot be saved; states are made of dataclasses, "
        "named tuples, lists, arrays and numbers"
    )


def copy_tree(tree: Any) -> Any:
    """Return the tree with copies of its arrays."""
    arrays, numbers = leaves(tree)
    return replace_leaves(tree, {name: array.copy() for name, array in arrays.items()}, numbers)
