"""Fold folders as LETOR lays them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from rankwright.backends import Backend
from rankwright.data import Queries
from rankwright.errors import InputError
from rankwright.files import StrPath
from rankwright.letor import read_letor


class Fold(NamedTuple):
    """One fold: train on one part, choose on the second, test on the third."""

    train: Queries
    valid: Queries
    test: Queries


_PART_NAMES = (("train", "trainingset"), ("vali", "valid", "validationset"), ("test", "testset"))


@dataclass(frozen=True, slots=True)
class Folds(Sequence[Fold]):
    """Folds on disk, read when asked for."""

    folders: tuple[Path, ...]
    backend: Backend | None = None

    def __len__(self) -> int:
        return len(self.folders)

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> Folds: ...
    def __getitem__(self, index: int | slice) -> Fold | Folds:
        if isinstance(index, slice):
            return Folds(self.folders[index], self.backend)
        parts = [read_letor(_find_part(self.folders[index], names), backend=self.backend) for names in _PART_NAMES]
        width = max(part.n_features for part in parts)
        return Fold(*(_widen(part, width) for part in parts))


def read_folds(folder: StrPath, backend: Backend | None = None) -> Folds:
    """The folds of a LETOR folder: ``Fold1``, ``Fold2``, ... with a training, a validation and a test file each.

    Files are called ``train``, ``vali`` and ``test``, or ``trainingset``, ``validationset`` and ``testset``, with
    ``.txt`` and perhaps ``.gz`` or ``.xz``. A fold is read when it is indexed:
    ``train, valid, test = read_folds(folder)[0]``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder; expected one with Fold1, Fold2, ...")
    found = [p for p in folder.iterdir() if p.is_dir() and p.name.lower().removeprefix("fold").isdigit()]
    if not found:
        raise InputError(f"{folder}: no folds; expected folders Fold1, Fold2, ...")
    folders = tuple(sorted(found, key=lambda p: int(p.name.lower().removeprefix("fold"))))
    for each in folders:
        for names in _PART_NAMES:
            _find_part(each, names)
    return Folds(folders, backend)


def _find_part(folder: Path, names: tuple[str, ...]) -> Path:
    for path in sorted(folder.iterdir()):
        if path.name.lower().removesuffix(".gz").removesuffix(".xz").removesuffix(".txt") in names:
            return path
    raise InputError(f"{folder}: no {names[0]}.txt; expected one of {', '.join(f'{n}.txt' for n in names)}")


def _widen(queries: Queries, width: int) -> Queries:
    """Add features that are 0 everywhere, which the file did not mention."""
    missing = width - queries.n_features
    return queries.with_X(np.pad(queries.X, ((0, 0), (0, missing)))) if missing else queries
