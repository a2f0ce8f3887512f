"""Facts on queries: documents of each, grades, and queries that no measure counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.finding_kinds import Finding, list_names, make_finding
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries

FEW_QUERIES = 20
HIGH_GRADE = 10  # whose gain is 1,023
MOST_GRADES = 20  # distinct values: more are scores
_TOP = 10  # ranks that the usual measures count
_TIED_SHARE = 0.25  # of the queries


@dataclass(frozen=True, slots=True, eq=False)
class QueryFacts:
    """The facts on the queries of a data set.

    Parameters
    ----------
    n_queries, n_docs, n_features : int
        How many there are.
    sizes : array of shape (n_queries,)
        The number of documents of each query.
    grades, counts : arrays
        The grades that occur, ascending, and how many documents have each; empty without grades.
    is_adjacent : bool
        Whether the rows of every query are adjacent.
    has_docids, has_weights : bool
        Whether there are document ids, and weights of queries or documents.
    single, equal, irrelevant, tied : arrays of bool, of shape (n_queries,)
        Which queries have one document; several of one grade; none of a grade above 0; more than ten of the highest
        grade and others below it.
    """

    n_queries: int
    n_docs: int
    n_features: int
    sizes: Ints
    grades: Floats
    counts: Ints
    is_adjacent: bool
    has_docids: bool
    has_weights: bool
    single: NDArray[np.bool_]
    equal: NDArray[np.bool_]
    irrelevant: NDArray[np.bool_]
    tied: NDArray[np.bool_]

    @property
    def size_quartiles(self) -> Floats:
        """The least number of documents of a query, the quartiles, and the greatest."""
        quartiles: Floats = np.quantile(self.sizes, [0, 0.25, 0.5, 0.75, 1])
        return quartiles

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a dictionary that can be written as JSON."""
        grades = dict(zip((f"{grade:g}" for grade in self.grades), self.counts.tolist(), strict=True))
        return {
            "queries": self.n_queries,
            "documents": self.n_docs,
            "features": self.n_features,
            "documents_per_query": self.size_quartiles.tolist(),
            "grades": grades if len(grades) <= MOST_GRADES else None,
            "distinct_grades": len(grades),
            "rows_adjacent": self.is_adjacent,
            "document_ids": self.has_docids,
            "weights": self.has_weights,
            "queries_with_one_document": int(self.single.sum()),
            "queries_with_one_grade": int(self.equal.sum()),
            "queries_without_relevant_document": int(self.irrelevant.sum()),
            "queries_with_ties_at_the_top": int(self.tied.sum()),
        }


def describe_queries(queries: Queries) -> QueryFacts:
    """Return the facts on the queries of a data set."""
    grouped = queries.grouped()
    sizes, none = queries.sizes, np.zeros(len(queries), dtype=bool)
    grades, counts = (np.unique(grouped.y, return_counts=True)) if queries.has_grades else (np.empty(0), np.empty(0))
    equal = irrelevant = tied = none
    if queries.has_grades:
        starts = grouped.indptr[:-1]
        high, low = np.maximum.reduceat(grouped.y, starts), np.minimum.reduceat(grouped.y, starts)
        at_top = np.add.reduceat((grouped.y == np.repeat(high, sizes)).astype(np.int64), starts)
        equal, irrelevant = (high == low) & (sizes > 1), high <= 0
        tied = (at_top > _TOP) & (at_top < sizes)
    return QueryFacts(
        len(queries),
        queries.n_docs,
        queries.n_features,
        sizes,
        grades,
        counts.astype(np.int64),
        grouped is queries,
        queries.docid is not None,
        queries.weight is not None or queries.doc_weight is not None,
        sizes == 1,
        equal,
        irrelevant,
        tied,
    )


def find_query_faults(facts: QueryFacts, qid: NDArray[Any]) -> Iterator[Finding]:
    """Yield findings on the number of queries, and on queries that teach nothing."""
    n = facts.n_queries
    if n < FEW_QUERIES:
        yield make_finding("few-queries", f"{n} {'query' if n == 1 else 'queries'}, {facts.n_docs:,} documents")
    for kind, flags in (
        ("no-relevant-document", facts.irrelevant),
        ("equal-grades", facts.equal & ~facts.irrelevant),
        ("single-document", facts.single),
    ):
        if flags.any():
            yield make_finding(kind, _format_queries_with(flags, qid), qid[flags][:100].tolist())
    if facts.tied.sum() > _TIED_SHARE * n:
        yield make_finding("tied-top-grades", _format_queries_with(facts.tied, qid), qid[facts.tied][:100].tolist())


def _format_queries_with(flags: NDArray[np.bool_], qid: NDArray[Any]) -> str:
    """Return how many queries have a flag as text, with their ids."""
    count, examples = int(flags.sum()), list_names(qid[flags][:3].tolist())
    return f"{count:,} of {len(flags):,} queries ({count / len(flags):.1%}), such as {examples}"


def find_grade_faults(facts: QueryFacts) -> Iterator[Finding]:
    """Yield findings on the values of the grades."""
    grades, counts = facts.grades, facts.counts
    if not len(grades):
        return
    if grades[0] < 0:
        n = int(counts[grades < 0].sum())
        yield make_finding("negative-grades", f"{n:,} documents have grades below 0; the lowest is {grades[0]:g}")
    is_whole = grades == np.floor(grades)
    if len(grades) > MOST_GRADES and is_whole.mean() < 0.5:
        span = f"from {grades[0]:g} to {grades[-1]:g}"
        yield make_finding("grades-like-scores", f"{len(grades):,} different grades {span}, most of them not whole")
        return
    if grades[-1] > HIGH_GRADE:
        yield make_finding("high-grades", f"the highest grade is {grades[-1]:g}, of {int(counts[-1]):,} documents")
    elif is_whole.all():
        absent = np.setdiff1d(np.arange(grades[0], grades[-1]), grades)
        if len(absent):
            listed = list_names([f"{grade:g}" for grade in absent])
            yield make_finding("grade-gaps", f"no document has grade {listed}; grades go up to {grades[-1]:g}")
