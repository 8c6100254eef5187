"""Examples in adapters are tried where the library that they adapt is installed."""

from importlib.util import find_spec

ADAPTERS = {"gymnasium": "gymnasium_*.py", "coba": "coba_*.py", "river": "river_*.py"}
ADAPTERS |= {"torch": "torch_*.py"}

collect_ignore_glob = [
    f"src/rbmle/interop/{files}"
    for package, files in ADAPTERS.items()
    if find_spec(package) is None
]
