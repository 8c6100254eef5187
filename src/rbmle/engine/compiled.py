"""How the engine compiles: kernels cached on disk, and scalar functions that kernels can call.

Only this folder knows numba. A kernel releases the GIL and sees arrays and numbers only.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning.
# Division is IEEE's, not Python's, which would test for zero and branch.
OPTIONS = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
}


def _cache_folder() -> str | None:
    """Return a folder named by the engine's own source, or None where it cannot be written.

    numba's own cache looks at one file only and would miss a change in a function of another.
    """
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(given) if given else Path.home() / ".cache"
        folder = home / "rbmle" / f"kernels-{digest.hexdigest()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a RuntimeError where there is no home
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


CACHE_FOLDER = _cache_folder()


def has_kernels(name: str) -> bool:
    """Return whether kernels of a file were compiled on this machine before."""
    return CACHE_FOLDER is not None and any(Path(CACHE_FOLDER).rglob(f"{name}*.nbi"))


def _cached(decorate: Callable[[bool], F]) -> F:
    """Return decorate(cache), with numba's cache in our folder and its settings left as they were."""
    settings: Any = numba.config
    if CACHE_FOLDER is None:
        return decorate(False)
    before = settings.CACHE_DIR
    settings.CACHE_DIR = CACHE_FOLDER
    try:
        return decorate(True)
    finally:
        settings.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile a function over arrays; it releases the GIL and is cached on disk."""
    return _cached(lambda cache: numba.njit(cache=cache, **OPTIONS)(function))


def in_order(function: F) -> F:
    """Compile as `kernel` does, but sums run in the order in which they are written."""
    exact = OPTIONS | {"fastmath": False}
    return _cached(lambda cache: numba.njit(cache=cache, **exact)(function))


def inlined(function: F) -> F:
    """Compile a function that only kernels call, into each of them: no call, no arguments to copy."""
    return _cached(lambda cache: numba.njit(cache=cache, forceinline=True, **OPTIONS)(function))


@cache
def scalar(function: Callable[[float], float]) -> int:
    """Return the address of a function from float to float, compiled, for `call_scalar`.

    Kernels take the address: one compiled kernel runs every likelihood, those of a user too.
    """

    def compile_scalar(cache: bool) -> Any:
        return numba.cfunc(types.float64(types.float64), cache=cache)(function)

    try:
        compiled = _cached(compile_scalar)
    except RuntimeError:  # no source file, as in an interactive session: nothing to cache by
        compiled = compile_scalar(False)
    _ALIVE.append(compiled)
    return int(compiled.address)


_ALIVE: list[Any] = []  # an address is valid while its function lives


@intrinsic
def call_scalar(_context: Any, address: Any, z: Any) -> Any:
    """Call the function at an address that `scalar` returned."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], pointer), [arguments[1]])

    return types.float64(types.int64, types.float64), codegen
