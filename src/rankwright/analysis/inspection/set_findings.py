"""Findings on two sets: queries and documents in both, and features or grades that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.feature_facts import FeatureFacts
from rankwright.analysis.inspection.finding_kinds import Finding, list_names, make_finding
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries

MIN_SHARED, MIN_SHARED_SHARE, MIN_SHARED_RATIO = 5, 0.005, 3.0  # rows in both sets; to those of two queries of one set
MIN_DISTANCE = 0.25  # between two distributions (Kolmogorov and Smirnov)
_CHANCE = 1e-4  # that a distance between equal distributions is called a shift, over all features
_MIN_EXPECTED = 10.0  # queries that should have a grade, or a rare value, for its absence to be noticed


@dataclass(frozen=True, slots=True, eq=False)
class InspectedSet:
    """A data set, grouped, with what was found out about its rows and features."""

    queries: Queries
    row_keys: Ints
    sample: DocumentSample
    facts: FeatureFacts


def find_shared_queries(first: Queries, second: Queries, keys: Ints, other_keys: Ints) -> Iterator[Finding]:
    """Yield findings on queries of the second set that are in the first; keys are hashes of the rows.

    A query is in both if all its documents are, under its own id or another one.
    """
    own, others = hash_queries(keys, first.indptr), hash_queries(other_keys, second.indptr)
    several = _has_different_rows(other_keys, second.indptr)  # a query of one repeated row is no evidence
    is_shared = np.isin(others, own) & several
    if is_shared.any():
        names = second.qid[is_shared].tolist()
        known = dict(zip(own.tolist(), first.qid.tolist(), strict=True))
        moved = [q for q, key in zip(names, others[is_shared].tolist(), strict=True) if str(known[key]) != str(q)]
        aside = f"; {len(moved):,} of them under another id, such as {list_names(moved, 3)}" if moved else ""
        what = f"{len(names):,} of the {len(second):,} queries are in both, such as {list_names(names, 3)}{aside}"
        yield make_finding("shared-queries", what, names[:100])
    ids = {str(query) for query in first.qid.tolist()}
    split = np.array([str(query) in ids for query in second.qid.tolist()]) & ~np.isin(others, own)
    if split.any() and not _share_numbers_only(first, second):
        names = second.qid[split].tolist()
        what = f"{len(names):,} of the {len(second):,} queries, such as {list_names(names, 3)}"
        yield make_finding("split-queries", what, names[:100])


def hash_queries(keys: Ints, indptr: Ints) -> Ints:
    """Return a hash of each query, made of those of its rows in any order."""
    mixed = (keys ^ (keys >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    hashes: Ints = np.add.reduceat(mixed ^ (mixed >> np.uint64(29)), indptr[:-1])
    return hashes


def _has_different_rows(keys: Ints, indptr: Ints) -> NDArray[np.bool_]:
    """Return whether each query has rows that differ, or is the only document of its kind."""
    starts = indptr[:-1]
    return np.maximum.reduceat(keys, starts) > np.minimum.reduceat(keys, starts)


def _share_numbers_only(first: Queries, second: Queries) -> bool:
    """Return whether ids in both sets only count queries (1, 2, 3, ...), as files of different queries often do."""
    return all(
        queries.qid.dtype.kind in "iu" and queries.qid.min() in (0, 1) and np.ptp(queries.qid) + 1 == len(queries)
        for queries in (first, second)
    )


def find_shared_rows(first: InspectedSet, second: InspectedSet) -> Iterator[Finding]:
    """Yield a finding if rows of the second set are in queries of the first, more often than within the first."""
    queries = second.queries
    own = hash_queries(first.row_keys, first.queries.indptr)
    whole = np.isin(hash_queries(second.row_keys, queries.indptr), own)
    ids = {str(query) for query in first.queries.qid.tolist()}
    apart = ~whole & np.array([str(query) not in ids for query in queries.qid.tolist()])
    rows = np.repeat(apart, queries.sizes)  # of the other queries those findings say enough
    shared = np.isin(second.row_keys, first.row_keys) & rows
    n, total = int(shared.sum()), int(rows.sum())
    if n < MIN_SHARED or n < MIN_SHARED_SHARE * total:
        return
    usual = _measure_repeated_share(first)
    if n / total < MIN_SHARED_RATIO * usual:
        return
    at = np.unique(np.repeat(np.arange(len(queries)), queries.sizes)[shared])
    what = (
        f"{n:,} of the {total:,} documents of other queries ({n / total:.1%}) have the features of a document of the "
        f"first set, such as in query {list_names(queries.qid[at][:3].tolist())}; within the first set {usual:.1%} "
        "have those of another query's document"
    )
    yield make_finding("shared-rows", what, queries.qid[at][:100].tolist())


def _measure_repeated_share(inspected: InspectedSet) -> float:
    """Return the share of the documents that have the features of a document of another query of their set."""
    query = np.repeat(np.arange(len(inspected.queries)), inspected.queries.sizes)
    unique, codes = np.unique(inspected.row_keys, return_inverse=True)
    low, high = np.full(len(unique), len(query)), np.full(len(unique), -1)
    np.minimum.at(low, codes, query)
    np.maximum.at(high, codes, query)
    return float((low < high)[codes].mean())


def find_other_features(first: FeatureFacts, second: FeatureFacts, named: bool) -> Iterator[Finding]:
    """Yield a finding if the features of two sets differ in number, names or order."""
    ours, theirs = list(first.names), list(second.names)
    if ours == theirs:
        return
    absent, new = [n for n in ours if n not in set(theirs)], [n for n in theirs if n not in set(ours)]
    if not named or len(ours) != len(theirs):
        what = f"{len(ours):,} features here, {len(theirs):,} in the other set"
        extra = f"; here only: {list_names(absent)}" if absent and named else ""
        what += extra + (f"; there only: {list_names(new)}" if new and named else "")
    elif absent:
        what = f"names differ; here only: {list_names(absent)}; there only: {list_names(new)}"
    else:
        what = "the same names in another order"
    yield make_finding("other-features", what, [*absent, *new])


def find_shifts(first: InspectedSet, second: InspectedSet, columns: list[tuple[int, int]]) -> Iterator[Finding]:
    """Yield findings on features that vary in one set only or are distributed differently; pairs of columns match."""
    lost: set[int] = set()
    for i, j in columns:
        reason = _explain_lost(first, second, i, j)
        if reason is not None:
            lost.add(i)
            yield make_finding("lost-feature", f"feature {first.facts.names[i]} {reason}", [first.facts.names[i]])
    least = _choose_distance(first, second, len(columns))
    for i, j in columns:
        if i in lost or first.facts.is_categorical[i]:
            continue
        distance = measure_distance(first.sample.columns[i], second.sample.columns[j])
        if distance >= least:
            medians = f"medians {first.facts.quantiles[2, i]:.4g} and {second.facts.quantiles[2, j]:.4g}"
            name = first.facts.names[i]
            what = f"feature {name}: {medians}; the distributions are {distance:.2f} apart, chance explains {least:.2f}"
            yield make_finding("feature-shift", what, [name])


def _choose_distance(first: InspectedSet, second: InspectedSet, n_tests: int) -> float:
    """Return the distance above which distributions differ more than chance explains.

    Documents of a query are not independent, so the numbers of queries count (the bound of Kolmogorov and Smirnov).
    """
    factor = np.sqrt(-0.5 * np.log(_CHANCE / max(n_tests, 1) / 2))
    m = [len(each.sample.queries) for each in (first, second)]
    return max(MIN_DISTANCE, float(factor * np.sqrt(1 / m[0] + 1 / m[1])))


def measure_distance(first: Floats, second: Floats) -> float:
    """Return the largest difference between two distribution functions; missing values count as the highest.

    >>> measure_distance(np.array([1.0, 2.0]), np.array([1.5, np.nan]))
    0.5
    """
    ours, theirs = (np.sort(np.where(np.isnan(values), np.inf, values)) for values in (first, second))
    values = np.concatenate([ours, theirs])
    shares = [np.searchsorted(each, values, side="right") / len(each) for each in (ours, theirs)]
    return float(np.abs(shares[0] - shares[1]).max())


def _explain_lost(first: InspectedSet, second: InspectedSet, i: int, j: int) -> str | None:
    """Return how a feature varies in one set only; None if it does not, or if chance may explain it."""
    dead = [facts.is_constant[at] or facts.is_empty[at] for facts, at in ((first.facts, i), (second.facts, j))]
    if dead[0] == dead[1]:
        return None
    live, at = (second, j) if dead[0] else (first, i)
    column, starts = live.sample.columns[at], live.sample.indptr[:-1]
    values, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
    differs = np.maximum.reduceat((codes != counts.argmax()).astype(np.int64), starts)
    constant, own = (first, i) if dead[0] else (second, j)
    if differs.mean() * len(constant.queries) < _MIN_EXPECTED:  # in few queries it may be constant by chance
        return None
    facts, at = constant.facts, own
    there = "in the other set" if dead[0] else "here"
    value = "always missing" if facts.is_empty[at] else f"always {facts.low[at]:g}"
    return f"is {value} {'here' if dead[0] else 'in the other set'}, but has {len(values):,} values {there}"


def find_other_grades(first: Queries, second: Queries) -> Iterator[Finding]:
    """Yield a finding if the grades of two sets differ more than chance explains."""
    for one, other, here in ((first, second, "here"), (second, first, "in the other set")):
        for grade in np.setdiff1d(one.y, other.y)[:20]:
            has_grade = np.add.reduceat((one.y == grade).astype(np.int64), one.indptr[:-1]) > 0
            if has_grade.mean() * len(other) >= _MIN_EXPECTED:
                what = f"grade {grade:g} occurs {here} only, in {has_grade.mean():.1%} of the queries"
                yield make_finding("other-grades", what)
                return
    factor = np.sqrt(-0.5 * np.log(_CHANCE / 2))
    least = max(MIN_DISTANCE, float(factor * np.sqrt(1 / len(first) + 1 / len(second))))
    if (distance := measure_distance(first.y, second.y)) >= least:
        means = f"mean grades {first.y.mean():.3g} and {second.y.mean():.3g}"
        what = f"{means}; the distributions are {distance:.2f} apart, chance explains {least:.2f}"
        yield make_finding("other-grades", what)


def find_new_categories(first: InspectedSet, second: InspectedSet, columns: list[tuple[int, int]]) -> Iterator[Finding]:
    """Yield a finding for each categorical feature whose values in the second set are not all in the first."""
    for i, j in columns:
        known, found = first.facts.list_categories(i), second.facts.list_categories(j)
        new = [] if not known else [value for value in found if value not in set(known)]
        if new:
            what = f"feature {first.facts.names[i]}: {len(new):,} values, such as {list_names(new, 3)}"
            yield make_finding("new-categories", what, [first.facts.names[i]])
