"""Facts on features: missing values, zeros, extremes and copies from all rows; quartiles from a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.row_scan import RowScan
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Categories, Queries
from rankwright.runtime.backends import Backend

QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)


@dataclass(frozen=True, slots=True, eq=False)
class FeatureFacts:
    """The facts on each feature: arrays with a number per feature.

    Parameters
    ----------
    names : sequence of str
        The names of the features, or their numbers from 1.
    n_docs, n_queries : int
        The numbers of documents and queries that were counted.
    missing, zeros : arrays
        The numbers of documents whose value is missing, and is 0.
    is_whole : array of bool
        Whether all values are whole numbers.
    low, high : arrays
        The least and the greatest value; NaN where all are missing.
    varying : array
        The number of queries within which the feature varies.
    keys : array
        Hashes: equal for features that are equal in every row.
    quantiles : array of shape (5, n_features)
        The quantiles 0.01, 0.25, 0.5, 0.75 and 0.99 of the sampled documents' values.
    distinct : array
        The number of different values in the sample, missing ones not counted.
    sampled_docs : int
        The number of documents in the sample.
    categories : tuple, optional
        For each feature None or, where it is categorical, its values.
    """

    names: Sequence[str]
    n_docs: int
    n_queries: int
    missing: Ints
    zeros: Ints
    is_whole: NDArray[np.bool_]
    low: Floats
    high: Floats
    varying: Ints
    keys: Ints
    quantiles: Floats
    distinct: Ints
    sampled_docs: int
    categories: Categories | None

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether all values of each feature are missing."""
        flags: NDArray[np.bool_] = self.missing == self.n_docs
        return flags

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether each feature has one value, in all documents."""
        flags: NDArray[np.bool_] = (self.low == self.high) & (self.missing == 0)
        return flags

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Whether the values of each feature are categories."""
        if self.categories is None:
            return np.zeros(len(self.names), dtype=bool)
        return np.array([each is not None for each in self.categories])

    def name(self, columns: NDArray[Any]) -> list[str]:
        """Return the names of features that are given by a flag each, or by their columns."""
        return [self.names[int(j)] for j in np.arange(len(self.names))[columns]]

    def list_categories(self, column: int) -> tuple[str, ...]:
        """Return the values of a categorical feature; none if it is not categorical."""
        return () if self.categories is None else self.categories[column] or ()

    def to_json(self) -> list[dict[str, Any]]:
        """Return a dictionary for each feature."""
        return [
            {
                "feature": self.names[j],
                "missing": int(self.missing[j]),
                "zeros": int(self.zeros[j]),
                "min": float(self.low[j]),
                "quartiles": [float(value) for value in self.quantiles[1:4, j]],
                "max": float(self.high[j]),
                "distinct": int(self.distinct[j]),
                "varies_in_queries": int(self.varying[j]),
                "categories": None if self.categories is None else self.categories[j],
            }
            for j in range(len(self.names))
        ]


def describe_features(scan: RowScan, sample: DocumentSample, queries: Queries, backend: Backend) -> FeatureFacts:
    """Return the facts on each feature, given the summaries of all rows, or of the sampled ones, and the sample."""
    summaries = scan.columns
    ordered = backend.each(_describe_sorted, list(sample.columns))
    empty = summaries.missing == scan.n_docs
    return FeatureFacts(
        name_features(queries.features, queries.n_features),
        scan.n_docs,
        scan.n_queries,
        summaries.missing,
        summaries.zeros,
        (summaries.fractions == 0) & ~empty,
        np.where(empty, np.nan, summaries.low),
        np.where(empty, np.nan, summaries.high),
        summaries.varying,
        summaries.keys,
        np.array([quantiles for quantiles, _ in ordered]).T,
        np.array([distinct for _, distinct in ordered]),
        sample.n_docs,
        queries.categories,
    )


def _describe_sorted(column: Floats) -> tuple[Floats, int]:
    """Return the quantiles of a column's values, and how many of them differ."""
    values = np.sort(column)  # NaN last
    values = values[: len(values) - int(np.isnan(values).sum())]
    if not len(values):
        return np.full(len(QUANTILES), np.nan), 0
    places = np.array(QUANTILES) * (len(values) - 1)
    below = places.astype(np.int64)
    first, second = values[below].astype(np.float64), values[np.minimum(below + 1, len(values) - 1)]
    return first + (second - first) * (places - below), 1 + int((values[1:] != values[:-1]).sum())
