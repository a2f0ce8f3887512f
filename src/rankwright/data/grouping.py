"""Conversion of arrays, and grouping of rows by query id."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.ids import validate_ids

_MAX_WEIGHT = 1e30  # sums of larger query weights, and their squares, may overflow


def as_matrix(X: Any) -> Floats:
    """Return features as a C-ordered float32 matrix, NaN if missing; raise InputError if any is infinite or text."""
    if type(X) is np.ndarray and X.dtype == np.float32 and X.flags.carray:  # adjacent and writeable: taken as it is
        matrix: Floats = X
    else:
        matrix = _convert_matrix(X)
    if matrix.ndim != 2:
        raise InputError(f"X has {matrix.ndim} dimension(s); expected 2 (documents x features)")
    if 0 in matrix.shape:
        raise InputError(f"X has {matrix.shape[0]} documents and {matrix.shape[1]} features; expected at least 1")
    from rankwright.kernels.scorers.linear_scores import find_first_infinite  # with Numba, which takes long to import

    place = find_first_infinite(matrix)
    if place >= 0:
        row, column = divmod(place, matrix.shape[1])
        found = f"X[{row}, {column}] is infinite or too large for float32"
        raise InputError(f"{found}; expected finite numbers, or NaN for a missing value")
    return matrix


def _convert_matrix(X: Any) -> Floats:
    """Return features as a C-ordered float32 array, which may be written to; raise InputError if one is a text."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    try:
        with np.errstate(over="ignore"):
            return np.require(X, dtype=np.float32, requirements=["C", "W"])
    except (TypeError, ValueError) as error:
        raise InputError(f"X is not a table of numbers: {error}") from None


def find_runs(qid: NDArray[Any]) -> Ints:
    """Return the rows at which a run of equal query ids begins."""
    return np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))


def group_runs(starts: Ints, ids: NDArray[Any], n_docs: int) -> tuple[NDArray[Any], Ints, Ints | None]:
    """Group runs of rows by query id, in order of first appearance.

    Returns the ids of the queries, their ``indptr``, and the permutation of the rows that makes the rows of each
    query adjacent (``None`` if they are already).
    """
    names, query = number_queries(ids)
    sizes = np.diff(np.append(starts, n_docs))
    if len(names) == len(ids):
        return ids, np.append(starts, n_docs).astype(np.int64), None
    row_query = np.repeat(query, sizes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row_query, minlength=len(names)))])
    return names, indptr.astype(np.int64), np.argsort(row_query, kind="stable")


def number_queries(ids: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the different ids in order of first appearance, and for each id given its number among them.

    >>> number_queries(np.array(["b", "a", "b"]))[1].tolist()
    [0, 1, 0]
    """
    unique, first, query = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(unique))
    return ids[np.sort(first)], rank[query]


def group_rows(qid: ArrayLike | None, group: ArrayLike | None, n_docs: int) -> tuple[NDArray[Any], Ints, Ints | None]:
    """Group rows by query id, or by the sizes of consecutive queries; return what ``group_runs`` returns."""
    if (qid is None) == (group is None):
        raise InputError("expected either qid (an id per row) or group (the sizes of consecutive queries)")
    if qid is not None:
        ids = validate_ids(qid, n_docs, "qid")
        starts = find_runs(ids)
        return group_runs(starts, ids[starts], n_docs)
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise InputError(f"group is {quote(group)}; expected the size of each query, whole numbers from 1")
    if sizes.sum() != n_docs:
        raise InputError(f"group has sizes that add up to {sizes.sum()}; expected the {n_docs} rows of X")
    return np.arange(len(sizes)), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), None


def as_grades(y: ArrayLike, n_docs: int) -> Floats:
    """Return one finite grade per document as an array; raise InputError if ``y`` is anything else."""
    try:
        grades = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y is not numeric: {error}") from None
    if grades.shape != (n_docs,):
        raise InputError(f"y has shape {grades.shape}; X has {n_docs} rows")
    if not np.isfinite(grades).all():
        raise InputError(f"y[{int(np.argmin(np.isfinite(grades)))}] is NaN or infinite; expected a grade")
    return grades


def as_weights(weight: ArrayLike | None, n_queries: int) -> Floats | None:
    """Return one weight per query as an array, or None; raise InputError if one is negative or not finite."""
    return None if weight is None else _convert_weights(weight, n_queries, "weight", f"there are {n_queries} queries")


def as_doc_weights(weight: ArrayLike | None, n_docs: int) -> Floats | None:
    """Return one weight per document as an array, or None; raise InputError if one is negative or not finite."""
    return None if weight is None else _convert_weights(weight, n_docs, "doc_weight", f"X has {n_docs} rows")


def _convert_weights(weight: ArrayLike, n: int, name: str, expected: str) -> Floats:
    """Return ``n`` weights as an array; raise InputError if their number or one of them is wrong."""
    weights = np.array(weight, dtype=np.float64)
    if weights.shape != (n,):
        raise InputError(f"{name} has shape {weights.shape}; {expected}")
    _check_weights(weights, name)
    return weights


def fold_query_weights(weight: Floats, indptr: Ints, qid: NDArray[Any]) -> Floats:
    """Return one weight per query from those of its rows, which are grouped; raise InputError if they differ."""
    weights = weight[indptr[:-1]]
    differs = np.flatnonzero(weight != np.repeat(weights, np.diff(indptr)))
    if len(differs):
        query = int(np.searchsorted(indptr, differs[0], side="right")) - 1
        found = f"query {qid[query]} has the weights {weights[query]:g} and {weight[differs[0]]:g}"
        raise InputError(f"{found}; expected one for all its rows. Weights of documents are doc_weight= (--doc-weight)")
    _check_weights(weights, "weight")
    return weights


def _check_weights(weights: Floats, name: str) -> None:
    """Raise InputError if a weight is negative, not finite or too large, or if all are 0."""
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError(f"{name} must be finite, not negative and not all zero")
    if weights.max() > _MAX_WEIGHT:
        raise InputError(f"{name}[{int(weights.argmax())}] is {weights.max():g}; expected at most {_MAX_WEIGHT:g}")


def query_ranges(indptr: Ints, n: int) -> list[tuple[int, int]]:
    """Cut queries into at most ``n`` ranges (start, stop) with about equal numbers of documents.

    >>> query_ranges(np.array([0, 5, 6, 7, 12]), 2)
    [(0, 2), (2, 4)]
    """
    if n == 1 or len(indptr) == 2:
        return [(0, len(indptr) - 1)]
    targets = np.linspace(0, indptr[-1], n + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, targets), [len(indptr) - 1]]))
    return [(int(a), int(b)) for a, b in pairwise(cuts)]
