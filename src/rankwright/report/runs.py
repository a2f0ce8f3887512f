"""Runs: the rows that trials left, by method, and averaged over seeds and folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats
from rankwright.results import Results, Table


def by_method(results: Results, name: str) -> dict[str, Table]:
    """The rows of a table for each method that has some, in the order of the methods."""
    table = results.tables[name]
    masks = {method: table["method"] == number for number, method in enumerate(results.methods)}
    return {method: rows(table, mask) for method, mask in masks.items() if mask.any()}


def on_all_folds(results: Results, name: str) -> dict[str, Table]:
    """The rows of a table for each method that has some on every fold: only these can be compared in the mean."""
    return {
        method: table
        for method, table in by_method(results, name).items()
        if np.isin(results.folds, table["fold"]).all()
    }


def rows(table: Table, mask: NDArray[np.bool_]) -> Table:
    """The rows of a table that a mask chooses."""
    return {name: column[mask] for name, column in table.items()}


def fold_means(table: Table, key: str, column: str) -> tuple[NDArray[Any], Floats]:
    """The different keys of a table, and for each a column per fold: the mean over the seeds, NaN where there is none.

    >>> keys, means = fold_means({"fold": np.array([1, 1, 2]), "k": np.array([5, 5, 5]), "v": np.arange(3.0)}, "k", "v")
    >>> keys.tolist(), means.tolist()
    ([5], [[0.5, 2.0]])
    """
    keys, row = np.unique(table[key], return_inverse=True)
    folds, fold = np.unique(table["fold"], return_inverse=True)
    values = np.asarray(table[column], dtype=np.float64)
    total, count = np.zeros((len(keys), len(folds))), np.zeros((len(keys), len(folds)))
    np.add.at(total, (row, fold), values)
    np.add.at(count, (row, fold), 1.0)
    return keys, np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
