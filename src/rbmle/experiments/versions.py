"""What a run was made with."""

import platform
from importlib.metadata import version

NAMES = ("rbmle", "numpy", "numba", "llvmlite")


def versions() -> dict[str, str]:
    """Return the versions of what decides a run's numbers."""
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        name: version(name) for name in NAMES
    }
