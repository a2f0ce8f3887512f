"""Folds of a cross-fitting: which queries are held out in which fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.data.row_hashes import find_first_copies
from rankwright.measures import Measure
from rankwright.rankers.fit_memory import VALUE, DataSize
from rankwright.runtime.backends import Serial

_KEPT = 256 << 20  # bytes of features up to which the training queries of all folds are kept in memory
_NOISE = 1e-12  # deviation of scores, as a share of the largest, that is nothing but rounding


class FoldKey(NamedTuple):
    """The place of a fold: the number of its partition of the queries, and its number there."""

    repeat: int
    fold: int


@dataclass(frozen=True, slots=True, eq=False)
class FoldPlan:
    """The partitions of a data set into folds of whole queries, one partition for each repeat.

    Parameters
    ----------
    queries : Queries
        All queries, with rows grouped.
    folds : array of shape (n_repeats, n_queries)
        The fold of each query in each partition.
    n_folds : int
        The number of folds of a partition; with 1 no query is held out, and all are trained on.
    parts : dict
        The training queries and held-out queries of the folds that were taken, if they are small.
    """

    queries: Queries
    folds: Ints
    n_folds: int
    parts: dict[FoldKey, tuple[Queries, Queries]] = field(default_factory=dict)

    @classmethod
    def draw(
        cls, queries: Queries, n_folds: int, n_repeats: int, rng: np.random.Generator, measure: Measure | None = None
    ) -> FoldPlan:
        """Draw partitions at random; queries of each highest grade are spread evenly over the folds.

        Queries that are equal but for their weights are in one fold: none is held out of a fit that has seen it.
        There are no more folds than queries that can be learned from, so that all training sets have such queries.
        """
        first = find_first_copies(queries, Serial())
        own = np.flatnonzero(first == np.arange(len(queries)))
        is_useful = np.zeros(len(queries), dtype=bool)
        np.logical_or.at(is_useful, first, find_learnable(queries, measure))
        is_useful, highest = is_useful[own], np.maximum.reduceat(queries.y, queries.indptr[:-1])[own]
        n_folds = max(min(n_folds, int(is_useful.sum())), 1)
        folds = np.empty((n_repeats if n_folds > 1 else 1, len(queries)), dtype=np.int64)
        for row in folds:
            order = rng.permutation(len(own))
            row[own[order[np.lexsort((highest[order], is_useful[order]))]]] = np.arange(len(own)) % n_folds
        return cls(queries, folds[:, first], n_folds)

    @property
    def has_held_out(self) -> bool:
        """Whether queries are held out: there are two of them or more that can be learned from."""
        return self.n_folds > 1

    def list_keys(self, n_repeats: int | None = None) -> list[FoldKey]:
        """Return the places of all folds, those of the first partition first."""
        n = len(self.folds) if n_repeats is None else n_repeats
        return [FoldKey(repeat, fold) for repeat in range(n) for fold in range(self.n_folds)]

    def find_held_out(self, key: FoldKey) -> Ints:
        """Return the positions of the queries of a fold."""
        return np.flatnonzero(self.folds[key.repeat] == key.fold)

    def split_fold(self, key: FoldKey) -> tuple[Queries, Queries]:
        """Return the training queries of a fold, which are those of all others, and the queries of the fold."""
        if not self.has_held_out:
            return self.queries, self.queries
        if key in self.parts:
            return self.parts[key]
        held_out = self.folds[key.repeat] == key.fold
        found = self.queries.take(~held_out), self.queries.take(held_out)
        if self.folds.shape[0] * self.n_folds * self.queries.X.nbytes <= _KEPT:
            self.parts[key] = found
        return found

    def take_held_out(self, key: FoldKey) -> Queries:
        """Return the queries of a fold."""
        return self.parts[key][1] if key in self.parts else self.queries.take(self.find_held_out(key))


def estimate_fold_memory(size: DataSize, n_parts: int, n_fits: int) -> float:
    """Return the bytes of the training queries of folds: of all that are kept, or of the fits in work at a time."""
    one = float(VALUE * size.n_values)
    return one * (n_parts if n_parts * one <= _KEPT else min(n_fits, n_parts))


def find_learnable(queries: Queries, measure: Measure | None = None) -> NDArray[np.bool_]:
    """Return which queries can be learned from: they have documents of different grades, a weight, and count."""
    starts = queries.indptr[:-1]
    varies = np.maximum.reduceat(queries.y, starts) > np.minimum.reduceat(queries.y, starts)
    found: NDArray[np.bool_] = varies & (queries.query_weight > 0)
    return found if measure is None else found & measure.prepare(queries).is_counted


def center_within_queries(scores: Floats, indptr: Ints) -> Floats:
    """Return scores less the mean of their query."""
    sizes = np.diff(indptr)
    centred: Floats = scores - np.repeat(np.add.reduceat(scores, indptr[:-1]) / sizes, sizes)
    return centred


def standardise(scores: Floats, indptr: Ints) -> tuple[Floats, float]:
    """Return scores centred within each query and divided by their standard deviation, and the factor of that.

    Scores that differ by rounding only become 0, and so does the factor.
    """
    largest = float(np.abs(scores).max())
    if not np.isfinite(largest) or largest == 0.0:
        return np.zeros(len(scores)), 0.0
    centred = center_within_queries(scores, indptr)
    deviation = largest * float(np.sqrt(np.mean((centred / largest) ** 2)))  # without overflow of squares
    factor = 1.0 / deviation if deviation > _NOISE * largest else 0.0
    return (centred * factor, factor) if 0.0 < factor < np.inf else (np.zeros(len(scores)), 0.0)


def iterate_round_counts(n_terms: int) -> Iterator[int]:
    """Yield numbers of terms up to ``n_terms`` that grow by about a fifth: 1, 2, 3, ..., 10, 12, 14, 16, 19, ..."""
    n = 0
    while n < n_terms:
        n = min(max(n + 1, n + n // 5), n_terms)
        yield n
