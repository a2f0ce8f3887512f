"""Score files: one score per line, in the order of the documents in their file, or CSV with their ids."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary, parse_decimals, skip_byte_order_mark, write_atomic
from rankwright.data.queries import Queries

_HEADER = ("qid", "docid", "score")  # of scores in CSV
_BLANKS = " \t\r\v\f"


def read_scores(path: StrPath, queries: Queries) -> Floats:
    """Read a file of one score per line, in the order of the rows, and return a score for each document."""
    values = read_score_lines(path)
    if len(values) != queries.n_docs:
        raise InputError(f"{path}: {len(values)} scores; the data has {queries.n_docs} documents")
    return values


def read_score_lines(path: StrPath) -> Floats:
    """Read a file of one score per line, where empty lines are skipped, or the CSV that ``open_score_table`` writes."""
    with open_binary(path) as file:
        text = skip_byte_order_mark(file.read()).decode("latin-1")  # whatever is not ASCII stays so, and is no number
    if text.partition("\n")[0].strip(_BLANKS) == ",".join(_HEADER):
        rows = csv.reader(io.StringIO(text, newline=""))
        lines = ["" if row == list(_HEADER) else row[-1] for row in rows if row]
    else:
        lines = [line.strip(_BLANKS) for line in text.split("\n")]
    try:
        values = parse_decimals([line for line in lines if line])
    except ValueError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        _raise_bad_score(path, lines)
    return values


def _raise_bad_score(path: StrPath, lines: list[str]) -> NoReturn:
    """Raise InputError with the number of the first line that is not a finite number."""
    for number, line in enumerate(lines, 1):
        try:
            [value] = parse_decimals([line]) if line else [0.0]
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            found = quote(line.encode("latin-1").decode("utf-8", errors="backslashreplace"))
            raise InputError(f"{path}:{number}: found {found}; expected one score per line, a finite number")
    raise AssertionError("every line is a number")


@contextmanager
def open_scores(path: StrPath | None) -> Iterator[Callable[[Floats], None]]:
    """Open a file of scores and yield a function that appends scores to it, one per line; it does nothing for None.

    The file is written whole or, if the block raises, not at all.
    """
    if path is None:
        yield lambda scores: None
        return
    with write_atomic(path) as file:
        yield lambda scores: file.writelines(f"{score!r}\n" for score in scores.tolist())


@contextmanager
def open_score_table(path: StrPath | None) -> Iterator[Callable[[NDArray[Any], NDArray[Any] | None, Floats], None]]:
    """Open a CSV file of scores and yield a function that appends rows: query ids, document ids, scores.

    Documents without ids are numbered from 1, as in runs. It does nothing for None. The file is written whole or, if
    the block raises, not at all.
    """
    if path is None:
        yield lambda qid, docid, scores: None
        return
    numbers = count(1)
    with write_atomic(path) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_HEADER)

        def write(qid: NDArray[Any], docid: NDArray[Any] | None, scores: Floats) -> None:
            names = islice(numbers, len(qid)) if docid is None else docid.tolist()
            rows.writerows(zip(qid.tolist(), names, map(repr, scores.tolist()), strict=True))

        yield write
