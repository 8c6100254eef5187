"""Compiled kernels on disk: one file for each kernel and signature, in a folder named by their source.

numba's own cache looks at one file only, and would miss a change in a function of another; it insists on a
folder that it can write to; and two processes that add to one index can mistake each other's kernels.
Here a file is named by all that determines it, and it is written aside and renamed: it is whole, or not there.
"""

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from rbmle.engine.notice import compiling

PACKAGE = Path(__file__).parents[1]
SOURCES = ("engine", "likelihoods")  # what kernels are made of
INSTALLED = PACKAGE / "engine" / "kernels"  # compiled with the package, where that was possible
CHECKSUM_BYTES = 16


def digest(*parts: bytes) -> str:
    """Return a short name for what may be long."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little") + part)
    return hasher.hexdigest()


@cache
def source_name() -> str:
    """Return the name of a folder of kernels: that of their source."""
    sources = [path for folder in SOURCES for path in sorted((PACKAGE / folder).glob("*.py"))]
    return f"kernels-{digest(*(path.read_bytes() for path in sources))}"


@cache
def cache_folder() -> Path | None:
    """Return where kernels are kept, a folder named by their source; None where there is no home."""
    name = source_name()
    if given := os.environ.get("RBMLE_CACHE"):
        return Path(given).absolute() / name
    if given := os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME"):
        return Path(given).absolute() / "rbmle" / name
    try:
        return Path.home() / ".cache" / "rbmle" / name
    except RuntimeError:
        return None


class KernelCache(NullCache):
    """The kernels of one function, as a numba dispatcher asks for them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Name the function: by its place in the package, or by its file if it is a user's."""
        self.folder = cache_folder()
        code, path = function.__code__, Path(function.__code__.co_filename)
        self.name = f"{path.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        if path.is_relative_to(PACKAGE):
            self.stamp = str(path.relative_to(PACKAGE))  # its source is in the folder's name
        elif path.exists():
            found = path.stat()
            self.stamp = f"{path} {code.co_firstlineno} {found.st_mtime_ns} {found.st_size}"
        else:  # an interactive session
            self.folder, self.stamp = None, ""

    @property
    def cache_path(self) -> str | None:
        """Return where kernels are kept."""
        return None if self.folder is None else str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a kernel that was kept, or None, after which it is compiled."""
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        data = _read(INSTALLED / source_name() / name)
        if data is None and self.folder is not None:
            data = _read(self.folder / name)
        if data is None:
            compiling.begin(self.folder)
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel, where that is possible."""
        compiling.end()
        if self.folder is not None and not data.library.has_dynamic_globals:
            _write(self.folder / self._name(sig, data.codegen), dumps(data._reduce()))

    def _name(self, sig: Any, codegen: Any) -> str:
        """Return the name of a kernel's file: of function, signature, processor and versions."""
        versions = (numba.__version__, sys.version_info[:2], sys.abiflags)
        key = repr((self.stamp, str(sig), codegen.magic_tuple(), versions))
        return f"{self.name}-{digest(key.encode())}.kernel"


def _read(path: Path) -> bytes | None:
    """Return what a file holds, or None if there is no such file or it is not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, data = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return data if checksum == digest(data).encode() else None


def _write(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all where the folder cannot be written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    except OSError:
        return  # the notice says so
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(digest(data).encode() + data)
        os.chmod(aside, 0o644)  # other users may read it; mkstemp lets nobody
        os.replace(aside, path)
    except OSError:  # a full disk
        os.unlink(aside)
