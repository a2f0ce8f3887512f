"""Folds: folders as LETOR lays them out, and queries cut into folds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.randomness import make_generator
from rankwright.data.column_roles import NO_ROLES, ColumnRoles
from rankwright.data.queries import Queries
from rankwright.data.reading import open_source
from rankwright.runtime.backends import Backend


class Fold(NamedTuple):
    """A fold: queries to train on, to validate on and to test on."""

    train: Queries
    valid: Queries
    test: Queries


_PART_NAMES = (("train", "trainingset"), ("vali", "valid", "validationset"), ("test", "testset"))
_FORMATS = ("txt", "csv", "tsv", "parquet", "arrow", "feather", "ipc", "jsonl", "ndjson", "rwq")
_EXPECTED = "expected folders Fold1, Fold2, ... or parts S1.txt, S2.txt, ..."

Files = tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Folds(Sequence[Fold]):
    """The folds of a LETOR folder, as a sequence; a fold's files are read when it is indexed."""

    files: tuple[tuple[Files, Files, Files], ...]  # for each fold, the files to train, validate and test on
    backend: Backend | None = None
    columns: ColumnRoles = NO_ROLES

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> Folds: ...
    def __getitem__(self, index: int | slice) -> Fold | Folds:
        if isinstance(index, slice):
            return Folds(self.files[index], self.backend, self.columns)
        train_files, *others = self.files[index]
        train = open_source(train_files, self.columns).read(self.backend)
        parts = [train]
        known: dict[str, Any] = {"features": train.features, "categories": train.categories}
        for files in others:
            source = open_source(files, self.columns, **known, owner="the training data")
            parts.append(source.read(self.backend))
        width = max(part.n_features for part in parts)
        return Fold(*(_widen(part, width) for part in parts))


def read_folds(folder: StrPath, backend: Backend | None = None, *, columns: ColumnRoles = NO_ROLES) -> Folds:
    """Open the folds of a folder: ``Fold1``, ``Fold2``, ... with a training, a validation and a test file each.

    Files are called ``train``, ``vali`` and ``test``, or ``trainingset``, ``validationset`` and ``testset``, with
    ``.txt`` or the suffix of another format, and perhaps ``.gz`` or ``.xz``. A folder may also hold the parts
    ``S1.txt``, ``S2.txt``, ... that LETOR makes its folds of: fold i tests on the part before part i, validates on the
    one before that, and trains on the rest, from part i on. A fold is read when it is indexed:
    ``train, valid, test = read_folds(folder)[0]``. Validation and test files are read with the features of the
    training file, where these have names.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; {_EXPECTED}")
    numbered = _sort_by_number("fold", [p for p in folder.iterdir() if p.is_dir()])
    if numbered:
        return Folds(tuple(_find_parts(each) for each in numbered), backend, columns)
    cut = _sort_by_number("s", list(folder.iterdir()))
    if len(cut) < 3:
        raise InputError(f"{folder}: no folds; {_EXPECTED}")
    rotated = [(*cut[i:], *cut[:i]) for i in range(len(cut))]
    return Folds(tuple((files[:-2], files[-2:-1], files[-1:]) for files in rotated), backend, columns)


def has_folds(path: StrPath) -> bool:
    """Return whether a path is a folder of folds; a file or a folder that is one data set is not.

    Any other folder counts as one of folds, so that the error says which names were expected.
    """
    folder = Path(path)
    if not folder.is_dir():
        return False
    entries = list(folder.iterdir())
    if _sort_by_number("fold", entries) or len(_sort_by_number("s", entries)) >= 3:
        return True
    return folder.suffix.lower() != ".rwq" and not any(folder.rglob("*.parquet"))


@dataclass(frozen=True, slots=True, eq=False)
class FoldSplit(Sequence[Fold]):
    """The folds that one data set was cut into, as a sequence; a fold's queries are copied when it is indexed."""

    queries: Queries
    parts: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fold]: ...
    def __getitem__(self, index: int | slice) -> Fold | list[Fold]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        *train, valid, test = (*self.parts[at:], *self.parts[:at])
        return Fold(*(self.queries.take(np.sort(part)) for part in (np.concatenate(train), valid, test)))


def split_folds(queries: Queries, n: int = 5, random_state: int | np.random.Generator | None = None) -> FoldSplit:
    """Cut a data set into ``n`` folds of whole queries, each with training, validation and test queries.

    The queries are shuffled and dealt into ``n`` parts. Each part is the test set of one fold and the validation set
    of another; the rest trains.

    >>> from rankwright.data.synthetic import make_queries
    >>> [len(part) for part in split_folds(make_queries(11, random_state=0), 5, random_state=0)[0]]
    [7, 2, 2]
    """
    if n < 3:
        raise InputError(f"{n} folds; expected at least 3: one to test on, one to validate on, the rest to train on")
    if len(queries) < n:
        raise InputError(f"{len(queries)} queries cannot make {n} folds")
    order = make_generator(random_state).permutation(len(queries))
    return FoldSplit(queries, tuple(np.array_split(order, n)))


def _sort_by_number(name: str, paths: list[Path]) -> list[Path]:
    """Return the paths called ``name`` and a number, such as Fold2, sorted by that number."""
    found = {int(match[1]): path for path in paths if (match := re.fullmatch(f"{name}([0-9]+)", _strip_suffixes(path)))}
    return [found[number] for number in sorted(found)]


def _find_parts(folder: Path) -> tuple[Files, Files, Files]:
    """Return the training, validation and test files in the folder of a fold."""
    train, valid, test = ((_find_part(folder, names),) for names in _PART_NAMES)
    return train, valid, test


def _strip_suffixes(path: Path) -> str:
    """Return a file's name in lower case, without the suffixes of a format and of its compression."""
    name = path.name.lower()
    for suffix in (".gz", ".xz", ".zst"):
        name = name.removesuffix(suffix)
    stem, _, suffix = name.rpartition(".")
    return stem if suffix in _FORMATS else name


def _find_part(folder: Path, names: tuple[str, ...]) -> Path:
    """Return the file in a folder whose name without suffixes is one of these; raise InputError if there is none."""
    for path in sorted(folder.iterdir()):
        if _strip_suffixes(path) in names:
            return path
    raise InputError(f"{folder}: no {names[0]}.txt; expected one of {', '.join(f'{n}.txt' for n in names)}")


def _widen(queries: Queries, width: int) -> Queries:
    """Return queries with ``width`` features; those that the file did not mention are 0 everywhere."""
    missing = width - queries.n_features
    return queries.with_X(np.pad(queries.X, ((0, 0), (0, missing)))) if missing else queries
