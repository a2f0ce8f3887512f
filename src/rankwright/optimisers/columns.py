"""What a landscape is over: columns of numbers, a row per document, whose weighted sum ranks the documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.scorers.linear_scores import linear_scores, query_spreads
from rankwright.kernels.scorers.tree_scores import leaf_scores, leaf_values

Direction = int | Floats  # a column, or a weight for every column


class ScoreColumns(Protocol):
    """Columns of numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns."""
        ...

    def rows(self, start: int, stop: int) -> ScoreColumns:
        """Some rows, sharing memory."""
        ...

    def scores(self, coef: Floats) -> Floats:
        """The weighted sum of the columns, as prediction computes it."""
        ...

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """The slopes along a direction: a column of a matrix."""
        ...

    def spreads(self, indptr: Ints) -> Floats:
        """By column the sum over the queries of the logarithm of its range, and how many queries have one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MatrixColumns:
    """The columns of a matrix."""

    X: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix."""
        return self.X.shape[0], self.X.shape[1]

    def rows(self, start: int, stop: int) -> MatrixColumns:
        """Some rows."""
        return MatrixColumns(self.X[start:stop])

    def scores(self, coef: Floats) -> Floats:
        """The scores of a linear model."""
        return linear_scores(self.X, coef, 0.0)

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """A column of the matrix itself, or of the scores along several."""
        return (self.X, direction) if isinstance(direction, int) else (self.scores(direction)[:, None], 0)

    def spreads(self, indptr: Ints) -> Floats:
        """Of all columns at once."""
        return query_spreads(self.X, indptr)


@dataclass(frozen=True, slots=True, eq=False)
class TreeColumns:
    """The values of trees: a column per tree, kept as the leaf that each document falls into.

    Parameters
    ----------
    leaves : array of shape (n_trees, n_docs), uint8 or uint16
        The leaves, counted within each tree.
    first_leaf : array of shape (n_trees + 1,)
        Where the values of each tree begin.
    values : array
        The value of every leaf.
    """

    leaves: Ints
    first_leaf: Ints
    values: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and trees."""
        return self.leaves.shape[1], self.leaves.shape[0]

    def rows(self, start: int, stop: int) -> TreeColumns:
        """Some documents."""
        return TreeColumns(self.leaves[:, start:stop], self.first_leaf, self.values)

    def scores(self, coef: Floats) -> Floats:
        """The scores of the trees with their values multiplied."""
        return leaf_scores(self.leaves, self.first_leaf, self.values, coef)

    def line(self, direction: Direction) -> tuple[Floats, int]:
        """The values of a tree."""
        return (self._tree(direction) if isinstance(direction, int) else self.scores(direction))[:, None], 0

    def spreads(self, indptr: Ints) -> Floats:
        """Of one tree after another."""
        found: Floats = np.concatenate([query_spreads(self.line(t)[0], indptr) for t in range(self.shape[1])], axis=1)
        return found

    def _tree(self, t: int) -> Floats:
        return leaf_values(self.leaves[t], self.values[self.first_leaf[t] : self.first_leaf[t + 1]])
