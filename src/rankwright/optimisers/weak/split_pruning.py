"""Which features cannot split a node of a tree, so that LightGBM looks at them no more below it on one machine.

On several machines it looks at them again, and may find splits that one machine does not find. So the histograms of
such features are made void before a machine looks for its best split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.optimisers.weak.lightgbm_bins import LightGBMBins, explain_version

_TRIED = 15  # splits of a feature, evenly over its bins, of which one mostly can split
_SURE = 1e-9  # by how much more than necessary
_EPSILON = float(np.float32(1e-15))  # LightGBM's own, where a sum of curvatures begins


class NodeSums(NamedTuple):
    """The sums over the documents of a node: of gradients and of curvatures, and the number of documents."""

    gradient: float
    curvature: float
    n_docs: int


@dataclass(slots=True, eq=False)
class Histogram:
    """The gradients and curvatures of a node by the bins of a machine's features.

    Parameters
    ----------
    bins : array of shape (2, n_bins)
        The sums for each bin, one feature after another.
    sums : NodeSums
        The sums of the node.
    known_void : array of shape (n_features,)
        Which features cannot split a node above this one.
    """

    bins: Floats
    sums: NodeSums
    known_void: NDArray[np.bool_]


class _Scan(NamedTuple):
    """The order in which a scan adds up the bins of features, a row for each feature.

    Parameters
    ----------
    features : array
        The features.
    bins : array of shape (n_features, n_steps)
        The rows of a histogram; that after the last row is a bin without documents.
    """

    features: Ints
    bins: Ints


class FeaturePruner:
    """A finder of the features of one machine that cannot split a node.

    Parameters
    ----------
    bins : mapping
        The bins of each feature, by its number.
    params : mapping
        LightGBM's parameters.
    rank, n_machines : int
        The number of this machine, and of all.
    """

    def __init__(self, bins: Mapping[int, LightGBMBins], params: Mapping[str, Any], rank: int, n_machines: int) -> None:
        self.fewest = int(params["min_data_in_leaf"])
        self.least = float(params.get("min_sum_hessian_in_leaf", 1e-3))
        self.penalty, self.min_gain = float(params.get("lambda_l2", 0.0)), float(params.get("min_gain_to_split", 0.0))
        self.features = [bins[feature] for feature in _list_own(bins, rank, n_machines)]
        sizes = [_count_stored(each) for each in self.features]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_bins = int(self.starts[-1])
        rows = [_number_bins(each, start) for each, start in zip(self.features, self.starts.tolist(), strict=False)]
        self.fixed = np.array([i for i, each in enumerate(self.features) if each.most_frequent > 0], dtype=np.int64)
        frequent = np.array([each.most_frequent for each in self.features], dtype=np.int64)
        self.places = self.starts[self.fixed] + frequent[self.fixed]
        self.is_categorical = np.array([each.is_categorical for each in self.features], dtype=bool)
        numerical = [i for i, each in enumerate(self.features) if not each.is_categorical]
        two_sided = [i for i in numerical if self.features[i].has_missing and len(rows[i]) > 2]
        from_right = [rows[i][1 : len(rows[i]) - (i in set(two_sided))][::-1] for i in numerical]
        self.right = self._make_scan(numerical, from_right)
        self.left = self._make_scan(two_sided, [rows[i][:-1] for i in two_sided])
        self.derived = np.array([self.features[i].most_frequent == 0 for i in two_sided], dtype=bool)
        self.derived_from = self._make_scan(two_sided, [rows[i][1:] for i in two_sided])
        self.ends = self.starts[1:] - np.isin(np.arange(len(self.features)), two_sided)
        spread = np.linspace(0.0, 1.0, _TRIED + 2)[1:-1]
        self.tried = (self.starts[:-1, None] + 1 + (self.ends - self.starts[:-1] - 1)[:, None] * spread).astype(
            np.int64
        )

    def _make_scan(self, features: list[int], orders: list[Ints]) -> _Scan:
        longest = max(map(len, orders), default=0)
        bins = np.full((len(orders), longest), self.n_bins, dtype=np.int64)  # a last bin has nothing
        for row, order in zip(bins, orders, strict=True):
            row[: len(order)] = np.where(order < 0, self.n_bins, order)
        return _Scan(np.array(features, dtype=np.int64), bins)

    def leave_out(self, given: Floats, parent: Histogram | None, sums: NodeSums) -> Histogram:
        """Return the histogram of the smaller part of a node, which is made void in place for features to leave out.

        ``given`` has the sums for each bin; ``parent`` is the histogram of the node, or None for the root.
        """
        if len(given) != self.n_bins:
            raise explain_version("gives each machine other features")
        own = np.ascontiguousarray(given.T)
        if len(self.fixed):  # the most frequent bin is what the others leave
            own[:, self.places] = 0.0
            others = np.add.reduceat(own, self.starts[:-1], axis=1)[:, self.fixed]
            own[:, self.places] = np.array([[sums.gradient], [sums.curvature]]) - others
        if parent is None:
            return Histogram(own, sums, np.zeros(len(self.features), dtype=bool))
        void = self.find_unsplittable(parent)
        for feature in np.flatnonzero(void):
            given[self.starts[feature] : self.starts[feature + 1], 0] = np.nan
        return Histogram(own, sums, void)

    def find_larger(self, parent: Histogram, smaller: Histogram, sums: NodeSums) -> Histogram:
        """Return the histogram of the larger part of a node."""
        return Histogram(parent.bins - smaller.bins, sums, smaller.known_void)

    def find_unsplittable(self, node: Histogram) -> NDArray[np.bool_]:
        """Return which features cannot split a node, or one above it."""
        open_features = ~node.known_void & ~self.is_categorical
        open_features[self._try_splits(node)] = False
        found = node.known_void.copy()
        left = np.flatnonzero(open_features)
        if len(left):
            found[left] = ~self._scan_all(node, open_features)[left]
        return found

    def _try_splits(self, node: Histogram) -> Ints:
        """Return features that surely can split a node, because one of a few splits can."""
        sums, total = node.sums, node.sums.curvature + 2 * _EPSILON
        counts = np.floor(node.bins[1] * (sums.n_docs / total) + 0.5)
        before = [np.concatenate([[0.0], np.cumsum(each)]) for each in (*node.bins, counts)]
        gradient, curvature, n_docs = (each[self.ends][:, None] - each[self.tried] for each in before)
        found = self._can_split(gradient, curvature, n_docs, sums, total, _SURE)
        return np.flatnonzero(found)

    def _scan_all(self, node: Histogram, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of the wanted features can split a node, in LightGBM's own order of additions."""
        sums, can_split = node.sums, np.zeros(len(self.features), dtype=bool)
        gradients, curvatures = (np.append(each, 0.0) for each in node.bins)
        total = sums.curvature + 2 * _EPSILON
        counts = np.floor(curvatures * (sums.n_docs / total) + 0.5)
        for scan in (self.right, self.left):
            at = wanted[scan.features]
            features, bins = scan.features[at], scan.bins[at]
            if not len(features):
                continue
            parts = [each[bins] for each in (gradients, curvatures, counts)]
            first = [np.full(len(features), start) for start in (0.0, _EPSILON, 0.0)]
            if scan is self.left:  # a first bin that is not stored is what the others leave
                others = [each[self.derived_from.bins[at]] for each in (gradients, curvatures, counts)]
                for i, whole in enumerate((sums.gradient, total - _EPSILON, float(sums.n_docs))):
                    rest = np.cumsum(np.column_stack([np.full(len(features), whole), -others[i]]), axis=1)[:, -1]
                    first[i] = np.where(self.derived[at], rest, first[i])
            summed = [
                np.cumsum(np.column_stack([start, part]), axis=1)[:, 1:]
                for start, part in zip(first, parts, strict=True)
            ]
            gradient, curvature, n_docs = summed
            can_split[features] |= self._can_split(gradient, curvature, n_docs, sums, total)
        return can_split

    def _can_split(
        self, gradient: Floats, curvature: Floats, n_docs: Floats, sums: NodeSums, total: float, margin: float = 0.0
    ) -> NDArray[np.bool_]:
        """Return for each feature whether a split is allowed and gains anything, from the sums on one side of each."""
        rest, left = total - curvature, sums.gradient - gradient
        least = self.least + margin * total
        found = (n_docs >= self.fewest) & (sums.n_docs - n_docs >= self.fewest)
        found &= (curvature >= least) & (rest >= least)
        before = sums.gradient * sums.gradient / (total + self.penalty) + self.min_gain
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = left * left / (rest + self.penalty) + gradient * gradient / (curvature + self.penalty)
        return np.asarray((found & (gain * (1.0 - margin) > before)).any(axis=1))


def _list_own(bins: Mapping[int, LightGBMBins], rank: int, n_machines: int) -> list[int]:
    """Return the features that a machine finds splits of: each goes to the machine with the fewest bins so far."""
    load, own = [0] * n_machines, list[int]()
    for feature in sorted(bins):
        machine = load.index(min(load))
        load[machine] += _count_stored(bins[feature])
        if machine == rank:
            own.append(feature)
    return own


def _count_stored(feature: LightGBMBins) -> int:
    """Return the number of bins in a histogram: the first one is left out if it is the most frequent."""
    return len(feature.bounds) - (feature.most_frequent == 0)


def _number_bins(feature: LightGBMBins, start: int) -> Ints:
    """Return the row of each bin in a histogram, -1 for one that is left out."""
    n = len(feature.bounds)
    return (
        np.concatenate([[-1], np.arange(start, start + n - 1)]) if feature.most_frequent == 0 else start + np.arange(n)
    )
