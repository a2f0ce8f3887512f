"""Decorators that compile kernels, and functions written in the compiler's own terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankwright.kernels.caching import KernelCache

_TESTED = (0, 61) <= numba.version_info[:2] < (0, 69)  # versions whose internals ``compiling`` is known to fit
if _TESTED:
    from rankwright.kernels import compiling

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
F = TypeVar("F", bound=Callable[..., Any])


llvm: Callable[[Any], Any] = intrinsic  # a function written in the compiler's own terms


def kernel(fn: F) -> F:
    """Make a function a kernel: compiled on first use, cached on disk, and run without the GIL.

    ``fastmath=False`` is set explicitly, or Numba inherits the caller's flag.
    """
    return _compile_on_first_use(fn, "KernelCompiler", fastmath=False)


def inner_kernel(fn: F) -> F:
    """Make a function a kernel that only kernels call, which compiles in about half the time.

    It can be called from Python all the same, and is then compiled again, as a kernel. Under versions of Numba that
    ``compiling`` was not tested with, it is a kernel like any other.
    """
    return _compile_within(fn, fastmath=False)


def inlined(fn: F) -> F:
    """Make a function a kernel that is compiled into the kernels that call it; its sums are never reordered."""
    return _compile_within(fn, fastmath=False, forceinline=True)


def loose_kernel(fn: F) -> F:
    """Make a function a kernel as ``kernel`` does, with sums added up in whatever order is fastest.

    It is inlined into the kernels that call it. Otherwise the linker takes its own code in the process that compiles
    them, and the callers' copy, whose sums may have another order, in processes that load them from the cache.
    """
    return _compile_on_first_use(fn, "LooseCompiler", fastmath={"reassoc", "nsz"}, forceinline=True)


def _compile_on_first_use(fn: F, compiler: str, **options: Any) -> F:
    """Return a function that Numba compiles when it is first called, with its compiled code kept on disk.

    ``compiler`` names a class of ``compiling``; Numba's own is used where that was not tested.
    """
    options |= {"error_model": "numpy"}
    if _TESTED:
        options["no_cfunc_wrapper"] = True
    passes = {"pipeline_class": getattr(compiling, compiler)} if _TESTED else {}
    compiled: Any = numba.njit(nogil=True, **passes, **options)(fn)
    if hasattr(compiled, "_cache"):  # not where the compiler is switched off
        compiled._cache = KernelCache(fn, options)
        if _TESTED:
            compiling.ignore_literals(compiled)
    return cast(F, compiled)


def _compile_within(fn: F, **options: Any) -> F:
    """Return a function that Numba compiles for the kernels that call it, with its compiled code kept on disk."""
    if not _TESTED:
        return _compile_on_first_use(fn, "KernelCompiler", **options)
    options |= {"error_model": "numpy"}
    compiled: Any = numba.njit(pipeline_class=compiling.InnerCompiler, **options)(fn)
    if hasattr(compiled, "_cache"):
        compiled._cache = compiling.InnerKernelCache(fn, options | {"inner": True})
        compiling.ignore_literals(compiled)
        compiling.hide_from_python(compiled, partial(kernel, fn))
    return cast(F, compiled)


@llvm
def load_word(context: Any, text: Any, i: Any) -> Any:
    """Load the eight bytes of a uint8 array from ``i`` on as one uint64: ``load_word(text, i)``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
        word = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(text, types.intp), generate


@llvm
def load_byte(context: Any, text: Any, i: Any) -> Any:
    """Load ``text[i]`` of a uint8 array, for ``i`` known not to be negative: ``load_byte(text, i)``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
        return builder.zext(builder.load(builder.gep(data, [arguments[1]])), ir.IntType(64))

    return types.int64(text, types.intp), generate


@llvm
def count_trailing_zeros(context: Any, word: Any) -> Any:
    """Count the low bits of a uint64 that are 0; 64 if all are: ``count_trailing_zeros(word)``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@llvm
def get_bits(context: Any, number: Any) -> Any:
    """Return the 64 bits of a float64 as an int64: ``get_bits(number)``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate
