"""Results: what an experiment found, as plain tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats
from rankwright.errors import InputError, suggest

Table = Mapping[str, NDArray[Any]]  # columns of equal length, by name


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What an experiment found: the chosen trial of every method, fold and seed.

    ``method`` columns are numbers into ``methods``; ``query`` columns are rows of ``queries``.

    Parameters
    ----------
    name : str
        What the experiment is called.
    measure : str
        The measure that selected, and that decides.
    measures : tuple of str
        The measures on test queries, ``measure`` among them.
    methods : tuple of str
        The methods, in the order of the spec.
    tables : mapping of str to table
        ``queries`` (fold, qid, n_docs, n_pairs, weight), ``documents`` (query, docid, grade), ``values`` (method, seed,
        query, and a column for each measure), ``trials`` (everything tried), and the artefacts that trials left, each
        with the columns method, fold and seed before its own.
    """

    name: str
    measure: str
    measures: tuple[str, ...]
    methods: tuple[str, ...]
    tables: Mapping[str, Table]

    def __repr__(self) -> str:
        n = len(self.tables["queries"]["qid"])
        return f"Results({self.name}: {', '.join(self.methods)}; {len(self.folds)} folds, {n} test queries)"

    def values(self, measure: str | None = None) -> Floats:
        """A row per method and a column per test query: the mean over the seeds; NaN where a method has no result."""
        table = self.tables["values"]
        column = table[self._known(measure)]
        shape = (len(self.methods), len(self.tables["queries"]["qid"]))
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, (table["method"], table["query"]), column)
        np.add.at(count, (table["method"], table["query"]), 1.0)
        means = np.full(shape, np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means

    def fold_means(self, measure: str | None = None) -> Floats:
        """A row per method and a column per fold: the weighted mean over the fold's test queries."""
        values = self.values(measure)
        fold, weight = self.tables["queries"]["fold"], self.tables["queries"]["weight"]
        counted = np.where(np.isnan(values), 0.0, weight)
        means = np.full((len(self.methods), len(self.folds)), np.nan)
        for column, name in enumerate(self.folds):
            inside = fold == name
            total = counted[:, inside].sum(axis=1)
            summed = np.nansum(values[:, inside] * counted[:, inside], axis=1)
            np.divide(summed, total, out=means[:, column], where=total > 0)
        return means

    def means(self, measure: str | None = None) -> Floats:
        """The mean of the fold means of every method, which is how LETOR's figures are published."""
        return np.asarray(self.fold_means(measure).mean(axis=1))

    @property
    def folds(self) -> NDArray[Any]:
        """The numbers of the folds that have results."""
        return np.unique(self.tables["queries"]["fold"])

    def _known(self, measure: str | None) -> str:
        name = self.measure if measure is None else measure
        if name not in self.measures:
            raise InputError(f"{name} was not measured; {suggest(name, self.measures)}")
        return name
