"""What the compiler of kernels does: a notice of each kernel that is compiled in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core import event

from rankwright.kernels import caching

_listener: Any = event.Listener  # Numba ships no types


class _CompilationListener(_listener):  # type: ignore[misc]
    """A listener to the compiler that calls a function with the name of each kernel before it is compiled."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell

    def on_start(self, found: Any) -> None:
        """Take the beginning of a compilation."""
        function = found.data["dispatcher"].py_func
        self.tell(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, found: Any) -> None:
        """Take the end of a compilation."""


def list_cache_folders() -> tuple[Path, ...]:
    """Return the folders that compiled kernels are loaded from, best first."""
    return caching.list_trusted_folders()


@contextmanager
def list_compiled_kernels() -> Iterator[list[str]]:
    """Collect the names of the kernels that are compiled inside the block; those loaded from the cache are not."""
    names: list[str] = []
    with event.install_listener("numba:compile", _CompilationListener(names.append)):
        yield names


@contextmanager
def listen_to_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once, when the first kernel is compiled inside the block."""
    is_known = False

    def tell_once(name: str) -> None:
        nonlocal is_known
        if not is_known:
            is_known = True
            tell()

    with event.install_listener("numba:compile", _CompilationListener(tell_once)):
        yield
