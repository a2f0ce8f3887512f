"""The one way kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(fn: F) -> F:
    """Compile on first use, cache on disk, release the GIL while running."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(fn))
