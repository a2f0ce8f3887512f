"""Features that give the label away: one feature alone ranks nearly perfectly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.feature_facts import FeatureFacts
from rankwright.analysis.inspection.finding_kinds import Finding, list_names, make_finding
from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.data.pair_orders import PairOrders, count_ordered_pairs
from rankwright.runtime.backends import Backend

# docs/inspect.md says how these were chosen.
MIN_SHARE = 0.995  # of the pairs that a feature orders, those in the right order
MIN_ORDERED = 0.5  # of the pairs, those that it orders
MIN_TOP = 0.9  # of its first documents, those above the lowest grade
FEWEST_QUERIES, FEWEST_DOCS = 5, 50  # with pairs; documents above others: less is no evidence

_MOST_UPPERS = 25  # documents of a query that are compared with those of lower grades
_MOST_VALUES = 64  # of a feature whose values may be codes
_LABEL_NAMES = re.compile(
    r"(?:target_?)?(?:label|relevance|relevance_label|grade|rating|judg(?:e)?ment|target|qrel|gain)s?", re.IGNORECASE
)


class SingleFeatures(NamedTuple):
    """The ranking by each feature alone: how it orders pairs of different grades, a number per feature each."""

    accuracy: Floats  # pairs in the right order, ties counting half: of the better direction, 0.5 to 1
    rising: Ints  # 1 if higher values are better, -1 if lower ones are
    share: Floats  # of the pairs that it orders, those in the right order
    ordered: Floats  # of the pairs without a missing value, those that it orders
    top: Floats  # of its first documents, the share above the lowest grade of their query
    n_queries: Ints  # with pairs that it orders
    n_uppers: Ints  # documents above others, neither missing

    @property
    def gives_label_away(self) -> Ints:
        """The columns of the features that rank nearly perfectly, with enough evidence."""
        return np.flatnonzero(
            (self.share >= MIN_SHARE)
            & (self.ordered >= MIN_ORDERED)
            & (self.top >= MIN_TOP)
            & (self.n_queries >= FEWEST_QUERIES)
            & (self.n_uppers >= FEWEST_DOCS)
        )


class _GradedPairs(NamedTuple):
    """The documents of a sample by query and descending grade, and where the lower grades of each begin."""

    order: Ints
    indptr: Ints
    lower: Ints
    chosen: NDArray[np.bool_]


def rank_by_features(sample: DocumentSample, columns: Floats, backend: Backend) -> SingleFeatures:
    """Return how well each row of ``columns``, a value per sampled document, orders pairs of different grades."""
    pairs = _sort_by_grade(sample)
    blocks = np.array_split(np.arange(len(columns)), max(min(len(columns), 16), 1))
    parts = backend.each(lambda block: _count(columns[block], pairs), blocks)
    return _summarise(PairOrders(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))))


def _count(columns: Floats, pairs: _GradedPairs) -> PairOrders:
    """Return what each of these columns makes of the pairs."""
    ordered = np.ascontiguousarray(columns[:, pairs.order])
    counted: PairOrders = count_ordered_pairs(ordered, pairs.indptr, pairs.lower, pairs.chosen)
    return counted


def _sort_by_grade(sample: DocumentSample) -> _GradedPairs:
    """Return the documents sorted by query and descending grade; a sample of those above a lower grade is chosen."""
    assert sample.y is not None
    query = sample.query_of_row
    order = np.lexsort((-sample.y, query))
    y, end = sample.y[order], sample.indptr[1:][query]
    begins = np.flatnonzero(np.concatenate([[True], (y[1:] != y[:-1]) | (query[1:] != query[:-1])]))
    run = np.cumsum(np.bincount(begins, minlength=len(y))) - 1
    lower = np.append(begins[1:], len(y))[run]
    is_upper = lower < end
    n_uppers = np.bincount(query, weights=is_upper, minlength=len(sample.queries))[query]
    chosen = is_upper & (np.random.default_rng(0).random(len(y)) * n_uppers < _MOST_UPPERS)
    return _GradedPairs(order, sample.indptr, lower, chosen)


def _summarise(counts: PairOrders) -> SingleFeatures:
    """Return the means over queries, in the better direction of each feature."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ordered = counts.right + counts.wrong
        signed = _mean(np.where(counts.present > 0, (counts.right - counts.wrong) / counts.present, np.nan))
        rising = np.where(signed >= 0, 1, -1)
        right = np.where((rising > 0)[:, None], counts.right, counts.wrong)
        has_order = ordered > 0
        share = _mean(np.where(has_order, right / ordered, np.nan))
        all_ordered = ordered.sum(axis=1) / counts.present.sum(axis=1)
        ends = np.where((rising > 0)[:, None], counts.top, counts.bottom)
        top = _mean(np.where(has_order, ends, np.nan))
    accuracy = 0.5 + np.abs(signed) / 2
    return SingleFeatures(
        accuracy, rising, share, all_ordered, top, has_order.sum(axis=1), (counts.uppers * has_order).sum(axis=1)
    )


def _mean(values: Floats) -> Floats:
    """Return the mean of each row, missing values left out; NaN where all are missing."""
    known = ~np.isnan(values)
    means: Floats = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
    return means


def find_label_leaks(
    sample: DocumentSample, facts: FeatureFacts, backend: Backend
) -> tuple[SingleFeatures, list[Finding]]:
    """Return how well each feature alone ranks, and a finding for each one that ranks nearly perfectly.

    A feature is tried by its value, by whether it is missing and, where it has few values, by the mean grade of each
    value in the other half of the queries: so codes and categories are found whose order means nothing.
    """
    alone = rank_by_features(sample, sample.columns, backend)
    by_value = [j for j in alone.gives_label_away if not facts.is_categorical[j]]
    known = set(by_value)
    coded = [j for j in range(len(facts.names)) if j not in known and _may_be_code(facts, j)]
    absent = [j for j in range(len(facts.names)) if 0 < facts.missing[j] < facts.n_docs]
    findings = [_make_leak(alone, j, facts.names[j], "") for j in by_value]
    for columns, encode, how in (
        (coded, _encode_by_grade, "by the mean grade of each value in other queries, "),
        (absent, _flag_missing, "by whether its value is missing, "),
    ):
        left = [j for j in columns if j not in known]
        if left:
            encoded = np.stack([encode(sample, sample.columns[j]) for j in left])
            tried = rank_by_features(sample, encoded, backend)
            for at in tried.gives_label_away:
                known.add(left[at])
                findings.append(_make_leak(tried, at, facts.names[left[at]], how))
    return alone, findings


def _make_leak(found: SingleFeatures, at: int, name: str, how: str) -> Finding:
    """Return the finding of a feature that gives the label away."""
    direction = how or ("higher is better, " if found.rising[at] > 0 else "lower is better, ")
    what = (
        f"feature {name} alone ({direction}{found.n_queries[at]:,} queries) puts {found.share[at]:.2%} of the pairs "
        f"that it orders in the order of the grades; it orders {found.ordered[at]:.0%} of all pairs"
    )
    return make_finding("label-leak", what, [name])


def _may_be_code(facts: FeatureFacts, column: int) -> bool:
    """Return whether a feature has so few values that they may be codes of something."""
    return bool(2 < facts.distinct[column] <= _MOST_VALUES) or bool(
        facts.is_categorical[column] and 1 < facts.distinct[column] <= facts.sampled_docs // 20
    )


def _encode_by_grade(sample: DocumentSample, column: Floats) -> Floats:
    """Return for each document the mean grade of its value in the other half of the queries."""
    assert sample.y is not None
    values, codes = np.unique(column, return_inverse=True)
    half = sample.query_of_row % 2
    sums = np.bincount(2 * codes + half, weights=sample.y, minlength=2 * len(values)).reshape(-1, 2)
    counts = np.bincount(2 * codes + half, minlength=2 * len(values)).reshape(-1, 2)
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, sums / counts, sample.y.mean())
    encoded: Floats = means[codes, 1 - half].astype(np.float32)
    return encoded


def _flag_missing(sample: DocumentSample, column: Floats) -> Floats:
    """Return for each document 1 if its value is missing, else 0."""
    return np.isnan(column).astype(np.float32)


def find_label_names(names: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding if features have the names that labels usually have."""
    found = [name for name in names if _LABEL_NAMES.fullmatch(name)]
    if found:
        yield make_finding("label-name", f"features: {list_names(found)}", found)
