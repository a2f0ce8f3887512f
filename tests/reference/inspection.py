"""Slow and obvious twins of the kernels of an inspection."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def summarise_column(column: np.ndarray, indptr: np.ndarray) -> dict[str, Any]:
    """Return the counts and extremes of one column."""
    values = [float(x) for x in column if x == x]
    texts = ["missing" if x != x else repr(float(x) + 0.0) for x in column]
    return {
        "missing": len(column) - len(values),
        "zeros": sum(x == 0 for x in values),
        "fractions": sum(not x.is_integer() or abs(x) >= 2**24 for x in values),
        "low": min(values, default=np.inf),
        "high": max(values, default=-np.inf),
        "varying": sum(len(set(texts[a:b])) > 1 for a, b in pairwise(indptr)),
        "texts": tuple(texts),
    }


def count_pairs(values: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return what one feature makes of the pairs of one query."""
    n, found = len(y), {"right": 0, "wrong": 0, "present": 0, "uppers": 0}
    for i in range(n):
        below = [j for j in range(n) if y[j] < y[i] and values[i] == values[i] and values[j] == values[j]]
        found["right"] += sum(values[i] > values[j] for j in below)
        found["wrong"] += sum(values[i] < values[j] for j in below)
        found["present"] += len(below)
        found["uppers"] += bool(below)
    known = values[values == values]
    for name, end in (("top", max(known, default=None)), ("bottom", min(known, default=None))):
        found[name] = np.nan if end is None else float(np.mean(y[values == end] > y.min()))
    return found


def count_in_order(y: np.ndarray) -> tuple[int, int]:
    """Return the pairs of different grades of one query, and those whose higher grade comes first."""
    pairs = [(i, j) for i in range(len(y)) for j in range(i + 1, len(y)) if y[i] != y[j]]
    return len(pairs), sum(y[i] > y[j] for i, j in pairs)
