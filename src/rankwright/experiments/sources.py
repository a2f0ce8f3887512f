"""Sources: where an experiment's folds come from. A source is a small picklable value; a worker reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankwright.backends import Serial
from rankwright.data import Queries
from rankwright.errors import InputError, suggest
from rankwright.folds import Fold, cut_folds, read_folds
from rankwright.letor import read_letor
from rankwright.trec import read_trec


class Source(Hashable, Protocol):
    """Where folds come from."""

    @property
    def n_folds(self) -> int:
        """The number of folds, without reading them."""
        ...

    def fold(self, index: int) -> Fold:
        """Read one fold."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What a spec says."""
        ...


@dataclass(frozen=True)
class FoldFolder:
    """A folder of folds, or of the parts that folds are made of."""

    folds: str

    @property
    def n_folds(self) -> int:
        """As many as the folder has."""
        return len(read_folds(self.folds))

    def fold(self, index: int) -> Fold:
        """Read the files of the fold."""
        return read_folds(self.folds, Serial())[index]

    def to_json(self) -> dict[str, Any]:
        """The folder."""
        return asdict(self)


@dataclass(frozen=True)
class _Cut:
    """One set of queries, cut into folds."""

    k: int = 5
    seed: int = 0

    @property
    def n_folds(self) -> int:
        """As many as the spec says."""
        return self.k

    def fold(self, index: int) -> Fold:
        """Cut the fold out."""
        return cut_folds(_read_whole(self), self.k, self.seed)[index]

    def read(self) -> Queries:
        """All queries."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The files, and how they are cut."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class LetorFiles(_Cut):
    """One or several LETOR files, cut into folds by query."""

    file: tuple[str, ...] = ()

    def read(self) -> Queries:
        """Read the files as one."""
        return read_letor(*self.file, backend=Serial())


@dataclass(frozen=True)
class TrecFiles(_Cut):
    """TREC runs as features and judgments as grades, cut into folds by query."""

    qrels: str = ""
    runs: tuple[str, ...] = ()

    def read(self) -> Queries:
        """Read and join the files."""
        return read_trec(self.qrels, self.runs)


@dataclass(frozen=True)
class SavedQueries(_Cut):
    """Queries that were handed over in Python and saved beside the results."""

    saved: str = ""

    def read(self) -> Queries:
        """Read the arrays; no code is run."""
        return load_queries(Path(self.saved))


@dataclass(frozen=True)
class SavedFolds:
    """Folds that were handed over in Python and saved beside the results."""

    saved_folds: str
    n: int

    @property
    def n_folds(self) -> int:
        """As many as were given."""
        return self.n

    def fold(self, index: int) -> Fold:
        """Read the arrays of a fold."""
        return Fold(*(load_queries(Path(self.saved_folds) / f"fold{index + 1}-{part}.npz") for part in Fold._fields))

    def to_json(self) -> dict[str, Any]:
        """The folder."""
        return asdict(self)


_FIELDS: dict[str, type[Any]] = {
    "folds": FoldFolder,
    "file": LetorFiles,
    "qrels": TrecFiles,
    "saved": SavedQueries,
    "saved_folds": SavedFolds,
}


def source_from_json(content: Mapping[str, Any], folder: Path) -> Source:
    """The source that a spec describes; paths are taken from ``folder``."""
    kinds = [kind for name, kind in _FIELDS.items() if name in content]
    if len(kinds) != 1:
        raise InputError("data: expected one of folds (a folder), file (and k), or qrels and runs (and k)")
    known = kinds[0].__dataclass_fields__
    arguments: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise InputError(f"data: unknown key {name!r}; {suggest(name, known)}")
        if name in ("k", "seed", "n"):
            if type(value) is not int:
                raise InputError(f"data.{name} is {value!r}; expected a whole number")
            arguments[name] = value
        elif name in ("file", "runs"):
            paths = [value] if isinstance(value, str) else value
            if not isinstance(paths, list) or not paths:
                raise InputError(f"data.{name} is {value!r}; expected a path or several")
            arguments[name] = tuple(_path(name, item, folder) for item in paths)
        else:
            arguments[name] = _path(name, value, folder)
    source: Source = kinds[0](**arguments)
    return source


def _path(name: str, value: Any, folder: Path) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"data.{name} is {value!r}; expected a path")
    return str((folder / Path(value).expanduser()).resolve())


@lru_cache(maxsize=1)
def _read_whole(source: _Cut) -> Queries:
    return source.read()


@lru_cache(maxsize=1)
def read_fold(source: Source, index: int) -> tuple[Fold, str]:
    """A fold and the digest of its data; the last one is remembered."""
    fold = source.fold(index)
    return fold, _digest(fold)


def _digest(fold: Fold) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in fold:
        for array in (part.X, part.y, part.indptr, part.query_weight):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join(map(str, part.qid.tolist())).encode())
    return digest.hexdigest()


def save_data(data: Queries | Sequence[Fold], folder: Path) -> Source:
    """Save data that lives in Python, so that workers and later runs can read it."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(data, Queries):
        save_queries(data, folder / "queries.npz")
        return SavedQueries(saved=str((folder / "queries.npz").resolve()))
    for i, fold in enumerate(data):
        for name, part in zip(Fold._fields, fold, strict=True):
            save_queries(part, folder / f"fold{i + 1}-{name}.npz")
    return SavedFolds(str(folder.resolve()), len(data))


def save_queries(queries: Queries, path: Path) -> None:
    """Save queries as plain arrays."""
    arrays: dict[str, Any] = {"X": queries.X, "y": queries.y, "indptr": queries.indptr, "qid": _texts(queries.qid)}
    if queries.docid is not None:
        arrays["docid"] = _texts(queries.docid)
    if queries.weight is not None:
        arrays["weight"] = queries.weight
    if queries.features is not None:
        arrays["features"] = np.array(queries.features, dtype=str)
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("wb") as file:
        np.savez(file, **arrays)
    temporary.replace(path)


def load_queries(path: Path) -> Queries:
    """Load queries saved by :func:`save_queries`; runs no code."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    features = tuple(found.pop("features").tolist()) if "features" in found else None
    return Queries(**found, features=features)


def _texts(ids: np.ndarray) -> np.ndarray:
    return ids if ids.dtype.kind in "iu" else ids.astype(str)
