"""How kernels are compiled: what is compiled, how often, and that the result is the same."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks import cold_start
from numba import config
from numba.core import event

import rankwright as rw
from rankwright.kernels import caching, jit
from rankwright.kernels.compiling import InnerLibrary
from rankwright.kernels.jit import get_bits, inlined, inner_kernel, kernel, loose_kernel

PACKAGE = Path(rw.__file__).parent
DECORATORS = {"kernel", "inner_kernel", "inlined", "loose_kernel"}
needs_compiler = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the compiler is switched off")


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


@inlined
def double(x):
    return x + x


@inner_kernel
def fill(out, start, value):
    for i in range(start, len(out)):
        out[i] = double(value)


@loose_kernel
def total(values):
    found = 0.0
    for i in range(len(values)):
        found += values[i]
    return found


@inner_kernel
def scale(pair, start):
    out = np.empty(len(pair.values))
    fill(out, 0, 1.5)
    for i in range(start, len(out)):
        out[i] += pair.factor * pair.values[i]
    return out, total(pair.values)


def outer(pair):
    out, found = scale(pair, 0)
    fill(out, len(out) - 1, 4.0)
    more = np.empty(len(out))
    more[:] = 1.0
    return out, more, found


def other(n):
    return np.empty(n)


def bits(x):
    return get_bits(x)


PAIR = Pair(np.arange(3.0), 2.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The one folder that kernels are kept in."""
    folder = tmp_path / "rankwright-here"
    monkeypatch.setattr(caching, "_folders", lambda: (folder,))
    return folder


@pytest.fixture
def fresh(monkeypatch):
    """A function that makes the kernels of this module anew, as a new process would."""

    def make():
        here = sys.modules[__name__]
        for name, decorate in (("double", inlined), ("fill", inner_kernel), ("total", loose_kernel), ("scale", inner_kernel)):  # fmt: skip
            old = getattr(here, name)
            monkeypatch.setattr(here, name, decorate(getattr(old, "py_func", old)))
        return kernel(outer)

    return make


class Compiled(event.Listener):
    """The names of the functions that are compiled."""

    def __init__(self):
        self.names = []

    def on_start(self, found):
        self.names.append(found.data["dispatcher"].py_func.__name__)

    def on_end(self, found):
        pass


def list_compiled(fn, *arguments):
    """Call a function; return the names of all functions that were compiled."""
    with event.install_listener("numba:compile", listener := Compiled()):
        fn(*arguments)
    return listener.names


def check(found):
    out, more, summed = found
    assert (out.tolist(), more.tolist(), summed) == ([3.0, 5.0, 8.0], [1.0, 1.0, 1.0], 3.0)


def test_inner_kernels_do_what_functions_do(folder, fresh):
    check(fresh()(PAIR))


def test_inner_kernels_can_be_called_from_python():
    out = np.zeros(3)
    fill(out, 1, 2.0)
    assert out.tolist() == [0.0, 4.0, 4.0]
    assert double(2.5) == 5.0


@needs_compiler
def test_constants_are_no_types_and_inner_kernels_no_machine_code(folder, fresh):
    check(fresh()(PAIR))
    [code] = fill.overloads.values()  # called with 0 and with a number that is computed
    assert isinstance(code.library, InnerLibrary)
    assert code.library._compiled_object is None


@needs_compiler
def test_what_numpy_offers_is_compiled_once(folder, fresh):
    check(fresh()(PAIR))
    assert list_compiled(kernel(other), 3) == ["other"]


@needs_compiler
def test_inner_kernels_are_kept_for_other_kernels(folder, fresh):
    first = list_compiled(fresh(), PAIR)
    assert {"outer", "scale", "fill", "double", "total"} <= set(first)
    assert list_compiled(fresh(), PAIR) == []
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == {
        f"test_compiling.{name}" for name in ("outer", "scale", "fill", "double", "total")
    }
    [path] = folder.glob("test_compiling.outer-*")
    path.unlink()
    again = fresh()
    assert list_compiled(again, PAIR) == ["outer"]
    check(again(PAIR))


def test_the_bits_of_a_number():
    assert kernel(bits)(1.5) == np.float64(1.5).view(np.int64)


def list_kernels():
    """Each kernel of the package: its file, how it is decorated, and its definition."""
    for path in sorted((PACKAGE / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {each.id for each in node.decorator_list if isinstance(each, ast.Name)} & DECORATORS
                if names:
                    yield path, names.pop(), node


SLOW = {"sort", "argsort", "unique", "searchsorted", "bincount", "cumsum", "concatenate", "repeat", "where", "full", "arange"}  # fmt: skip
SLOW_METHODS = {"sum", "max", "min", "mean", "std", "any", "all", "copy", "astype", "argsort", "sort", "view"}
# compiled only for queries of thousands of documents, or by an inspection of data
RARELY_USED = {"fidelity_modes.py", "pair_orders.py", "column_summaries.py"}


def is_array(value):
    """Whether what is assigned to a slice may be an array: anything but numbers."""
    if isinstance(value, ast.Tuple):
        return any(is_array(each) for each in value.elts)
    if isinstance(value, ast.Subscript):
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return any(isinstance(each, ast.Slice) for each in parts)
    return isinstance(value, ast.Call | ast.Name)


def find_slow_constructs(node):
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            of, name = each.func.value, each.func.attr
            if isinstance(of, ast.Name) and of.id == "np":
                if name in SLOW:
                    yield f"np.{name}"
            elif name in SLOW_METHODS and not (isinstance(of, ast.Name) and of.id == "math"):
                yield f".{name}()"
        if isinstance(each, ast.Assign):
            for target in each.targets:
                for part in ast.walk(target):
                    if (
                        isinstance(part, ast.Subscript)
                        and any(isinstance(at, ast.Slice) for at in ast.walk(part.slice))
                        and is_array(each.value)
                    ):
                        yield "an array written to a slice"


def test_kernels_are_made_of_what_compiles_quickly():
    """A loop over documents compiles in a hundredth of a second; each of these takes a tenth to a whole one."""
    found = [
        f"{path.name}, {node.name}: {what}"
        for path, _, node in list_kernels()
        if path.name not in RARELY_USED
        for what in find_slow_constructs(node)
    ]
    assert found == [], "; ".join(found)


def test_kernels_that_only_kernels_call_are_inner_kernels():
    words = set()
    for path in PACKAGE.rglob("*.py"):
        if not path.is_relative_to(PACKAGE / "kernels"):
            words |= set(re.findall(r"\w+", path.read_text("utf-8")))
    kernels = [(kind, node.name) for _, kind, node in list_kernels()]
    assert len(kernels) > 200
    assert [name for kind, name in kernels if kind == "kernel" and name not in words] == []


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["DirectRank", "SVMNDCG", "FRank", "LambdaMART"])
def test_the_first_fit_ever_is_quick_and_the_second_process_compiles_nothing(ranker, tmp_path):
    source = tmp_path / "rankwright"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    first, second = (cold_start.fit_in_new_process(ranker, tmp_path) for _ in range(2))
    assert first["fit"] < 2 * cold_start.LIMIT  # the machine may have other work
    assert len(first["kernels"]) < 120
    assert second["kernels"] == {}


def test_a_numba_that_was_not_tested_compiles_as_it_does_itself(monkeypatch):
    monkeypatch.setattr(jit, "_TESTED", False)
    plain = {each.__name__: make(each.py_func) for each, make in ((fill, inner_kernel), (total, loose_kernel))}
    assert {each._compiler.pipeline_class.__module__ for each in plain.values()} == {"numba.core.compiler"}
    out = np.zeros(4)
    plain["fill"](out, 1, 1.5)
    assert out.tolist() == [0.0, 3.0, 3.0, 3.0]
    assert plain["total"](out) == 9.0
