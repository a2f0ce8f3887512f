"""Data frames and arrays of Dask, whose partitions the workers of a cluster compute and convert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.frames import read_frame
from rankwright.data.queries import Queries
from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_backend import Dask


def compute_frames(cluster: Dask, frame: Any, roles: ColumnRoles) -> tuple[Shards[Queries | None], list[str]]:
    """Compute the partitions of a data frame on the workers, and return them and their names."""
    parts = _list_delayed(frame, "a Dask data frame")
    names = _name_partitions(parts)
    return cluster.apply(_convert_frame, cluster.persist(parts), cluster.distribute(names), roles), names


def compute_arrays(
    cluster: Dask, arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Shards[Queries | None], list[str]]:
    """Compute the chunks of rows of arrays on the workers, and return them as partitions, with their names.

    ``arrays`` are the arguments of ``Queries.from_arrays`` that have a row for each document, ``options`` the others.
    """
    blocks = {name: _list_blocks(array, name, arrays["X"]) for name, array in arrays.items() if array is not None}
    if len({len(each) for each in blocks.values()}) > 1:
        counts = ", ".join(f"{name} {len(each)}" for name, each in blocks.items())
        raise InputError(f"arrays with other numbers of chunks of rows: {counts}; expected the same chunks")
    delayed = require("dask").delayed(dict)
    rows = [delayed(**dict(zip(blocks, row, strict=True))) for row in zip(*blocks.values(), strict=True)]
    names = _name_partitions(rows)
    return cluster.apply(_convert_arrays, cluster.persist(rows), cluster.distribute(names), options), names


def _name_partitions(parts: Sequence[Any]) -> list[str]:
    """Return names of partitions for errors."""
    return [f"partition {number}" for number in range(len(parts))]


def _list_delayed(frame: Any, expected: str) -> list[Any]:
    """Return the partitions of a Dask collection, which Dask computes; raise InputError for anything else."""
    parts = list(frame.to_delayed()) if hasattr(frame, "to_delayed") else frame
    if not isinstance(parts, list | tuple) or not parts:
        raise InputError(
            f"found a {type(frame).__name__}; expected {expected}. Data of this machine: "
            "DistributedQueries.from_queries(queries, backend)"
        )
    return list(parts)


def _list_blocks(array: Any, name: str, X: Any) -> list[Any]:
    """Return the chunks of rows of a Dask array, cut as those of ``X``; raise InputError for anything else."""
    if not hasattr(array, "to_delayed") or not hasattr(X, "to_delayed"):
        return _list_delayed(array, f"a Dask array for {name}")
    if array.ndim == 2:
        array = array.rechunk({1: -1})
    elif array.chunks[0] != X.chunks[0] and array.shape == X.shape[:1]:
        array = array.rechunk((X.chunks[0],))
    return list(array.to_delayed().ravel())


def _convert_frame(frame: Any, name: str, roles: ColumnRoles) -> Queries | None:
    """Return a partition of a data frame as queries, on a worker; None if it has no rows."""
    if len(frame) == 0:
        return None
    try:
        return read_frame(frame, roles)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _convert_arrays(block: Mapping[str, Any], name: str, options: Mapping[str, Any]) -> Queries | None:
    """Return chunks of arrays as queries, on a worker; None if they have no rows."""
    if len(block["X"]) == 0:
        return None
    try:
        return Queries.from_arrays(**{"y": None, **block}, **options)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
