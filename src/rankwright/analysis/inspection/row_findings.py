"""Findings on rows: documents of one query that are equal, or have one id."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwright.analysis.inspection.finding_kinds import Finding, list_names, make_finding
from rankwright.basics.array_types import Ints
from rankwright.data.queries import Queries


def find_copied_rows(queries: Queries, row_keys: Ints) -> Iterator[Finding]:
    """Yield findings on documents of one query with equal features, or with one id; ``queries`` are grouped."""
    query = np.repeat(np.arange(len(queries)), queries.sizes)
    order = np.lexsort((row_keys, query))
    follows = (row_keys[order][1:] == row_keys[order][:-1]) & (query[order][1:] == query[order][:-1])
    group = np.cumsum(np.concatenate([[True], ~follows])) - 1
    n = np.bincount(group)
    if (n > 1).any():
        alike = order[(n > 1)[group]]
        what = _format_documents(alike, query, queries)
        yield make_finding("duplicated-rows", f"{what} have the features of another one of their query")
        if queries.has_grades:
            y = queries.y[order]
            begins = np.concatenate([[0], np.cumsum(n)[:-1]])
            mixed = np.maximum.reduceat(y, begins) > np.minimum.reduceat(y, begins)
            if mixed.any():
                what = _format_documents(order[mixed[group]], query, queries)
                yield make_finding("contradictory-rows", f"{what} equal another one that has another grade")
    yield from _find_copied_ids(queries, query)


def _find_copied_ids(queries: Queries, query: Ints) -> Iterator[Finding]:
    """Yield a finding if a document id occurs twice in a query."""
    if queries.docid is None:
        return
    docs = np.unique(queries.docid, return_inverse=True)[1]
    pairs, counts = np.unique(docs + query * (int(docs.max()) + 1), return_counts=True)
    twice = pairs[counts > 1]
    if len(twice):
        docids = np.unique(queries.docid)[twice % (int(docs.max()) + 1)]
        where = queries.qid[twice // (int(docs.max()) + 1)]
        what = f"{len(twice):,} documents, such as {docids[0]} in query {where[0]}"
        yield make_finding("duplicated-docids", what, np.unique(where)[:100].tolist())


def _format_documents(rows: Ints, query: Ints, queries: Queries) -> str:
    """Return as text how many documents these are, of how many queries."""
    at = np.unique(query[rows])
    share = f"{len(rows):,} documents ({len(rows) / queries.n_docs:.1%})"
    return f"{share} of {len(at):,} queries, such as {list_names(queries.qid[at][:3].tolist())},"
