"""Files that the workers of a cluster read, each as a partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, NoDocumentsError
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.group_files import list_files_beside
from rankwright.data.mapped_header import FILE, is_mapped
from rankwright.data.queries import Queries
from rankwright.data.reading import open_source
from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_backend import Dask
from rankwright.runtime.dask_store import find_worker

SCORES = ".scores"  # how the names of files of scores end, which are no documents
_MAGIC = "*?["


def read_parts(
    cluster: Dask, paths: Sequence[StrPath], roles: ColumnRoles, known: Mapping[str, Any]
) -> tuple[Shards[Queries | None], list[str]]:
    """Read files on the workers, and return the partitions and the names of the files.

    ``known`` are options of ``open_source``, such as the features of a model.
    """
    names = list_partitions(cluster, paths)
    return cluster.apply(_read_part, cluster.distribute(names), roles, known), names


def list_partitions(cluster: Dask, paths: Sequence[StrPath]) -> list[str]:
    """Return the files and folders that paths mean on the workers of a cluster."""
    if not paths:
        raise InputError("no file to read; expected at least one")
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise InputError(
                f"found a {type(path).__name__} for a file; expected names: DistributedQueries.read(*files)"
            )
    places = [str(path) if "://" in str(path) else str(Path(path).absolute()) for path in paths]
    [names] = cluster.gather(_list_files, cluster.distribute([places]))
    return names


def _list_files(places: Sequence[str]) -> list[str]:
    """Return the partitions that paths mean, on a worker: files and folders of converted data, in order."""
    return [name for place in places for name in (_list_addresses(place) if "://" in place else _list_paths(place))]


def _list_paths(place: str) -> list[str]:
    """Return the partitions that a local path means."""
    whole = Path(place)
    if whole.is_dir() and not is_mapped(whole):
        found = _drop_companions(whole, sorted(each for each in whole.rglob("*")))
        if not found:
            raise InputError(f"{place}: the folder has no files {_say_where()}; expected the partitions of a data set")
        return found
    if any(each in place for each in _MAGIC) and not whole.exists():
        start = Path(whole.anchor)
        found = _drop_companions(start, sorted(start.glob(str(whole.relative_to(start)))), is_pattern=True)
        if not found:
            raise InputError(f"{place}: no file matches {_say_where()}; is it on storage that all workers share?")
        return found
    return [place]


def _drop_companions(root: Path, paths: Sequence[Path], is_pattern: bool = False) -> list[str]:
    """Return files and folders of converted data, without hidden ones, scores, and files that belong to others."""
    folders = {path for path in paths if path.is_dir() and is_mapped(path)}
    files = [path for path in paths if path in folders or (path.is_file() and not folders & {*path.parents})]
    if not is_pattern:
        files = [path for path in files if not any(part[0] in "._" for part in path.relative_to(root).parts)]
    beside = {each for path in files if path.is_file() for each in list_files_beside(path)}
    return [str(path) for path in files if path not in beside and (path.suffix != SCORES or is_pattern)]


def _list_addresses(place: str) -> list[str]:
    """Return the partitions that an address means, as fsspec knows it."""
    system, path = open_file_system(place)
    if any(each in path for each in _MAGIC):
        found = sorted(system.glob(path))
    elif system.isdir(path) and not system.exists(f"{path}/{FILE}"):
        found = [
            each
            for each in sorted(system.find(path))
            if not _is_hidden(each[len(path) :]) and not each.endswith(SCORES)
        ]
    else:
        found = [path]
    if not found:
        raise InputError(f"{place}: no file matches {_say_where()}; is it on storage that all workers share?")
    return [str(system.unstrip_protocol(each)) for each in found]


def _is_hidden(path: str) -> bool:
    """Return whether a part of a path begins as hidden files do."""
    return any(part[0] in "._" for part in path.split("/") if part)


def open_file_system(place: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there; raise InputError if fsspec does not know it."""
    try:
        return require("fsspec.core").url_to_fs(place)  # type: ignore[no-any-return]
    except (ValueError, ImportError) as error:
        raise InputError(f"{place}: {error}; expected an address that fsspec can open {_say_where()}") from None


def _read_part(name: str, roles: ColumnRoles, known: Mapping[str, Any]) -> Queries | None:
    """Read a file as a partition, on a worker; None if it has no documents."""
    with open_locally(name) as path:
        if path.is_file() and path.stat().st_size == 0:
            return None
        try:
            queries = open_source([path], roles, **known).read()
        except NoDocumentsError:
            return None
        except InputError as error:
            raise InputError(str(error).replace(str(path), name)) from None
        return queries if "://" not in name else queries.replace(X=np.array(queries.X))  # the copy is deleted


@contextmanager
def open_locally(name: str) -> Iterator[Path]:
    """Yield the path of a file or folder on this worker: its own, or that of a copy of what an address has."""
    if "://" not in name:
        if not Path(name).exists():
            raise InputError(f"{name}: there is no such file {_say_where()}; is it on storage that all workers share?")
        yield Path(name)
        return
    system, path = open_file_system(name)
    if "file" in system.protocol:
        yield Path(path)
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.rstrip("/").rpartition("/")[2]
        try:
            system.get(path, str(copy), recursive=system.isdir(path))
        except OSError as error:
            raise InputError(
                f"{name}: {error or type(error).__name__} {_say_where()}; can all workers reach it?"
            ) from None
        yield copy


def _say_where() -> str:
    """Return on which worker this is, for errors."""
    return f"on the worker {find_worker().address}"
