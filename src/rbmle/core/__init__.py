"""The Bandit, and the values that it exchanges with policies.

A bandit can be given things that layers above make: a policy by its name, an encoder that scales features.
`rbmle/__init__.py` registers here how they are made, so that no layer imports one above it.
"""

from collections.abc import Callable
from typing import Any

MAKERS: dict[
    str, Callable[[Any], Any]
] = {}  # "policy": from a name or class; "running": from an encoder
ADAPTERS: dict[str, str] = {}  # policies that need other libraries: name and module:Class
