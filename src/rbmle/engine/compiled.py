"""How the engine compiles: kernels cached on disk, and scalar functions that kernels can call.

Only this folder knows numba. A kernel releases the GIL and sees arrays and numbers only.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from rbmle.engine.kernel_cache import KernelCache
from rbmle.engine.parts import PartCompiler

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning.
# Division is IEEE's, not Python's, which would test for zero and branch. C calls no kernel.
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
    """A function for kernels to call. Called from Python, it is compiled as a kernel is."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self._alone = numba.njit(**options)(function)
        self._within = numba.njit(**options | PART)(function)
        self._numba_type_ = self._within._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from Python."""
        return self._alone(*arguments)


def part(function: F) -> F:
    """Compile a function that kernels call: it is compiled into each of them, and called there.

    Of a kernel, it makes what other kernels can call at no more cost than that.
    """
    return cast(F, Part(getattr(function, "py_func", function), OPTIONS))


def inlined(function: F) -> F:
    """Compile a function that kernels call, into each call: there are no arguments to copy."""
    return cast(F, Part(function, OPTIONS | {"forceinline": True}))


def in_order(function: F) -> F:
    """Compile as `part` does, but sums run in the order in which they are written."""
    return cast(F, Part(function, OPTIONS | {"fastmath": False}))


@cache
def scalar(function: Callable[[float], float]) -> int:
    """Return the address of a function from float to float, compiled, for `call_scalar`.

    Kernels take the address: one compiled kernel runs every likelihood, those of a user too.
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
    """Ask for the cache line of array[i], which a later step reads; nothing waits for it."""

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
