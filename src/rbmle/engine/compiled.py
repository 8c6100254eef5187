"""Compilation: kernels, which are cached on disk, and scalar functions that kernels can call.

Only this folder imports numba. A kernel releases the GIL and takes arrays and numbers only.
"""

import hashlib
import os
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import _dynfunc, types
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

PATIENCE_SECONDS = 0.5  # of compilation before a line is printed


def is_writable(folder: Path) -> bool:
    """Return whether files can be created in a folder; create it if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def notice(folder: Path | None) -> str:
    """Return the line that says why the first decision takes longer, and how to avoid it."""
    if folder is not None and is_writable(folder):
        return (
            "rbmle: compiling kernels for this machine, which takes some seconds; "
            f"this happens once, they are kept in {folder}"
        )
    where = "there is no home folder" if folder is None else f"{folder} is not writable"
    return (
        f"rbmle: kernels cannot be cached, and every process compiles them again: {where}; "
        "set RBMLE_CACHE to a writable folder, or to one that `rbmle warm` has filled"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Compiling:
    """Measures how long this process compiles, and prints a line if that takes long."""

    is_quiet: bool
    say: Callable[[str], None] = _say  # the service has a log of its own
    seconds: float = 0.0
    is_printed: bool = False
    _started_at: float | None = None
    _timer: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, folder: Path | None) -> None:
        """Start the clock, unless it runs: kernels are compiled for each other."""
        with self._lock:
            if self._started_at is not None:
                return
            self._started_at = time.monotonic()
            if self.is_quiet or self.is_printed:
                return
            patience = max(PATIENCE_SECONDS - self.seconds, 0.0)
            self._timer = threading.Timer(patience, self._print_notice, [folder])
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Stop the clock."""
        with self._lock:
            if self._started_at is None:
                return
            self.seconds += time.monotonic() - self._started_at
            self._started_at = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _print_notice(self, folder: Path | None) -> None:
        with self._lock:
            if self.is_printed or self._started_at is None:
                return
            self.is_printed = True
        self.say(notice(folder))


compiling = Compiling(is_quiet=os.environ.get("RBMLE_QUIET", "") not in ("", "0"))


def seconds_compiled() -> float:
    """Return how long this process has compiled kernels; 0 if all were loaded from the cache."""
    return compiling.seconds


PACKAGE = Path(__file__).parents[1]
SOURCES = ("engine/*.py", "likelihoods.py")  # the source of kernels
INSTALLED = (
    PACKAGE / "engine" / "kernels"
)  # compiled when the package was built, if that was possible
CHECKSUM_BYTES = 16


def digest(*parts: bytes) -> str:
    """Return a short digest of some bytes."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little") + part)
    return hasher.hexdigest()


@cache
def source_name() -> str:
    """Return the name of the folder of kernels, a digest of their source."""
    sources = [path for pattern in SOURCES for path in sorted(PACKAGE.glob(pattern))]
    return f"kernels-{digest(*(path.read_bytes() for path in sources))}"


@cache
def cache_folder() -> Path | None:
    """Return the folder of cached kernels, named by their source; None if there is no home folder."""
    name = source_name()
    if folder := os.environ.get("RBMLE_CACHE"):
        return Path(folder).absolute() / name
    if folder := os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME"):
        return Path(folder).absolute() / "rbmle" / name
    try:
        return Path.home() / ".cache" / "rbmle" / name
    except RuntimeError:
        return None


class KernelCache(NullCache):
    """The kernels of one function, on disk: a file for each signature, in a folder named by their source.

    numba's own cache looks at one source file only, and would miss a change in a function of another; it
    needs a writable folder; and two processes that add to one index can mix up their kernels. Here the name of
    a file depends on everything that determines its content, and the file is written aside and renamed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Identify the function by its place in the package, or by its file if it is a user's."""
        self.folder = cache_folder()
        code, path = function.__code__, Path(function.__code__.co_filename)
        self.name = f"{path.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        if path.is_relative_to(PACKAGE):
            self.stamp = str(path.relative_to(PACKAGE))  # its source is in the folder's name
        elif path.exists():
            status = path.stat()
            self.stamp = f"{path} {code.co_firstlineno} {status.st_mtime_ns} {status.st_size}"
        else:  # an interactive session
            self.folder, self.stamp = None, ""

    @property
    def cache_path(self) -> str | None:
        """The folder of cached kernels."""
        return None if self.folder is None else str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a cached kernel, or None, after which numba compiles it."""
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
        """Write a kernel to the cache, if there is one."""
        compiling.end()
        if self.folder is not None and not data.library.has_dynamic_globals:
            _write(self.folder / self._name(sig, data.codegen), dumps(data._reduce()))

    def _name(self, sig: Any, codegen: Any) -> str:
        """Return the name of a kernel's file: of function, signature, processor and versions."""
        versions = (numba.__version__, sys.version_info[:2], sys.abiflags)
        key = repr((self.stamp, str(sig), codegen.magic_tuple(), versions))
        return f"{self.name}-{digest(key.encode())}.kernel"


def _read(path: Path) -> bytes | None:
    """Return the content of a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, data = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return data if checksum == digest(data).encode() else None


def _write(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all; do nothing if the folder is not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    except OSError:
        return  # `notice` has told the user
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(digest(data).encode() + data)
        os.chmod(aside, 0o644)  # so that other users can read it
        os.replace(aside, path)
    except OSError:  # a full disk
        os.unlink(aside)


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lower a function that only kernels call to linkable code, without machine code.

    numba makes machine code of every function, and a wrapper for calls from Python. Functions that only kernels
    call need neither, and making them took half of the time.
    """

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower the function, link what it calls, and register it for its callers."""
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        library, lowered = state.library, state.cr
        for used in dict.fromkeys(library._linking_libraries):
            if hasattr(library, "_reload_init"):  # since numba 0.62
                library._reload_init.update(used._reload_init)
            library._final_module.link_in(used._get_module_for_linking(), preserve=True)
        library._finalized = True
        module, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname.split(".")[-1]
        # Callers find the function by this key; its address is 0, because there is no wrapper.
        key = _dynfunc.make_function(module, name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [library])
        state.cr = lowered._replace(cfunc=key)
        return True


class PartCompiler(CompilerBase):
    """numba's compiler, with `PartLowering` at its end."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's own passes, with another lowering."""
        passes = PassManager("part")
        for kind, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(PartLowering if kind is NativeLowering else kind, text)
        passes.finalize()
        return [passes]


F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, so that they can be vectorised; NaN and infinity keep their meaning.
# Division follows IEEE, because Python's tests for zero and branches. No kernel is called from C.
OPTIONS = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
PART = {"pipeline_class": PartCompiler, "no_cpython_wrapper": True}


def kernel(function: F) -> F:
    """Compile a function over arrays; it releases the GIL and is cached on disk."""
    dispatcher = numba.njit(**OPTIONS)(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher


class Part:
    """A function for kernels to call; called from Python, it is compiled like a kernel."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self._alone = numba.njit(**options)(function)
        self._within = numba.njit(**options | PART)(function)
        self._numba_type_ = self._within._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from Python."""
        return self._alone(*arguments)


def part(function: F) -> F:
    """Compile a function that kernels call; it is compiled once into each of them.

    Applied to a kernel, it returns a version that other kernels can call as cheaply.
    """
    return cast(F, Part(getattr(function, "py_func", function), OPTIONS))


def inlined(function: F) -> F:
    """Compile a function into each place where kernels call it, so that no arguments are copied."""
    return cast(F, Part(function, OPTIONS | {"forceinline": True}))


def in_order(function: F) -> F:
    """Compile as `part` does, but keep the order of sums."""
    return cast(F, Part(function, OPTIONS | {"fastmath": False}))


@cache
def scalar(function: Callable[[float], float]) -> int:
    """Return the address of a function from float to float, compiled, for `call_scalar`.

    Kernels take the address, so one compiled kernel works for every likelihood, including a user's.
    """
    compiled = CFunc(function, ((types.float64,), types.float64), locals={}, options={})
    compiled._cache = KernelCache(function)
    compiled.compile()
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


@intrinsic
def prefetch(_context: Any, array: Any, i: Any) -> Any:
    """Start to load the cache line of array[i], which a later step reads."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(values.data, [arguments[1]]), _BYTE.as_pointer())
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, _INT, _INT, _INT])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], shape)
        read, keep, data = _INT(0), _INT(3), _INT(1)
        builder.call(fetch, [pointer, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


_BYTE, _INT = ir.IntType(8), ir.IntType(32)
