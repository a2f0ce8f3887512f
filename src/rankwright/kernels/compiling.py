"""How kernels are compiled quickly: code is optimised once, where it runs, and nothing is compiled twice.

Numba optimises every function, makes machine code of it and a wrapper that Python can call, and does so again in each
of its callers, which contain it. Kernels that only kernels call are spared all of that (``InnerCompiler``). What NumPy
offers, such as ``np.empty``, is compiled anew for each set of compiler options, so kernels have one (``SharedFlags``).
And a constant such as 0 is a type of its own, for which a kernel would be compiled again (``ignore_literals``).

Sums are never reordered here, so the bits of a kernel do not depend on where it is optimised. A loose kernel, whose
sums may be, is optimised by itself, as Numba does it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding as binding
from numba.core import compiler, typed_passes, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.targetconfig import ConfigStack

from rankwright.kernels.caching import KernelCache

_base: Any = compiler.Compiler  # Numba ships no types
_flags: Any = compiler.Flags
_library: Any = JITCodeLibrary
_lowering: Any = typed_passes.NativeLowering
_passes: Any = compiler.DefaultPassBuilder
_register: Any = register_pass
_stack: Any = ConfigStack
_make_result: Any = compiler.compile_result


class SharedFlags(_flags):  # type: ignore[misc]
    """The options of the compiler under which functions of NumPy and Python are compiled, the same for all kernels.

    They are what Numba gives to a function of NumPy that another one calls.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH if self._values == _SHARED._values else int(_flags.__hash__(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedFlags):
            return bool(self._values == other._values)
        return bool(_flags.__eq__(self, other))

    @classmethod
    def use(cls) -> None:
        """Compile the functions that the present kernel calls with these options."""
        flags = _stack().top()
        flags._values.clear()
        flags._values.update(_SHARED._values)
        flags.__class__ = cls


def _make_shared_flags() -> Any:
    """Return the options of ``SharedFlags``, as an object of Numba's own class."""
    flags = _flags()
    flags.nrt = flags.no_cpython_wrapper = flags.enable_looplift = flags.enable_pyobject_looplift = True
    flags.error_model = "numpy"
    return flags


_SHARED = _make_shared_flags()
_HASH: int = hash(_SHARED)  # Numba's takes longer, and is asked for thousands of times


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Pause the garbage collector while a kernel is compiled, which takes a tenth less time without it."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


class LooseCompiler(_base):  # type: ignore[misc]
    """A compiler of kernels whose sums may be reordered: Numba's own passes, which optimise each kernel by itself."""

    def _compile_core(self) -> Any:
        """Return the compiled code, with what inner kernels that are part of it need from Python."""
        with _pause_collection():
            result = _base._compile_core(self)
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


class KernelCompiler(LooseCompiler):
    """The compiler of kernels that Python calls."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes."""
        SharedFlags.use()
        return [_passes.define_nopython_pipeline(self.state)]


class InnerCompiler(_base):  # type: ignore[misc]
    """The compiler of kernels that only kernels call, which are linked into them, and optimised there."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes, with another way to end."""
        SharedFlags.use()
        manager = _passes.define_nopython_pipeline(self.state)
        manager.passes = [(InnerLowering if each is _lowering else each, text) for each, text in manager.passes]
        manager.finalize()
        return [manager]


class InnerLibrary(_library):  # type: ignore[misc]
    """The code of an inner kernel, neither optimised nor turned into machine code by itself."""

    def _optimize_final_module(self) -> None:
        """Leave the code as it is."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@_register(mutates_CFG=True, analysis_only=False)
class InnerLowering(_lowering):  # type: ignore[misc]
    """The pass that makes the code of an inner kernel."""

    _name = "rankwright_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Make the code, and nothing that Python could call."""
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        _lowering.run_pass(self, state)
        name = object()
        state.targetctx.insert_user_function(name, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=name)
        return True


def reduce_inner(result: Any) -> tuple[Any, ...]:
    """Return what is kept on disk of the compiled code of an inner kernel."""
    result.fndesc.typemap = result.fndesc.calltypes = None  # as Numba does: they are not needed any more
    bitcode = result.library._final_module.as_bitcode()
    return result.library.name, bitcode, result.fndesc, result.environment, result.signature, result.reload_init


def rebuild_inner(
    target: Any, name: str, bitcode: bytes, fndesc: Any, environment: Any, signature: Any, reload_init: Any
) -> Any:
    """Return the compiled code of an inner kernel from what was kept on disk."""
    for initialise in reload_init:
        initialise()
    library = InnerLibrary(target.codegen(), name)
    library.enable_object_caching()
    library._final_module = binding.parse_bitcode(bitcode)
    library._finalize_final_module()
    return _make_result(
        target_context=target,
        typing_context=target.typing_context,
        library=library,
        environment=environment,
        entry_point=object(),
        fndesc=fndesc,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
    )


class InnerKernelCache(KernelCache):
    """The cache of a kernel that only kernels call: code that is yet to be optimised, in them."""

    def _reduce(self, cres: Any) -> tuple[Any, ...]:
        """Return what is kept of compiled code."""
        return reduce_inner(cres)

    def _rebuild(self, target_context: Any, *kept: Any) -> Any:
        """Return compiled code from what was kept of it."""
        return rebuild_inner(target_context, *kept)


def ignore_literals(dispatcher: Any) -> None:
    """Compile one version of a kernel for all constant whole numbers."""
    find = dispatcher.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        return find([_forget_literal(each) for each in arguments], {key: _forget_literal(named[key]) for key in named})

    dispatcher.get_call_template = get_call_template


def _forget_literal(kind: Any) -> Any:
    """Return the type of whole numbers for the type of one whole number, and any other type as it is."""
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind


def hide_from_python(dispatcher: Any, make_kernel: Callable[[], Any]) -> None:
    """Let Python, as in a test, call a kernel in place of an inner kernel; it is compiled at the first call."""
    make_once = lru_cache(maxsize=1)(make_kernel)

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = lambda *arguments, **named: make_once()
