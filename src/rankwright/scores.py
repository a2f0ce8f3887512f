"""Score files: one score per line, in the order of the documents in their file."""

from __future__ import annotations

import math

import numpy as np

from rankwright.data import Floats, Queries
from rankwright.errors import InputError
from rankwright.files import StrPath, open_binary, write_atomic


def read_scores(path: StrPath, queries: Queries) -> Floats:
    """Read the scores of these documents, whatever tool wrote them; returned in the order of the rows."""
    values: list[float] = []
    with open_binary(path) as file:
        lines = file.read().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = float(line)
        except ValueError:
            found = line[:40].decode("utf-8", errors="backslashreplace")
            raise InputError(f"{path}:{number}: found {found!r}; expected one score per line") from None
        if not math.isfinite(value):
            raise InputError(f"{path}:{number}: found {value}; expected a finite score")
        values.append(value)
    if len(values) != queries.n_docs:
        raise InputError(f"{path}: {len(values)} scores; the data has {queries.n_docs} documents")
    return np.array(values)[queries.rows_of_caller]


def write_scores(scores: Floats, queries: Queries, path: StrPath) -> None:
    """Write the scores of these documents in the order of their file."""
    with write_atomic(path) as file:
        file.writelines(f"{score!r}\n" for score in queries.restore(scores).tolist())
