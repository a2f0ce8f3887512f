"""Results of an experiment or a comparison, as plain tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.significance import Comparisons, Interval, QueryWeighting, compare, simultaneous_intervals
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, suggest
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.number_texts import format_number
from rankwright.data.ids import ids_as_text
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure

Table = Mapping[str, NDArray[Any]]  # columns of equal length, by name

MOST_DOCUMENTS = 100_000  # in the test queries of a fold; single documents are not kept above that


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of an experiment, in tables: the chosen trial of every method, fold and seed.

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
    planned : (int, int), optional
        How many folds and trials the experiment has when it is finished.
    fixed : tuple of str
        The methods that are models which were trained elsewhere.
    """

    name: str
    measure: str
    measures: tuple[str, ...]
    methods: tuple[str, ...]
    tables: Mapping[str, Table]
    planned: tuple[int, int] | None = None
    fixed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n = len(self.tables["queries"]["qid"])
        folds = f"{len(self.folds)} fold{'s' * (len(self.folds) != 1)}"
        return f"Results({self.name}: {', '.join(self.methods)}; {folds}, {n} test queries)"

    def __str__(self) -> str:
        header, rows, note = self._make_rows()
        best = [max((row[at] for row in rows if row[at] == row[at]), default=None) for at in range(len(header) - 1)]
        entries = [
            [
                Entry(row[0], str(row[0])),
                *(Entry(row[at], format_number(float(row[at])), row[at] == best[at]) for at in range(1, len(best))),
                Entry(row[-1], format_number(float(row[-1]))),
            ]
            for row in rows
        ]
        return format_aligned(TextTable(header, entries, f"{self.name}: {note[0].lower()}{note[1:]}"))

    def _repr_html_(self) -> str:
        return format_html_table(self.name, *self._make_rows())

    def _make_rows(self) -> tuple[list[str], list[tuple[Any, ...]], str]:
        """Return what print and a notebook show: a header, a row for each method, and a note."""
        columns = [self.means(measure) for measure in self.measures]
        main = self.measures.index(self.measure)
        errors, order = self.errors(), np.argsort(-np.nan_to_num(columns[main], nan=-np.inf), kind="stable")
        rows = [(self.methods[i], *(float(means[i]) for means in columns), float(errors[i])) for i in order]
        n, folds = len(self.tables["queries"]["qid"]), len(self.folds)
        where = f"{n:,} test queries" + (f" in {folds} folds" if folds > 1 else "")
        header = ["method", *self.measures, f"\N{PLUS-MINUS SIGN} {self.measure}"]
        note = f"Means over {where}, the best {self.measure} first; \N{PLUS-MINUS SIGN} is its standard error."
        return header, rows, note

    def values(self, measure: str | Measure | None = None) -> Floats:
        """Return the mean over the seeds by method (row) and test query (column); NaN where there is no result."""
        table = self.tables["values"]
        column = table[self._resolve(measure)]
        shape = (len(self.methods), len(self.tables["queries"]["qid"]))
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, (table["method"], table["query"]), column)
        np.add.at(count, (table["method"], table["query"]), 1.0)
        means = np.full(shape, np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means

    def fold_means(self, measure: str | Measure | None = None) -> Floats:
        """Return the weighted mean over the test queries by method (row) and fold (column)."""
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

    def means(self, measure: str | Measure | None = None) -> Floats:
        """Return the mean of the fold means of every method, as LETOR's figures are published."""
        means = self.fold_means(measure)
        return np.asarray(means.mean(axis=1)) if means.size else np.full(len(self.methods), np.nan)

    def compare(self, measure: str | Measure | None = None, *, baseline: str | None = None) -> Comparisons:
        """Compare every two methods that have results on all folds, or each of them with a baseline.

        A difference is the difference of the means: queries count as they do in ``means``.
        """
        return compare(self._select_complete(measure), baseline=baseline, **self.weighting._asdict())

    def find_joint_intervals(self, measure: str | Measure | None = None) -> dict[tuple[str, str], Interval]:
        """Return 95% intervals that hold the differences of all pairs of ``compare`` at once, by first and second."""
        return simultaneous_intervals(self._select_complete(measure), **self.weighting._asdict())

    def _select_complete(self, measure: str | Measure | None) -> dict[str, Floats]:
        """Return the values by query of the methods that have results on all folds."""
        rows = zip(self.methods, self.values(measure), self.means(measure), strict=True)
        return {name: row for name, row, mean in rows if not np.isnan(mean)}

    @property
    def weighting(self) -> QueryWeighting:
        """The weighting of the test queries in every mean: by their weights, each fold as much as every other."""
        return QueryWeighting(self.tables["queries"]["weight"], self.tables["queries"]["fold"])

    def contributions(self, measure: str | Measure | None = None) -> Floats:
        """Return the contribution of each query to the mean of the fold means: mean + n w (value - mean).

        Their plain mean is that mean, and both have the same standard error.
        """
        means = self.means(measure)[:, None]
        return np.asarray(means + self._factors(measure) * (self.values(measure) - means))

    def _factors(self, measure: str | Measure | None) -> Floats:
        """Return n w for each method and query; NaN where there is no value, or where the query has no weight."""
        values, found = self.values(measure), np.full((len(self.methods), len(self.tables["queries"]["qid"])), np.nan)
        for row, own in zip(found, values, strict=True):
            counted = self.weighting.counted(own, own)
            row[counted] = self.weighting.factors(counted)
        return found

    def errors(self, measure: str | Measure | None = None) -> Floats:
        """Return the standard error of each mean over the queries; NaN where there are fewer than two."""
        found = self.contributions(measure)
        n = np.sum(~np.isnan(found), axis=1)
        deviation = np.where(np.isnan(found), 0.0, found - self.means(measure)[:, None])
        return np.asarray(np.sqrt((deviation**2).sum(axis=1) / np.where(n > 1, n * (n - 1.0), np.nan)))

    @property
    def folds(self) -> NDArray[Any]:
        """The numbers of the folds that have results."""
        return np.unique(self.tables["queries"]["fold"])

    @property
    def unfinished(self) -> str:
        """The sentence that says which trials are missing; empty where none is."""
        trials = self.tables.get("trials")
        if trials is None or self.planned is None:
            return ""
        n_folds, n_trials = self.planned
        done = int(np.sum(trials["status"] == "done"))
        if done >= n_trials:
            return ""
        return f"unfinished: {done} of {n_trials} trials, results on {len(self.folds)} of {n_folds} folds"

    @property
    def caution(self) -> str:
        """The sentence that says which methods may have seen the test queries; empty where none is fixed."""
        if not self.fixed:
            return ""
        were, they_have = ("was", "it has") if len(self.fixed) == 1 else ("were", "they have")
        what = f"{', '.join(self.fixed)} {were} not trained by this experiment"
        return f"{what}: make sure that {they_have} not seen these queries"

    def _resolve(self, measure: str | Measure | None) -> str:
        name = self.measure if measure is None else str(measure)
        if name not in self.measures:
            name = str(parse_measure(measure or name))
        if name not in self.measures:
            raise InputError(f"{name} was not measured; {suggest(name, self.measures)}")
        return name


def make_queries_table(queries: Queries) -> Table:
    """Return a table of queries: their ids, numbers of documents and pairs, and weights."""
    return {
        "qid": ids_as_text(queries.qid),
        "n_docs": queries.sizes,
        "n_pairs": count_pairs(queries),
        "weight": queries.query_weight,
    }


def make_documents_table(queries: Queries) -> Table | None:
    """Return a table of the documents of queries, or None where there are too many to look at."""
    if queries.n_docs > MOST_DOCUMENTS:
        return None
    grouped, names = queries.grouped(), ids_as_text(queries.group(queries.doc_names))
    return {"query": np.repeat(np.arange(len(queries)), queries.sizes), "docid": names, "grade": grouped.y}


def count_pairs(queries: Queries) -> np.ndarray:
    """Return the number of pairs of documents with different grades in each query.

    >>> from rankwright import Queries
    >>> count_pairs(Queries.from_arrays([[0.0]] * 4, [2, 1, 1, 0], group=[4]))
    array([5])
    """
    levels, level = np.unique(queries.grouped().y, return_inverse=True)
    counts = np.zeros((len(queries), len(levels)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(queries)), queries.sizes), level), 1)
    return np.asarray((queries.sizes**2 - (counts**2).sum(axis=1)) // 2)


def make_pairs_table(queries: Queries, scores: Floats) -> Table:
    """Return a table that counts, for every two grades, the pairs of documents in the right order, tied, and in all."""
    counts: dict[tuple[float, float], list[int]] = {}
    scores, queries = queries.group(scores), queries.grouped()
    for rows in queries:
        grades = queries.y[rows]
        levels = np.unique(grades)
        ordered = [np.sort(scores[rows][grades == level]) for level in levels]
        for low in range(len(levels)):
            for high in range(low + 1, len(levels)):
                below = int(np.searchsorted(ordered[low], ordered[high], side="left").sum())
                upto = int(np.searchsorted(ordered[low], ordered[high], side="right").sum())
                count = counts.setdefault((float(levels[high]), float(levels[low])), [0, 0, 0])
                for place, number in enumerate((below, upto - below, len(ordered[low]) * len(ordered[high]))):
                    count[place] += number
    table = np.array([[*grades, *count] for grades, count in sorted(counts.items(), reverse=True)]).reshape(-1, 5)
    return dict(zip(("high", "low", "right", "tied", "total"), table.T, strict=True))


def concatenate_tables(tables: Sequence[Table], names: Iterable[str] | None = None) -> Table:
    """Return the rows of several tables as one table, with NaN for columns that a table lacks."""
    wanted = dict.fromkeys(name for table in tables for name in table) if names is None else names
    if not tables:
        return {name: np.array([], dtype=int) for name in wanted}
    sizes = [len(next(iter(table.values()))) for table in tables]
    parts = list(zip(tables, sizes, strict=True))
    return {name: np.concatenate([table.get(name, np.full(size, np.nan)) for table, size in parts]) for name in wanted}


def add_key_columns(table: Table, method: int, fold: int, seed: int) -> Table:
    """Return the table of a trial with columns for its method, fold and seed put first."""
    n = len(next(iter(table.values()), ()))
    return {"method": np.full(n, method), "fold": np.full(n, fold), "seed": np.full(n, seed), **table}
