"""Sources of folds: small values that tell an experiment, and its workers, where to read its data."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.data.column_roles import NO_ROLES, ColumnRoles
from rankwright.data.document_pools import read_trec
from rankwright.data.folds import Fold, read_folds, split_folds
from rankwright.data.judgments import read_judgments
from rankwright.data.queries import Queries
from rankwright.data.reading import list_input_files, open_source
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.runtime.backends import Serial

Load = Callable[[Callable[[], Queries]], Queries]  # calls a function, or returns its earlier result


def _call(read: Callable[[], Queries]) -> Queries:
    """Call a function that reads queries, and return them; nothing is cached."""
    return read()


class FoldSource(ABC):
    """A source of folds, such as files: immutable and hashable and, unless its data are in memory, picklable."""

    @property
    @abstractmethod
    def n_folds(self) -> int:
        """The number of folds, without reading them."""

    @property
    def files(self) -> list[Path]:
        """The files that are read; none for data in memory."""
        return []

    @abstractmethod
    def read_fold(self, index: int, load: Load = _call) -> Fold:
        """Read one fold; where all queries are read for it, ``load`` is given the function that reads them."""

    def check_folds(self) -> None:  # noqa: B027 - most sources have their folds
        """Raise InputError if there are fewer queries than folds; read no more than that takes."""

    def save(self, folder: Path) -> FoldSource:
        """Return a source that workers and later runs can read; data in memory are saved in ``folder``."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the part of a spec that describes the data."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # type: ignore[call-overload]
        columns: ColumnRoles = getattr(self, "columns", NO_ROLES)
        content.pop("columns", None)
        return content if columns == NO_ROLES else content | {"columns": columns.to_json()}


@dataclass(frozen=True)
class FoldFolder(FoldSource):
    """A source of folds in a folder: folders of folds, the parts that folds are made of, or one fixed split."""

    folds: str
    columns: ColumnRoles = NO_ROLES
    split: str = ""  # the name of a split in front of its files' names, where the folder has several

    @property
    def n_folds(self) -> int:
        """The number of folds in the folder."""
        return len(read_folds(self.folds, split=self.split))

    @property
    def files(self) -> list[Path]:
        """The files of all folds."""
        folds = read_folds(self.folds, split=self.split)
        return list_input_files(sorted({path for fold in folds.files for part in fold for path in part}))

    def read_fold(self, index: int, load: Load = _call) -> Fold:
        """Read the files of the fold."""
        return read_folds(self.folds, Serial(), columns=self.columns, split=self.split)[index]

    def to_json(self) -> dict[str, Any]:
        """Return the part of a spec that describes the data; the name of a split is there where it was given."""
        content = super().to_json()
        return content if self.split else {key: value for key, value in content.items() if key != "split"}


@dataclass(frozen=True, kw_only=True)
class CutQueries(FoldSource):
    """A source of one data set that is cut into folds by query."""

    n_folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_folds < 3:
            found = f"{self.n_folds} fold{'s' * (self.n_folds != 1)}"
            raise InputError(f"{found}; expected at least 3: one to test on, one to choose on, the rest to train on")
        if self.seed < 0:
            raise InputError(f"data.seed is {self.seed}; expected a whole number of at least 0")

    def read_fold(self, index: int, load: Load = _call) -> Fold:
        """Read all queries and return one of the folds that they are cut into."""
        return self.cut(index, load(self.read_queries))

    def cut(self, index: int, queries: Queries) -> Fold:
        """Return one of the folds that the queries are cut into."""
        return split_folds(queries, self.n_folds, self.seed)[index]

    def check_folds(self) -> None:
        """Raise InputError if there are fewer queries than folds."""
        n = self._count_queries(self.n_folds)
        if n < self.n_folds:
            fewer = f"choose at most {n}, or " if n >= 3 else ""  # there are at least three folds
            raise InputError(f"{n} queries cannot make {self.n_folds} folds; {fewer}give more queries")

    @abstractmethod
    def read_queries(self) -> Queries:
        """Read all queries."""

    def _count_queries(self, most: int) -> int:
        """Return the number of queries, or an upper bound on it; counting may end at ``most``."""
        return len(self.read_queries())


@dataclass(frozen=True, kw_only=True)
class DocumentFiles(CutQueries):
    """A source of one or several files of judged documents, in any format, whose queries are cut into folds."""

    file: tuple[str, ...]
    columns: ColumnRoles = NO_ROLES

    @property
    def files(self) -> list[Path]:
        """The files of documents."""
        return list_input_files(self.file)

    def read_queries(self) -> Queries:
        """Read the files as one."""
        return open_source(self.file, self.columns).read(Serial())

    def _count_queries(self, most: int) -> int:
        source = open_source(self.file, self.columns)
        source.check_grades(self.file[0])
        return source.count_queries(most)


@dataclass(frozen=True, kw_only=True)
class TrecFiles(CutQueries):
    """A source of runs and judgments, cut into folds by query: the scores of runs are features."""

    qrels: str
    runs: tuple[str, ...]

    @property
    def files(self) -> list[Path]:
        """The file of judgments and those of the runs."""
        return [Path(self.qrels), *map(Path, self.runs)]

    def read_queries(self) -> Queries:
        """Read and join the files."""
        return read_trec(self.qrels, self.runs)

    def _count_queries(self, most: int) -> int:
        return min(len(read_judgments(self.qrels)), most)


@dataclass(frozen=True, kw_only=True)
class QueriesInMemory(CutQueries):
    """A source of one data set in memory, cut into folds by query."""

    queries: Queries

    def read_queries(self) -> Queries:
        """Return the queries."""
        return self.queries

    def save(self, folder: Path) -> FoldSource:
        """Save the queries in a folder, in a file named after their content."""
        return SavedQueries(n_folds=self.n_folds, seed=self.seed, saved=_save_in_folder(self.queries, folder))


@dataclass(frozen=True, kw_only=True)
class SavedQueries(CutQueries):
    """A source of a data set that was given in Python, and was saved beside the results."""

    saved: str

    @property
    def files(self) -> list[Path]:
        """The file of arrays."""
        return [Path(self.saved)]

    def read_queries(self) -> Queries:
        """Read the arrays; no code is run."""
        return load_queries(Path(self.saved))


@dataclass(frozen=True)
class FoldsInMemory(FoldSource):
    """A source of folds in memory, each with three data sets."""

    folds: tuple[Fold, ...]

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.folds)

    def read_fold(self, index: int, load: Load = _call) -> Fold:
        """Return a fold."""
        return self.folds[index]

    def save(self, folder: Path) -> FoldSource:
        """Save the parts of the folds in a folder, each in a file named after its content."""
        return SavedFolds(tuple(tuple(_save_in_folder(part, folder) for part in fold) for fold in self.folds))


@dataclass(frozen=True)
class SavedFolds(FoldSource):
    """A source of folds that were given in Python, and were saved beside the results."""

    saved_folds: tuple[tuple[str, ...], ...]  # the files of each fold's three parts

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.saved_folds)

    @property
    def files(self) -> list[Path]:
        """The files of arrays."""
        return sorted({Path(path) for fold in self.saved_folds for path in fold})

    def read_fold(self, index: int, load: Load = _call) -> Fold:
        """Read the arrays of a fold; no code is run."""
        return Fold(*(load_queries(Path(path)) for path in self.saved_folds[index]))


def _save_in_folder(queries: Queries, folder: Path) -> str:
    """Save a data set in a folder, which is made if needed, and return the path of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    return str(save_queries(queries, folder.resolve()))


_KINDS: dict[str, type[Any]] = {"folds": FoldFolder, "file": DocumentFiles, "qrels": TrecFiles}


def source_from_json(content: Mapping[str, Any], folder: Path) -> FoldSource:
    """Return the source of folds that a spec describes; relative paths start from ``folder``."""
    kinds = [kind for name, kind in _KINDS.items() if name in content]
    if len(kinds) != 1:
        raise InputError("data: expected one of folds (a folder), file (and n_folds), or qrels and runs (and n_folds)")
    known = kinds[0].__dataclass_fields__
    arguments: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise InputError(f"data: unknown key {quote(name)}; {suggest(name, known)}")
        if name in ("n_folds", "seed"):
            if type(value) is not int:
                raise InputError(f"data.{name} is {quote(value)}; expected a whole number")
            arguments[name] = value
        elif name == "split":
            if not isinstance(value, str):
                raise InputError(f"data.split is {quote(value)}; expected the name of a split, such as set1")
            arguments[name] = value
        elif name == "columns":
            arguments[name] = ColumnRoles.from_json(value, "data.columns")
        elif name in ("file", "runs"):
            paths = [value] if isinstance(value, str) else value
            if not isinstance(paths, list) or not paths:
                raise InputError(f"data.{name} is {quote(value)}; expected a path or several")
            arguments[name] = tuple(_resolve_path(name, item, folder) for item in paths)
        else:
            arguments[name] = _resolve_path(name, value, folder)
    if "qrels" in arguments and "runs" not in arguments:
        raise InputError("data.runs is missing; expected the runs whose scores are the features")
    source: FoldSource = kinds[0](**arguments)
    return source


def _resolve_path(name: str, value: Any, folder: Path) -> str:
    """Return the absolute path of a file in a spec; raise InputError if it is not a path."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"data.{name} is {quote(value)}; expected a path")
    try:
        return str((folder / Path(value).expanduser()).resolve())
    except RuntimeError as error:  # no such user, or links in a circle
        raise InputError(f"data.{name} is {quote(value)}: {error}") from None
