"""Section on wins and losses of any two methods, query by query and document by document."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.report.blocks import Duel, DuelDocuments, DuelQuery
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary

DOCUMENT_BYTES = 1_000_000  # the most JSON for documents, approximately
VALUE_BYTES = 1_000_000  # and the most for values
_BYTES_A_VALUE = 7


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to show."""
    values = summary.values[summary.results.measure]
    present = np.flatnonzero(~np.isnan(values).all(axis=1))
    if len(present) < 2:
        return None
    queries = summary.table("queries")
    measures = _choose_measures(summary, len(present) * values.shape[1])
    documents = _choose_documents(summary, present) if summary.has("documents") and summary.has("scores") else {}
    duel = Duel(
        tuple(summary.methods[m] for m in present),
        tuple(summary.labels[name] for name in measures),
        [
            DuelQuery(str(qid), str(fold), int(n_docs), documents.get(row))
            for row, (qid, fold, n_docs) in enumerate(
                zip(queries["qid"], queries["fold"], queries["n_docs"], strict=True)
            )
        ],
        np.stack([summary.values[name][present] for name in measures]),
        "Each test query by its two values. Open one to see where both methods rank its documents.",
        _explain_absence(documents, len(queries["qid"])),
        start=_find_best_two(summary, present),
        weighting=summary.results.weighting,
    )
    lead = (
        "Two methods, query by query. Values are means over the seeds; ranks of documents are those of the first seed."
    )
    return Content(lead, [duel])


def _find_best_two(summary: Summary, present: Ints) -> tuple[str, str]:
    """Return the names of the second best and of the best method, by the deciding measure."""
    means = np.nan_to_num(summary.results.means(), nan=-np.inf)
    best, second, *_ = sorted(present.tolist(), key=lambda m: -means[m])
    return summary.methods[second], summary.methods[best]


def _choose_measures(summary: Summary, n_values: int) -> tuple[str, ...]:
    """Return the first measures, as many as fit into ``VALUE_BYTES``; at least one."""
    return summary.measures[: max(1, VALUE_BYTES // (_BYTES_A_VALUE * n_values))]


def _explain_absence(documents: Mapping[int, DuelDocuments], n_queries: int) -> str:
    """Return a sentence that says why a query's documents are not on the page."""
    if not documents:
        return "The experiment kept no documents and scores."
    return (
        "The documents of this query are not on this page: to keep it small, it has those of the "
        f"{len(documents):,} queries (of {n_queries:,}) on which the methods differ most."
    )


def _choose_documents(summary: Summary, methods: Ints) -> dict[int, DuelDocuments]:
    """Return the documents of the queries on which the methods differ most, by query, up to ``DOCUMENT_BYTES``."""
    table = summary.table("documents")
    n_queries = len(summary.table("queries")["qid"])
    starts = np.searchsorted(table["query"], np.arange(n_queries + 1))
    values = summary.values[summary.results.measure][methods]
    order = sort_by_difference(values)
    chosen = order[np.cumsum(_estimate_sizes(table, starts, len(methods))[order]) <= DOCUMENT_BYTES]
    scores = find_first_scores(summary.table("scores"), methods, len(table["query"]))
    return {int(query): _make_documents(table, scores, int(starts[query]), int(starts[query + 1])) for query in chosen}


def sort_by_difference(values: Floats) -> Ints:
    """Return the queries by descending difference between their best and worst method; those without values last."""
    known = ~np.isnan(values)
    highest = np.max(values, axis=0, where=known, initial=-np.inf)
    lowest = np.min(values, axis=0, where=known, initial=np.inf)
    return np.argsort(-(highest - lowest), kind="stable")


def _estimate_sizes(table: Table, starts: Ints, n_methods: int) -> Floats:
    """Estimate how many bytes of JSON the documents of each query take."""
    n_docs = np.diff(starts)
    digits = np.floor(np.log10(np.maximum(n_docs, 1))) + 1
    ids = np.concatenate([[0], np.cumsum(np.char.str_len(np.asarray(table["docid"], dtype=np.str_)) + 3)])
    sizes: Floats = np.diff(ids[starts]) + n_docs * (2 + n_methods * (digits + 1)) + 50
    return sizes


def find_first_scores(table: Table, methods: Ints, n_docs: int) -> Floats:
    """Return the scores of all documents by each method (row), of the first seed that has one; NaN if none has."""
    scores = np.full((len(methods), n_docs), np.nan)
    for row, method in enumerate(methods):
        own = np.flatnonzero(table["method"] == method)
        last_first = own[np.argsort(-table["seed"][own], kind="stable")]  # the first seed overwrites the others
        scores[row, table["document"][last_first]] = table["score"][last_first]
    return scores


def _make_documents(table: Table, scores: Floats, start: int, stop: int) -> DuelDocuments:
    """Make the record of one query's documents, which are the rows from ``start`` to ``stop``."""
    ids = [str(docid) for docid in table["docid"][start:stop]]
    return DuelDocuments(ids, table["grade"][start:stop], compute_ranks(scores[:, start:stop]))


def compute_ranks(scores: Floats) -> Ints:
    """Return the rank of each document in each row, by descending score; of equals the earlier first; 0 for NaN."""
    order = np.argsort(-scores, axis=1, kind="stable")
    places = np.argsort(order, axis=1, kind="stable") + 1
    return np.where(np.isnan(scores), 0, places)


DUELS = ReportSection("Where does it win and lose?", ("queries", "values"), _make_content)
