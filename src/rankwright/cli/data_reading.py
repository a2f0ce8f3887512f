"""Reading of the data that a command names: here, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.data.column_roles import ColumnRoles
    from rankwright.data.queries import Queries
    from rankwright.runtime.backends import Backend

DATA_HELP = "a table or LETOR text; with a cluster as --backend also a pattern, a folder or an address of its workers"


def is_read_by_workers(paths: Sequence[str], backend: Backend | None) -> bool:
    """Return whether the workers of a cluster read these data: with one as backend, all but files that are here.

    Raise InputError for an address without a cluster.
    """
    from pathlib import Path

    from rankwright.basics.errors import InputError
    from rankwright.runtime.dask_backend import Dask

    if isinstance(backend, Dask):
        return not all(Path(path).exists() and not Path(path).is_dir() for path in paths)
    for path in paths:
        if "://" in path:
            raise InputError(f"{path}: an address; expected --backend with a Dask scheduler, whose workers read it")
    return False


def read_queries(
    paths: Sequence[str], columns: ColumnRoles, backend: Backend | None, known: Mapping[str, Any] | None = None
) -> Queries:
    """Read judged documents; ``known`` are the options of ``open_source`` for the features of other data."""
    from rankwright.data.distributed_queries import read_on_workers
    from rankwright.data.reading import open_source
    from rankwright.runtime.dask_backend import Dask

    if is_read_by_workers(paths, backend) and isinstance(backend, Dask):
        queries: Queries = read_on_workers(paths, columns, backend=backend, known=known or {})
        if not known and not queries.has_grades:
            queries.y  # noqa: B018 - raises InputError
        return queries
    source = open_source(paths, columns, **known or {})
    if not known:
        source.check_grades(paths[0])
    return source.read()


def read_like(train: Queries, path: str, columns: ColumnRoles, backend: Backend | None) -> Queries:
    """Read a file with the features of the training data."""
    known: dict[str, Any] = {"features": train.features, "categories": train.categories, "owner": "the training data"}
    return read_queries([path], columns, backend, known | {"n_features": train.n_features})
