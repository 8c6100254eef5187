"""Clients, or why they are not there."""

import json
import shutil
import subprocess
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "js"


def python_client(package: str, wanted: str) -> Any:
    """Return the module of a package from PyPI; skip the caller's if it is missing, or another version."""
    try:
        found = version(package)
    except PackageNotFoundError:
        found = "none"
    if found != wanted:
        _skip(f"needs {package} {wanted}, and there is {found}; `make sdk` installs it")
    return import_module(package.replace("-", "."))


def need_node(package: str) -> None:
    """Skip the caller's module if node or a package from npm is missing."""
    if shutil.which("node") is None:
        _skip(f"needs node for npm's {package}; install node, then `make sdk`")
    if not (FOLDER / "node_modules" / package).is_dir():
        _skip(f"needs npm's {package}; `make sdk` installs it")


def run_node(script: str, *arguments: str) -> Any:
    """Return what a script prints as JSON."""
    command = ["node", str(FOLDER / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _skip(why: str) -> None:
    pytest.skip(why, allow_module_level=True)
