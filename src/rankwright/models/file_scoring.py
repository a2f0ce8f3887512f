"""Scoring of files on the workers of a cluster: a file of scores for each file of documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, write_atomic
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.distributed_queries import find_cluster
from rankwright.data.distributed_reading import SCORES, list_partitions, open_file_system, open_locally
from rankwright.data.score_files import open_scores
from rankwright.models.block_scoring import open_for_model, score_blocks
from rankwright.models.imports import as_model
from rankwright.models.model import Model
from rankwright.runtime.dask_backend import Dask
from rankwright.runtime.dask_store import find_worker


def score_files(
    model: Any,
    paths: StrPath | Sequence[StrPath],
    out: StrPath,
    *,
    backend: Dask | None = None,
    qid: str | None = None,
    label: str | None = None,
    docid: str | None = None,
    weight: str | None = None,
    doc_weight: str | None = None,
    ignore: Sequence[str] = (),
) -> list[str]:
    """Score the documents of files on the workers of a cluster, and write a file of scores for each.

    Nothing of the documents comes to this machine. A file is read block by block, and its scores are in the order of
    its rows, one per line.

    Parameters
    ----------
    model : fitted ranker or model
        What scores the documents.
    paths : str, path, or list of these
        Files, patterns, folders or addresses, as ``DistributedQueries.read`` takes them.
    out : str or path
        The folder to write to, or an address that fsspec knows. The workers must see it.
    backend : Dask, optional
        The cluster; by default that of the client which was made last.
    qid, label, docid, weight, doc_weight, ignore : optional
        The columns of tables, as in ``rankwright.read``.

    Returns
    -------
    list of str
        The files of scores, in the order of the files of documents.
    """
    roles = ColumnRoles(qid=qid, label=label, docid=docid, weight=weight, doc_weight=doc_weight, ignore=ignore)
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    return score_parts(as_model(model), listed, out, find_cluster(backend), roles)


def score_parts(model: Model, paths: Sequence[StrPath], out: StrPath, cluster: Dask, roles: ColumnRoles) -> list[str]:
    """Score the documents of files on the workers as ``score_files`` does."""
    names = list_partitions(cluster, paths)
    if model.scaling is not None:
        _check_whole_queries(cluster.gather(_list_query_ids, cluster.distribute(names), model, roles), names)
    folder = str(out) if "://" in str(out) else str(Path(out).absolute())
    files = [f"{folder}/{name}{SCORES}" for name in _shorten(names)]
    read = {*names}
    for file in files:
        if file in read:
            raise InputError(f"{file}: one of the files that are read; choose another folder")
    if "://" not in folder and names:
        _check_is_shared(folder, cluster)
    cluster.gather(_score_file, cluster.distribute(list(zip(names, files, strict=True))), model, roles)
    return files


def _check_is_shared(folder: str, cluster: Dask) -> None:
    """Raise InputError if a worker does not see what another one writes to a folder."""
    mark = Path(folder) / f".{uuid4().hex}"
    on_one, on_all = cluster.distribute([mark]), cluster.distribute([mark] * cluster.n_workers)
    [writer] = cluster.gather(_leave_mark, on_one)
    try:
        others = [worker for worker in cluster.gather(_find_blind_worker, on_all) if worker is not None]
    finally:
        cluster.gather(_remove_mark, on_one)
    if others:
        raise InputError(
            f"{folder}: the worker {others[0]} does not see what {writer} writes there; expected a folder that all "
            "workers share, or an address"
        )


def _leave_mark(mark: Path) -> str:
    """Write an empty file, and return which worker this is."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return str(find_worker().address)


def _find_blind_worker(mark: Path) -> str | None:
    """Return which worker this is if it does not see a file."""
    return None if mark.exists() else str(find_worker().address)


def _remove_mark(mark: Path) -> None:
    """Remove a file."""
    mark.unlink(missing_ok=True)


def _shorten(names: Sequence[str]) -> list[str]:
    """Return names of files without the folders that all of them are in.

    >>> _shorten(["/data/a/1.txt", "/data/b/1.txt"]), _shorten(["/data/1.txt"])
    (['a/1.txt', 'b/1.txt'], ['1.txt'])
    """
    parts = [name.rstrip("/").split("/") for name in names]
    shared = 0
    while all(len(each) > shared + 1 and each[shared] == parts[0][shared] for each in parts):
        shared += 1
    return ["/".join(each[shared:]) for each in parts]


def _check_whole_queries(ids: Sequence[set[Any]], names: Sequence[str]) -> None:
    """Raise InputError if a query has documents in two files."""
    seen: dict[Any, str] = {}
    for own, name in zip(ids, names, strict=True):
        for query in own:
            if query in seen:
                raise InputError(
                    f"query {query} has rows in {seen[query]} and in {name}; the model scales features within each "
                    "query, and expects its rows in one file. Score DistributedQueries.read(...), which joins them"
                )
            seen[query] = name


def _list_query_ids(name: str, model: Model, roles: ColumnRoles) -> set[Any]:
    """Return the query ids in a file, on a worker."""
    with open_locally(name) as path:
        return {
            str(query) for block in open_for_model(model, [path], roles).read_blocks() for query in block.qid.tolist()
        }


def _score_file(task: tuple[str, str], model: Model, roles: ColumnRoles) -> None:
    """Score the documents of a file and write their scores, on a worker."""
    name, file = task
    with TemporaryDirectory() as folder, open_locally(name) as path:
        is_address = "://" in file
        target = Path(folder) / "scores" if is_address else Path(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if path.is_file() and path.stat().st_size == 0:
                with write_atomic(target):
                    pass
            else:
                with open_scores(target) as write:
                    for _, [scores] in score_blocks([model], open_for_model(model, [path], roles)):
                        write(scores)
        except InputError as error:
            raise InputError(str(error).replace(str(path), name)) from None
        if is_address:
            system, place = open_file_system(file)
            system.makedirs(place.rpartition("/")[0], exist_ok=True)
            system.put(str(target), place)
