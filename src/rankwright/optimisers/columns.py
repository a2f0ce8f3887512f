"""Score columns: numbers, a row per document, whose weighted sum ranks the documents of a landscape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.scorers.linear_scores import compute_linear_scores, sum_log_ranges
from rankwright.kernels.scorers.tree_scores import compute_leaf_scores, look_up_leaf_values

Direction = int | Floats  # a column, or a weight for every column


class ScoreColumns(Protocol):
    """The interface of a table with a row per document, whose columns' weighted sum is the score of a document."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    def rows(self, start: int, stop: int) -> ScoreColumns:
        """Return some rows, sharing memory."""

    def scores(self, coef: Floats) -> Floats:
        """Return the weighted sum of the columns, as prediction computes it."""

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """Return the slopes of the scores along a direction: a matrix, and the number of its column."""

    def spreads(self, indptr: Ints) -> Floats:
        """Return, for each column, the sum of the logarithms of its range in each query, and how many have one."""


@dataclass(frozen=True, slots=True, eq=False)
class MatrixColumns:
    """The columns of a feature matrix as score columns: their weighted sum is the score of a document."""

    X: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.X.shape[0], self.X.shape[1]

    def rows(self, start: int, stop: int) -> MatrixColumns:
        """Return some rows, sharing memory."""
        return MatrixColumns(self.X[start:stop])

    def scores(self, coef: Floats) -> Floats:
        """Return the scores of a linear model."""
        return compute_linear_scores(self.X, coef, 0.0)

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """Return the matrix and a column of it, or the scores of a direction as a matrix of one column."""
        return (self.X, direction) if isinstance(direction, int) else (self.scores(direction)[:, None], 0)

    def spreads(self, indptr: Ints) -> Floats:
        """Return the spreads of all columns at once."""
        return sum_log_ranges(self.X, indptr)


@dataclass(frozen=True, slots=True, eq=False)
class TreeColumns:
    """The outputs of trees as score columns: one column per tree, stored as the leaf of each document.

    Parameters
    ----------
    leaves : array of shape (n_trees, n_docs), uint8 or uint16
        The leaf of each document, counted within each tree.
    first_leaf : array of shape (n_trees + 1,)
        The place of each tree's first value.
    values : array
        The value of every leaf.
    """

    leaves: Ints
    first_leaf: Ints
    values: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents and of trees."""
        return self.leaves.shape[1], self.leaves.shape[0]

    def rows(self, start: int, stop: int) -> TreeColumns:
        """Return some documents, sharing memory."""
        return TreeColumns(self.leaves[:, start:stop], self.first_leaf, self.values)

    def scores(self, coef: Floats) -> Floats:
        """Return the weighted sum of the trees."""
        return compute_leaf_scores(self.leaves, self.first_leaf, self.values, coef)

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """Return the values of a tree, or of a weighted sum of trees, as a matrix of one column."""
        if not isinstance(direction, int):
            return self.scores(direction)[:, None], 0
        values = self.values[self.first_leaf[direction] : self.first_leaf[direction + 1]]
        return look_up_leaf_values(self.leaves[direction], values)[:, None], 0

    def spreads(self, indptr: Ints) -> Floats:
        """Return the spreads of one tree after another."""
        found: Floats = np.concatenate([sum_log_ranges(self.line(t)[0], indptr) for t in range(self.shape[1])], axis=1)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class JoinedColumns:
    """A pair of tables of score columns side by side, such as the outputs of trees and of other scorers.

    Parameters
    ----------
    first, second : ScoreColumns
        Tables of the same documents; the columns of the second follow those of the first.
    """

    first: ScoreColumns
    second: ScoreColumns

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents, and of the columns of both."""
        return self.first.shape[0], self.first.shape[1] + self.second.shape[1]

    def rows(self, start: int, stop: int) -> JoinedColumns:
        """Return some rows, sharing memory."""
        return JoinedColumns(self.first.rows(start, stop), self.second.rows(start, stop))

    def scores(self, coef: Floats) -> Floats:
        """Return the weighted sums of both, added."""
        n = self.first.shape[1]
        return self.first.scores(coef[:n]) + self.second.scores(coef[n:])

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """Return the line of a column in its own table, or the scores of a direction as a matrix of one column."""
        if not isinstance(direction, int):
            return self.scores(direction)[:, None], 0
        n = self.first.shape[1]
        return self.first.line(direction) if direction < n else self.second.line(direction - n)

    def spreads(self, indptr: Ints) -> Floats:
        """Return the spreads of the columns of both."""
        return np.concatenate([self.first.spreads(indptr), self.second.spreads(indptr)], axis=1)
