"""Features that look like ids: they name or number queries, documents or rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.feature_facts import FeatureFacts
from rankwright.analysis.inspection.finding_kinds import Finding, make_finding
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries

MIN_DISTINCT = 0.99  # of the values of an id, the share that differs
MAX_DISTANCE = 0.05  # of the distribution of ids from an even one (Kolmogorov and Smirnov)
_FEWEST_QUERIES, _FEWEST_DOCS, _FEWEST_EVEN = 10, 50, 200
_NAMES = re.compile(
    r"(?:query|q|doc|document|product|item|url|row|session|user)?[_ -]?id|unnamed: 0|index|row(?:_?num(?:ber)?)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(\d{1,15})\D*$")


def find_id_features(queries: Queries, sample: DocumentSample, facts: FeatureFacts) -> Iterator[Finding]:
    """Yield a finding for each feature that looks like an id; ``queries`` are grouped."""
    for j in range(len(facts.names)):
        reason = _explain_id(queries, sample, facts, j)
        if reason is not None:
            yield make_finding("id-feature", f"feature {facts.names[j]} {reason}", [facts.names[j]])


def _explain_id(queries: Queries, sample: DocumentSample, facts: FeatureFacts, j: int) -> str | None:
    """Return why a feature looks like an id, or None if it does not."""
    if queries.features is not None and _NAMES.fullmatch(facts.names[j]):
        return "has the name of an id"
    if facts.is_categorical[j]:
        many = facts.distinct[j] >= 0.5 * facts.sampled_docs and facts.sampled_docs >= _FEWEST_DOCS
        return f"has {facts.distinct[j]:,} categories in {facts.sampled_docs:,} documents" if many else None
    if not facts.is_whole[j] or facts.missing[j] or facts.low[j] == facts.high[j]:
        return None
    values = sample.columns[j].astype(np.float64)
    if facts.varying[j] == 0:
        return _explain_query_id(values[sample.indptr[:-1]], queries, sample)
    if sample.n_docs < _FEWEST_DOCS:
        return None
    if _numbers_rows_of_queries(values, sample):
        return "numbers the rows of each query"
    if facts.distinct[j] >= 10 and _equals_ids(values, queries.docid, sample.rows):
        return "is the number in the document ids"
    if facts.distinct[j] < MIN_DISTINCT * sample.n_docs:
        return None
    return _explain_numbering(values, queries.n_docs, "documents")


def _explain_query_id(values: Floats, queries: Queries, sample: DocumentSample) -> str | None:
    """Return why a feature that is constant within queries looks like their id, given a value per query, or None."""
    if len(values) < _FEWEST_QUERIES:
        return None
    if _equals_ids(values, queries.qid, sample.queries):
        return "is the number in the query ids"
    if len(np.unique(values)) < MIN_DISTINCT * len(values):
        return None
    return _explain_numbering(values, len(queries), "queries")


def _explain_numbering(values: Floats, n: int, what: str) -> str | None:
    """Return how values that nearly all differ number ``n`` things, or None if they do not."""
    steps = np.diff(values)
    if (steps >= 0).all() or (steps <= 0).all():
        return f"numbers the {what} in their order: whole numbers, {_describe_distinct(values)}"
    span = float(np.ptp(values))
    if span + 1 <= 2 * n:
        return f"numbers the {what}: whole numbers of a range of {span + 1:,.0f}, {_describe_distinct(values)}"
    if len(values) < _FEWEST_EVEN:
        return None
    even = (np.sort(values) - values.min()) / span
    distance = float(np.abs(even - np.linspace(0, 1, len(values))).max())
    if distance > MAX_DISTANCE:
        return None
    return (
        f"may be an id of {what}: whole numbers spread evenly up to {values.max():,.0f}, {_describe_distinct(values)}"
    )


def _describe_distinct(values: Floats) -> str:
    """Return as text how many of the values differ."""
    distinct = len(np.unique(values))
    return "all different" if distinct == len(values) else f"{distinct / len(values):.1%} of them different"


def _numbers_rows_of_queries(values: Floats, sample: DocumentSample) -> bool:
    """Return whether values go up by one within every query, from the same number in nearly all of them."""
    inside = np.ones(len(values) - 1, dtype=bool)
    inside[sample.indptr[1:-1] - 1] = False
    if inside.sum() < _FEWEST_DOCS or not (np.diff(values)[inside] == 1).all():
        return False
    starts = values[sample.indptr[:-1]]
    return bool((starts == np.median(starts)).mean() >= MIN_DISTINCT)


def _equals_ids(values: Floats, ids: NDArray[Any] | None, at: NDArray[Any]) -> bool:
    """Return whether nearly all values are the numbers that the ids at these places are or end with."""
    if ids is None:
        return False
    some = np.linspace(0, len(at) - 1, min(len(at), _FEWEST_DOCS)).astype(np.int64)
    return _match(values[some], ids[at[some]]) and _match(values, ids[at])


def _match(values: Floats, ids: NDArray[Any]) -> bool:
    """Return whether nearly all values are the numbers in the ids, as float32."""
    found = [_DIGITS.search(str(each)) for each in ids.tolist()]
    numbers = np.array([np.nan if each is None else float(each[1]) for each in found], dtype=np.float32)
    return bool((values == numbers).mean() >= MIN_DISTINCT)
