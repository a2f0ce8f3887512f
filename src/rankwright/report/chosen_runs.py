"""The runs that an experiment chose: rows of trials by method, and their means over seeds and folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Results, Table, concatenate_tables
from rankwright.basics.array_types import Floats, Ints


def split_by_method(results: Results, name: str) -> dict[str, Table]:
    """Return a table's rows by method, in the order of the methods, without the methods that have no rows."""
    table = results.tables[name]
    masks = {method: table["method"] == number for number, method in enumerate(results.methods)}
    return {method: select_rows(table, mask) for method, mask in masks.items() if mask.any()}


def select_on_all_folds(results: Results, name: str) -> dict[str, Table]:
    """Return a table's rows by method, without the methods that lack a fold, so that means can be compared."""
    return {
        method: table
        for method, table in split_by_method(results, name).items()
        if np.isin(results.folds, table["fold"]).all()
    }


def select_rows(table: Table, mask: NDArray[np.bool_]) -> Table:
    """Return the rows of a table at which a mask is true."""
    return {name: column[mask] for name, column in table.items()}


def split_runs(table: Table) -> list[Table]:
    """Split a table into one table for each run; a run is a fold and a seed."""
    runs = np.stack([table["fold"], table["seed"]], axis=1)
    return [select_rows(table, (runs == run).all(axis=1)) for run in np.unique(runs, axis=0)]


def has_restarts(table: Table) -> bool:
    """Return whether a training history has restarts: climbs that are numbered by their start."""
    return "restart" in table and bool(np.isfinite(table["restart"]).any())


def drop_polishing(table: Table) -> Table:
    """Return a training history without its rounds of polishing, those with a number in column ``polish``."""
    return select_rows(table, ~np.isfinite(table["polish"])) if "polish" in table else table


def find_deciding_values(run: Table) -> Floats:
    """Return the measure by which a run chose among the rows of its history: on validation or else training queries."""
    names = [name for name in ("valid", "train") if name in run and np.isfinite(run[name]).any()]
    value = np.asarray(run[names[0]], dtype=np.float64) if names else np.zeros(len(run["round"]))
    return np.where(np.isfinite(value), value, -np.inf)


def find_best_points(run: Table) -> Ints:
    """Return the row of the best point of each restart of a run, in the order of the restarts."""
    numbers = np.unique(run["restart"])
    value, found = find_deciding_values(run), [np.flatnonzero(run["restart"] == number) for number in numbers]
    return np.array([own[np.argmax(value[own])] for own in found], dtype=np.intp)


def select_kept_climbs(table: Table) -> Table:
    """Return the history of the start that each run kept, its steps numbered as rounds; without restarts, all of it.

    Of the restarts that were not kept a history has single points only, which belong to no curve.
    """
    return concatenate_tables([_select_kept_climb(run) for run in split_runs(table)]) if has_restarts(table) else table


def _select_kept_climb(run: Table) -> Table:
    """Return the rows of the start that a run kept, with its steps numbered as rounds."""
    kept = run["restart"][np.argmax(find_deciding_values(run))]
    climb = select_rows(run, run["restart"] == kept)
    return {**climb, "round": np.arange(len(climb["round"]))}


def compute_fold_means(table: Table, key: str, column: str) -> tuple[NDArray[Any], Floats]:
    """Return the distinct keys of a table, and a matrix of the column's means over seeds, by key (row) and fold.

    >>> table = {"fold": np.array([1, 1, 2]), "k": np.array([5, 5, 5]), "v": np.arange(3.0)}
    >>> keys, means = compute_fold_means(table, "k", "v")
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
