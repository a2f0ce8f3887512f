"""Findings on single features: constant, missing, out of scale, or copies of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.feature_facts import FeatureFacts
from rankwright.analysis.inspection.finding_kinds import Finding, list_names, make_finding
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.runtime.backends import Backend, choose_nearest

MIN_RATIO = 1e4  # of the farthest value's distance from the median to that of the 1st or 99th percentile
_FEWEST_DOCS = 100  # for percentiles
_CODES = {float(f"{'9' * n}") for n in range(2, 10)} | {2.0**31 - 1, 2.0**31, 2.0**32 - 1, 1e9, 1e10}
_MIN_CODES = 0.005  # of the documents, those that have the number for a missing value
_FEWEST_CODES = 5
_BLOCK = 1 << 16  # rows that are compared at a time


def find_feature_faults(facts: FeatureFacts, sample: DocumentSample) -> Iterator[Finding]:
    """Yield findings on constant, empty and missing values, and on scale."""
    many = facts.n_docs > 1
    constant = facts.is_constant & many
    for kind, flags in (("constant-feature", constant), ("empty-feature", facts.is_empty)):
        if flags.any():
            yield make_finding(kind, _format_features_with(flags, facts), facts.name(flags))
    missing = (facts.missing > 0) & ~facts.is_empty
    if missing.any():
        most = int(np.argmax(np.where(missing, facts.missing, 0)))
        share = f"most in {facts.names[most]}: {facts.missing[most] / facts.n_docs:.1%} of the documents"
        yield make_finding("missing-values", f"{_format_features_with(missing, facts)}; {share}", facts.name(missing))
    within = (facts.varying == 0) & ~constant & ~facts.is_empty & bool(facts.n_docs > facts.n_queries)
    if within.any():
        yield make_finding("query-feature", _format_features_with(within, facts), facts.name(within))
    yield from _find_codes(facts, sample)
    yield from _find_outliers(facts)


def _format_features_with(flags: NDArray[np.bool_], facts: FeatureFacts) -> str:
    """Return how many features have a flag as text, with their names."""
    return f"{int(flags.sum()):,} of {len(flags):,} features: {list_names(facts.name(flags))}"


def _find_outliers(facts: FeatureFacts) -> Iterator[Finding]:
    """Yield a finding for each feature with values extremely far from nearly all others."""
    if facts.sampled_docs < _FEWEST_DOCS:
        return
    low, _, middle, _, high = facts.quantiles
    usual = np.maximum(high - middle, middle - low)
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.maximum(facts.high.astype(np.float64) - middle, middle - facts.low.astype(np.float64))
        found = (usual > 0) & (far >= MIN_RATIO * usual) & ~facts.is_categorical
    for j in np.flatnonzero(found).tolist():
        what = (
            f"feature {facts.names[j]} goes from {facts.low[j]:.4g} to {facts.high[j]:.4g}, but 98% of its values lie "
            f"from {low[j]:.4g} to {high[j]:.4g}"
        )
        yield make_finding("outliers", what, [facts.names[j]])


def _find_codes(facts: FeatureFacts, sample: DocumentSample) -> Iterator[Finding]:
    """Yield a finding for each feature with a number that may stand for a missing value."""
    ends = np.stack([np.abs(facts.low), np.abs(facts.high)])
    is_code = np.isin(ends, list(_CODES)) | (np.stack([facts.low, facts.high]) == -1)
    for j in np.flatnonzero(is_code.any(axis=0) & ~facts.is_categorical & (facts.distinct > 2)).tolist():
        values = np.sort(sample.columns[j])
        values = values[~np.isnan(values)].astype(np.float64)
        for end, ordered in ((facts.low[j], values), (facts.high[j], -values[::-1])):
            share = _measure_code_share(float(end), ordered)
            if share is not None:
                what = (
                    f"feature {facts.names[j]} is {end:g} in {share:.1%} of the documents, apart from all other values"
                )
                yield make_finding("missing-as-number", what, [facts.names[j]])


def _measure_code_share(code: float, ordered: Floats) -> float | None:
    """Return the share of ascending values that equal the first, if it looks like a code for missing ones, or None."""
    n = int(np.searchsorted(ordered, ordered[0], side="right"))
    if abs(ordered[0]) != abs(code) or n < max(_FEWEST_CODES, _MIN_CODES * len(ordered)) or n == len(ordered):
        return None
    gap, span = ordered[n] - ordered[0], ordered[-1] - ordered[n]
    if code == -1:  # of counts and the like: a sign or a difference has few values, or values below 0
        looks = ordered[0] == -1 and ordered[n] >= 0 and span >= 10
    else:
        looks = abs(code) in _CODES and (gap >= span or (ordered[0] < 0 <= ordered[n] and code < 0))
    return n / len(ordered) if looks else None


def find_copied_columns(queries: Queries, facts: FeatureFacts, backend: Backend) -> Iterator[Finding]:
    """Yield a finding if features are equal in every row; ``queries`` are grouped, and their hashes are verified."""
    candidates = np.flatnonzero(~facts.is_constant & ~facts.is_empty)
    order = candidates[np.argsort(facts.keys[candidates], kind="stable")]
    keys = facts.keys[order]
    groups = np.split(order, np.flatnonzero(keys[1:] != keys[:-1]) + 1) if len(order) else []
    pairs = [(int(group[0]), int(j)) for group in groups for j in group[1:]]
    near = choose_nearest(queries, backend)
    equal = near.gather(_compare_columns, near.scatter(queries), pairs) if pairs else []
    copies = [pair for pair, *same in zip(pairs, *equal, strict=True) if all(same)]
    if copies:
        listed = [f"{facts.names[j]} (= {facts.names[i]})" for i, j in sorted(copies)]
        where = sorted({int(j) for pair in copies for j in pair})
        yield make_finding("duplicated-columns", list_names(listed), [facts.names[j] for j in where])


def _compare_columns(queries: Queries, pairs: Sequence[tuple[int, int]]) -> list[bool]:
    """Return for each pair of columns whether they are equal in every row of a part."""
    return [_are_equal(queries.X, first, second) for first, second in pairs]


def _are_equal(X: Floats, first: int, second: int) -> bool:
    """Return whether two columns are equal in every row, missing values included."""
    return all(
        np.array_equal(X[start : start + _BLOCK, first], X[start : start + _BLOCK, second], equal_nan=True)
        for start in range(0, len(X), _BLOCK)
    )
