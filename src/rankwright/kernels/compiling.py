"""How kernels are compiled quickly: each is optimised once, where it ends up, and no type is compiled twice.

Numba optimises every function on its own and makes machine code of it, even if only other kernels call it, and does so
again in each of its callers, which contain it. A ``PartLibrary`` leaves that to the callers.
"""

from __future__ import annotations

from typing import Any

from numba.core import compiler, typed_passes, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.targetconfig import ConfigStack

_base: Any = compiler.CompilerBase  # Numba ships no types
_flags: Any = compiler.Flags
_library: Any = JITCodeLibrary
_lowering: Any = typed_passes.NativeLowering
_builder: Any = compiler.DefaultPassBuilder
_register: Any = register_pass


class PartLibrary(_library):  # type: ignore[misc]
    """The code of a kernel that only kernels call: linked into them and optimised there, and never run by itself."""

    def _optimize_final_module(self) -> None:
        """Leave the code as it is."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@_register(mutates_CFG=True, analysis_only=False)
class PartLowering(_lowering):  # type: ignore[misc]
    """The pass that makes LLVM code of a kernel that only kernels call."""

    _name = "rankwright_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Write the code of the kernel for its callers; from Python, another kernel of the same source is called."""
        codegen = state.targetctx.codegen()
        state.library = PartLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        _lowering.run_pass(self, state)
        key = object()
        state.targetctx.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class SharedFlags(_flags):  # type: ignore[misc]
    """The options under which what NumPy offers, such as ``np.empty``, is compiled once for all kernels."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedFlags) or bool(_flags.__eq__(self, other))


def _make_shared_flags() -> Any:
    flags = _flags()
    flags.nrt = flags.no_cpython_wrapper = flags.enable_looplift = flags.enable_pyobject_looplift = True
    flags.error_model = "numpy"
    return flags


_SHARED = _make_shared_flags()
_HASH = hash(_SHARED)


class WholeCompiler(_base):  # type: ignore[misc]
    """The compiler of kernels that Python calls."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes."""
        _share_flags()
        return [_builder.define_nopython_pipeline(self.state)]


class PartCompiler(_base):  # type: ignore[misc]
    """The compiler of kernels that only kernels call."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes, with another last one."""
        _share_flags()
        manager = _builder.define_nopython_pipeline(self.state)
        manager.passes = [
            (PartLowering, text) if found is _lowering else (found, text) for found, text in manager.passes
        ]
        manager.finalize()
        return [manager]


def _share_flags() -> None:
    top = ConfigStack().top()
    top._values.clear()
    top._values.update(_SHARED._values)
    top.__class__ = SharedFlags


def ignore_literals(dispatcher: Any) -> None:
    """Make a kernel take a constant whole number as any other number, not as a type of its own."""
    find = dispatcher.get_call_template

    def find_template(args: Any, kws: Any) -> Any:
        return find(
            [types.unliteral(each) if isinstance(each, types.IntegerLiteral) else each for each in args],
            {
                name: types.unliteral(each) if isinstance(each, types.IntegerLiteral) else each
                for name, each in kws.items()
            },
        )

    dispatcher.get_call_template = find_template


def keep_from_python(dispatcher: Any, whole: Any) -> None:
    """Make a call of a part from Python one of the whole kernel."""

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = lambda *arguments, **named: whole
