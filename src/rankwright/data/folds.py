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
_EXPECTED = (
    "expected folders Fold1, Fold2, ..., or parts S1.txt, S2.txt, ..., or the files train.txt, vali.txt and test.txt"
)

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
        if not -len(self) <= index < len(self):
            raise IndexError(f"no fold {index}; there are the folds 0 to {len(self) - 1}")
        train_files, *others = self.files[index]
        train = open_source(train_files, self.columns).read(self.backend)
        parts = [train]
        known: dict[str, Any] = {"features": train.features, "categories": train.categories}
        for files in others:
            source = open_source(files, self.columns, **known, owner="the training data")
            parts.append(source.read(self.backend))
        width = max(part.n_features for part in parts)
        return Fold(*(_widen(part, width) for part in parts))


def read_folds(
    folder: StrPath, backend: Backend | None = None, *, columns: ColumnRoles = NO_ROLES, split: str = ""
) -> Folds:
    """Open the folds of a folder: ``Fold1``, ``Fold2``, ... with a training, a validation and a test file each.

    Files are called ``train``, ``vali`` and ``test``, or ``trainingset``, ``validationset`` and ``testset``, with
    ``.txt`` or the suffix of another format, and perhaps ``.gz`` or ``.xz``. A folder may also hold the parts
    ``S1.txt``, ``S2.txt``, ... that LETOR makes its folds of: fold i tests on the part before part i, validates on the
    one before that, and trains on the rest, from part i on. A folder that has the three files itself is one fold, as
    Istella's is. So are three files with a name of their split in front, as Yahoo's ``set1.train.txt``,
    ``set1.valid.txt`` and ``set1.test.txt``; where a folder has several splits, ``split="set1"`` chooses one.

    A fold is read when it is indexed: ``train, valid, test = read_folds(folder)[0]``. Validation and test files are
    read with the features of the training file, where these have names.

    Parameters
    ----------
    folder : str or path
        The folder.
    backend : Serial, Threads or None
        Where to parse the files.
    columns : ColumnRoles
        The roles of the columns of tables, as :func:`rankwright.read` takes them.
    split : str
        The name of one split, such as ``set1``, where the folder has several.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; {_EXPECTED}")
    numbered, cut = _find_folds(folder), _find_cut_parts(folder)
    if numbered and not split:
        return Folds(tuple(_find_parts(each) for each in numbered.values()), backend, columns)
    if len(cut) >= 3 and not split:
        parts = tuple(cut.values())
        rotated = [(*parts[i:], *parts[:i]) for i in range(len(parts))]
        return Folds(tuple((files[:-2], files[-2:-1], files[-1:]) for files in rotated), backend, columns)
    return Folds((_find_parts(folder, split or _choose_split(folder)),), backend, columns)


def list_missing_files(folder: StrPath, n_folds: int, split: str = "") -> list[str]:
    """Return the names of the files that a folder lacks to have ``n_folds`` folds, or for one fold a fixed split.

    A folder of a fold that is not there has one name, such as ``Fold3``. For parts S1.txt, S2.txt, ... the names are of
    parts.
    """
    folder = Path(folder)
    if n_folds == 1:
        return _list_missing_parts(folder, split)
    folds, cut = _find_folds(folder), _find_cut_parts(folder)
    numbers = range(1, n_folds + 1)
    if cut and not folds:
        return [f"S{number}.txt" for number in numbers if number not in cut]
    missing = []
    for number in numbers:
        if number in folds:
            missing += [f"{folds[number].name}/{name}" for name in _list_missing_parts(folds[number])]
        else:
            missing.append(f"Fold{number}")
    return missing


def list_usual_names(split: str = "") -> list[str]:
    """Return the usual names of a training, a validation and a test file: LETOR's, or those of a split as Yahoo's.

    >>> list_usual_names(), list_usual_names("set1")
    (['train.txt', 'vali.txt', 'test.txt'], ['set1.train.txt', 'set1.valid.txt', 'set1.test.txt'])
    """
    return (
        [f"{split}.{name}.txt" for name in ("train", "valid", "test")]
        if split
        else ["train.txt", "vali.txt", "test.txt"]
    )


def has_folds(path: StrPath) -> bool:
    """Return whether a path is a folder of folds; a file or a folder that is one data set is not.

    Any other folder counts as one of folds, so that the error says which names were expected.
    """
    folder = Path(path)
    if not folder.is_dir():
        return False
    if _find_folds(folder) or len(_find_cut_parts(folder)) >= 3:
        return True
    if any(not _list_missing_parts(folder, split) for split in _find_splits(folder)):
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

    Parameters
    ----------
    queries : Queries
        The queries to cut.
    n : int
        The number of folds.
    random_state : int, Generator or None
        The seed of the shuffle; None takes a new one.

    Examples
    --------
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


def _find_folds(folder: Path) -> dict[int, Path]:
    """Return the folders Fold1, Fold2, ... in a folder by their numbers, in order."""
    return _find_numbered("fold", [path for path in _list_entries(folder) if path.is_dir()])


def _find_cut_parts(folder: Path) -> dict[int, Path]:
    """Return the parts S1.txt, S2.txt, ... in a folder by their numbers, in order."""
    return _find_numbered("s", _list_entries(folder))


def _find_numbered(name: str, paths: list[Path]) -> dict[int, Path]:
    """Return the paths called ``name`` and a number, such as Fold2, by that number, in order."""
    found = {int(match[1]): path for path in paths if (match := re.fullmatch(f"{name}([0-9]+)", _strip_suffixes(path)))}
    return dict(sorted(found.items()))


def _list_entries(folder: Path) -> list[Path]:
    """Return the files and folders in a folder in the order of their names; none if it is not there."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _find_splits(folder: Path) -> list[str]:
    """Return the names of the splits with training files in a folder: set1 for set1.train.txt, "" for train.txt."""
    names = "|".join(_PART_NAMES[0])
    stems = map(_strip_suffixes, _list_entries(folder))
    return sorted({match[1] or "" for stem in stems if (match := re.fullmatch(rf"(?:(.+)\.)?(?:{names})", stem))})


def _choose_split(folder: Path) -> str:
    """Return the name of the only split in a folder; raise InputError if there are none or several."""
    splits = _find_splits(folder)
    if not splits:
        raise InputError(f"{folder}: no folds; {_EXPECTED}")
    if splits[0] and len(splits) > 1:
        raise InputError(
            f"{folder}: the splits {', '.join(splits)}; expected one. Name it: split={splits[0]!r} in read_folds, "
            f'split = "{splits[0]}" in the [data] of a spec'
        )
    return splits[0]


def _find_parts(folder: Path, split: str = "") -> tuple[Files, Files, Files]:
    """Return the training, validation and test files of a folder, or of one split in it."""
    train, valid, test = ((_find_part(folder, names),) for names in _name_parts(split))
    return train, valid, test


def _name_parts(split: str) -> list[tuple[str, ...]]:
    """Return the names that the training, validation and test files of a split may have, without their suffixes."""
    return [tuple(f"{split}.{name}" if split else name for name in names) for names in _PART_NAMES]


def _list_missing_parts(folder: Path, split: str = "") -> list[str]:
    """Return the usual names of the training, validation and test files that a folder, or one split in it, lacks."""
    found = {_strip_suffixes(path) for path in _list_entries(folder)}
    parts = zip(list_usual_names(split), _name_parts(split), strict=True)
    return [usual for usual, names in parts if found.isdisjoint(map(str.lower, names))]


def _strip_suffixes(path: Path) -> str:
    """Return a file's name in lower case, without the suffixes of a format and of its compression."""
    name = path.name.lower()
    for suffix in (".gz", ".xz", ".zst"):
        name = name.removesuffix(suffix)
    stem, _, suffix = name.rpartition(".")
    return stem if suffix in _FORMATS else name


def _find_part(folder: Path, names: tuple[str, ...]) -> Path:
    """Return the file in a folder whose name without suffixes is one of these; raise InputError if there is none."""
    wanted = [name.lower() for name in names]
    for path in _list_entries(folder):
        if _strip_suffixes(path) in wanted:
            return path
    raise InputError(f"{folder}: no {names[0]}.txt; expected one of {', '.join(f'{n}.txt' for n in names)}")


def _widen(queries: Queries, width: int) -> Queries:
    """Return queries with ``width`` features; those that the file did not mention are 0 everywhere."""
    missing = width - queries.n_features
    return queries.with_X(np.pad(queries.X, ((0, 0), (0, missing)))) if missing else queries
