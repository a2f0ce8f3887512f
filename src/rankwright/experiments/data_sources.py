"""Sources: where an experiment's folds come from. A source is a small picklable value; a worker reads it."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.files import open_binary
from rankwright.data.folds import Fold, cut_folds, read_folds
from rankwright.data.letor import read_letor
from rankwright.data.queries import Queries
from rankwright.data.trec import read_trec
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.runtime.backends import Serial


class Source(Hashable, Protocol):
    """Where folds come from."""

    @property
    def n_folds(self) -> int:
        """The number of folds, without reading them."""
        ...

    def fold(self, index: int) -> Fold:
        """Read one fold."""
        ...

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        ...

    def check_folds(self) -> None:
        """Raise InputError if there are fewer queries than folds; read no more than that takes."""
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

    @property
    def files(self) -> list[Path]:
        """Every file of every fold."""
        return sorted({path for fold in read_folds(self.folds).files for part in fold for path in part})

    def check_folds(self) -> None:
        """Do nothing: the folder has its folds."""

    def to_json(self) -> dict[str, Any]:
        """The folder."""
        return asdict(self)


@dataclass(frozen=True)
class _Cut(ABC):
    """One set of queries, cut into folds."""

    k: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k < 3:
            raise InputError(
                f"{self.k} folds; expected at least 3: one to test on, one to choose on, the rest to train on"
            )
        if self.seed < 0:
            raise InputError(f"data.seed is {self.seed}; expected a whole number of at least 0")

    @property
    def n_folds(self) -> int:
        """As many as the spec says."""
        return self.k

    def fold(self, index: int) -> Fold:
        """Read, and cut the fold out."""
        return self.cut(index, self.read())

    def cut(self, index: int, queries: Queries) -> Fold:
        """Cut the fold out."""
        return cut_folds(queries, self.k, self.seed)[index]

    def check_folds(self) -> None:
        """Raise InputError if there are fewer queries than folds; read no more than that takes."""
        self.check_count(self._count_queries(self.k))

    def check_count(self, n: int) -> None:
        """Raise InputError if so many queries are too few for the folds."""
        if n < self.k:
            fewer = f"choose at most {n}, or " if n >= 3 else ""  # folds are three at least
            raise InputError(f"{n} queries cannot make {self.k} folds; {fewer}give more queries")

    @abstractmethod
    def _count_queries(self, most: int) -> int:
        """Return an upper bound on the number of queries; counting ends at ``most``."""

    @property
    @abstractmethod
    def files(self) -> list[Path]:
        """The files that are read."""

    @abstractmethod
    def read(self) -> Queries:
        """All queries."""

    def to_json(self) -> dict[str, Any]:
        """The files, and how they are cut."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class LetorFiles(_Cut):
    """One or several LETOR files, cut into folds by query."""

    file: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The LETOR files."""
        return [Path(path) for path in self.file]

    def read(self) -> Queries:
        """Read the files as one."""
        return read_letor(*self.file, backend=Serial())

    def _count_queries(self, most: int) -> int:
        return _count_ids(self.files, 1, most)


@dataclass(frozen=True)
class TrecFiles(_Cut):
    """TREC runs as features and judgments as grades, cut into folds by query."""

    qrels: str = ""
    runs: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """Judgments and runs."""
        return [Path(self.qrels), *map(Path, self.runs)]

    def read(self) -> Queries:
        """Read and join the files."""
        return read_trec(self.qrels, self.runs)

    def _count_queries(self, most: int) -> int:
        return _count_ids([Path(self.qrels)], 0, most)


@dataclass(frozen=True)
class SavedQueries(_Cut):
    """Queries that were handed over in Python and saved beside the results."""

    saved: str = ""

    @property
    def files(self) -> list[Path]:
        """The file of arrays."""
        return [Path(self.saved)]

    def read(self) -> Queries:
        """Read the arrays; no code is run."""
        return load_queries(Path(self.saved))

    def _count_queries(self, most: int) -> int:
        return len(self.read())


@dataclass(frozen=True)
class SavedFolds:
    """Folds that were handed over in Python and saved beside the results."""

    saved_folds: tuple[tuple[str, str, str], ...]  # of each fold, the files of its parts

    @property
    def n_folds(self) -> int:
        """As many as were given."""
        return len(self.saved_folds)

    @property
    def files(self) -> list[Path]:
        """The files of arrays."""
        return sorted({Path(path) for fold in self.saved_folds for path in fold})

    def fold(self, index: int) -> Fold:
        """Read the arrays of a fold."""
        return Fold(*(load_queries(Path(path)) for path in self.saved_folds[index]))

    def check_folds(self) -> None:
        """Do nothing: the folds are there."""

    def to_json(self) -> dict[str, Any]:
        """The files."""
        return {"saved_folds": [list(fold) for fold in self.saved_folds]}


_FIELDS: dict[str, type[Any]] = {"folds": FoldFolder, "file": LetorFiles, "qrels": TrecFiles}


def source_from_json(content: Mapping[str, Any], folder: Path) -> Source:
    """The source that a spec describes; paths are taken from ``folder``."""
    kinds = [kind for name, kind in _FIELDS.items() if name in content]
    if len(kinds) != 1:
        raise InputError("data: expected one of folds (a folder), file (and k), or qrels and runs (and k)")
    known = kinds[0].__dataclass_fields__
    arguments: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise InputError(f"data: unknown key {quote(name)}; {suggest(name, known)}")
        if name in ("k", "seed"):
            if type(value) is not int:
                raise InputError(f"data.{name} is {quote(value)}; expected a whole number")
            arguments[name] = value
        elif name in ("file", "runs"):
            paths = [value] if isinstance(value, str) else value
            if not isinstance(paths, list) or not paths:
                raise InputError(f"data.{name} is {quote(value)}; expected a path or several")
            arguments[name] = tuple(_path(name, item, folder) for item in paths)
        else:
            arguments[name] = _path(name, value, folder)
    if "qrels" in arguments and "runs" not in arguments:
        raise InputError("data.runs is missing; expected the runs whose scores are the features")
    source: Source = kinds[0](**arguments)
    return source


def _count_ids(paths: Sequence[Path], column: int, most: int) -> int:
    """Return the number of different words in a column of text files; counting ends at ``most``."""
    found: set[bytes] = set()
    for path in paths:
        with open_binary(path) as file:
            for line in file:
                words = line.split(None, column + 1)
                if len(words) > column and not words[0].startswith(b"#"):
                    found.add(words[column])
                    if len(found) >= most:
                        return most
    return len(found)


def _path(name: str, value: Any, folder: Path) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"data.{name} is {quote(value)}; expected a path")
    try:
        return str((folder / Path(value).expanduser()).resolve())
    except RuntimeError as error:  # no such user, or links in a circle
        raise InputError(f"data.{name} is {quote(value)}: {error}") from None


class _LastRead:
    """What each thread read last: threads that want the same share it, and one of them reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, _Reading] = {}

    def get(self, key: Hashable, read: Callable[[], Any]) -> Any:
        """Return what ``read`` returns, if no thread has it under this key."""
        with self._lock:
            found = next((reading for reading in self._by_thread.values() if reading.key == key), None)
            reading = found or _Reading(key)
            self._by_thread[threading.get_ident()] = reading
        with reading.lock:
            if reading.value is None:
                reading.value = read()
            return reading.value

    def clear(self) -> None:
        """Free everything."""
        with self._lock:
            self._by_thread.clear()


class _Reading:
    """Something that is read once, under its key."""

    def __init__(self, key: Hashable) -> None:
        self.key, self.lock, self.value = key, threading.Lock(), None


_folds, _whole = _LastRead(), _LastRead()


def read_fold(source: Source, index: int, run: str) -> tuple[Fold, str]:
    """A fold and the digest of its data; the last one of this run that a thread asked for is remembered."""

    def read() -> tuple[Fold, str]:
        if isinstance(source, _Cut):
            fold = source.cut(index, _whole.get((source, run), source.read))
        else:
            fold = source.fold(index)
        return fold, _digest(fold)

    found: tuple[Fold, str] = _folds.get((source, index, run), read)
    return found


def forget_folds() -> None:
    """Free what is remembered."""
    _folds.clear()
    _whole.clear()


def state_of(source: Source) -> list[tuple[str, int, int]]:
    """The files, their sizes and times: while these stay, so do the data."""
    return [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in source.files]


def _digest(fold: Fold) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in fold:
        _update(digest, part)
    return digest.hexdigest()


def _update(digest: Any, part: Queries) -> None:
    part = part.grouped()
    for array in (part.X, part.y, part.indptr, part.query_weight, *(part.unretrieved or ())):
        digest.update(np.ascontiguousarray(array))  # the bytes themselves, not a copy
    for names in (part.qid.tolist(), [] if part.docid is None else part.docid.tolist(), part.features or ()):
        digest.update("\n".join(map(str, names)).encode())


def save_data(data: Queries | Sequence[Fold], folder: Path) -> Source:
    """Save data that live in Python, under the name of their content, so that workers and later runs can read them."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    if isinstance(data, Queries):
        return SavedQueries(saved=str(save_queries(data, folder)))
    saved = ([str(save_queries(part, folder)) for part in fold] for fold in data)
    return SavedFolds(tuple((train, valid, test) for train, valid, test in saved))
