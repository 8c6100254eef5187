"""What a run was made with."""

import platform
import sys
from importlib.metadata import version

NAMES = ("rbmle", "numpy", "numba", "llvmlite")
RIVALS = {  # as imported, as installed
    "sklearn": "scikit-learn",
    "vowpalwabbit": "vowpalwabbit",
    "mabwiser": "mabwiser",
}


def versions() -> dict[str, str]:
    """Return the versions of what decides a run's numbers; of rivals' libraries, those in use."""
    used = [name for package, name in RIVALS.items() if package in sys.modules]
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        name: version(name) for name in (*NAMES, *used)
    }
