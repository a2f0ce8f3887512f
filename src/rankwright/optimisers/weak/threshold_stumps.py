"""Threshold stumps as weak learners: 1 for documents whose feature is above a threshold, else 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import GradedDocuments
from rankwright.kernels.optimisers.feature_bins import accumulate_bins, assign_bins, find_thresholds, sum_bins
from rankwright.kernels.scorers.stump_scores import GRAIN, add_above
from rankwright.runtime.backends import Backend, choose_nearest
from rankwright.runtime.dask_exchange import NewPart
from rankwright.scorers import Stumps

_COLUMNS = 16  # copied and sorted at a time: as many float32 values as a cache line holds
_ROWS = 16_384  # that one thread copies at a time
_ON_WORKER = 1 << 26  # bytes of columns that a machine of a cluster sorts at a time
_SLOTS_AT_A_TIME = 1 << 18
SAME = 1e-12  # what differs by less is equal, up to rounding


class Stump(NamedTuple):
    """A weighted stump: its value is ``weight`` for documents whose feature is above the threshold, else 0."""

    feature: int
    threshold: float
    weight: float
    missing: bool = False  # whether its value is 1 where the feature is missing

    def __call__(self, X: Floats) -> Floats:
        """Return the weight where the stump is 1, else 0."""
        return sum_stumps([self], missing=True)(X)


def round_weight(weight: float) -> float:
    """Round a stump's weight so that sums of such weights are exact in double precision."""
    return round(weight / GRAIN) * GRAIN


def sum_stumps(stumps: Sequence[Stump], missing: bool) -> Stumps:
    """Return a scorer that is the sum of stumps; ``missing`` says whether it accepts missing values."""
    return Stumps(
        np.array([stump.feature for stump in stumps], dtype=np.int64),
        np.array([stump.threshold for stump in stumps], dtype=np.float32),
        np.array([stump.weight for stump in stumps], dtype=np.float64),
        np.array([stump.missing for stump in stumps], dtype=bool) if missing else None,
    )


class BinCut(NamedTuple):
    """The place of a stump's threshold among the bins of its feature, and the bin of missing values."""

    above: int  # the bin below it
    last: int  # the bin of missing values


@dataclass(frozen=True, slots=True, eq=False)
class FeatureBins:
    """The histogram bins of all features: their thresholds, in slots numbered over all features.

    A slot is a bin of one feature, counted over all features: the bins of the first feature, the bin of its missing
    values, the bins of the second feature, and so on.

    Parameters
    ----------
    starts : array of shape (n_features + 1,)
        The first slot of every feature.
    thresholds : array of float32, one per slot
        The threshold above the bin of a slot; NaN above the last bin, and for missing values.
    """

    starts: Ints
    thresholds: Floats

    @classmethod
    def of(cls, queries: Queries, most: int | None, backend: Backend) -> FeatureBins:
        """Cut every feature into at most ``most`` bins, or wherever two documents differ if it is None."""
        limit = queries.n_docs if most is None else most
        if queries.backend is not None:
            cuts = _cut_on_workers(queries, limit)
        else:
            near = choose_nearest(queries, backend)
            shards = near.scatter(queries)
            groups = (slice(first, first + _COLUMNS) for first in range(0, queries.n_features, _COLUMNS))
            found = (_cut_columns(near.gather(_take_columns, shards, own), limit, near) for own in groups)
            cuts = [column for group in found for column in group]
        starts = np.concatenate([[0], np.cumsum([len(column) + 2 for column in cuts])])
        ends = np.full(2, np.nan, dtype=np.float32)
        return cls(starts.astype(np.int64), np.concatenate([piece for column in cuts for piece in (column, ends)]))

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.starts) - 1

    @property
    def n_slots(self) -> int:
        """The number of slots of all features."""
        return len(self.thresholds)

    @property
    def sizes(self) -> Ints:
        """The number of slots of each feature."""
        return np.diff(self.starts)

    def count_slots(self, features: Ints) -> int:
        """Return the number of slots of some features."""
        return int((self.starts[features + 1] - self.starts[features]).sum())

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The smallest type that numbers the slots of any feature."""
        widest = int(self.sizes.max())
        return next(kind for kind in (np.uint8, np.uint16, np.uint32) if widest - 1 <= np.iinfo(kind).max)

    def find_features(self, slots: Ints) -> Ints:
        """Return the feature of each slot."""
        features: Ints = np.searchsorted(self.starts, slots, side="right") - 1
        return features

    def make_stump(self, slot: int, weight: float, missing: bool = False) -> Stump:
        """Return the stump with the threshold of a slot."""
        return Stump(int(self.find_features(np.array(slot))), float(self.thresholds[slot]), weight, missing)

    def find_cut(self, stump: Stump) -> BinCut | None:
        """Return where a stump cuts these bins; None if its threshold is not one of theirs."""
        own = self.thresholds[self.starts[stump.feature] : self.starts[stump.feature + 1] - 2]
        at = int(np.searchsorted(own, np.float32(stump.threshold)))
        return BinCut(at, len(own) + 1) if at < len(own) and own[at] == np.float32(stump.threshold) else None

    def encode(self, X: Floats, rows: Ints) -> Ints:
        """Return the bins of some rows: a row per feature."""
        codes = np.empty((self.n_features, len(rows)), dtype=self.dtype)
        assign_bins(X, rows, self.thresholds, self.starts, codes)
        return codes

    def list_slots(self, features: Ints) -> Ints:
        """Return the slots of some features."""
        sizes = self.sizes[features]
        ends = np.cumsum(sizes)
        slots: Ints = np.arange(int(sizes.sum())) + np.repeat(self.starts[features] - (ends - sizes), sizes)
        return slots

    def group_features(self, features: Ints) -> list[Ints]:
        """Split features into groups whose slots are few enough for every shard to hold a histogram of them."""
        group = np.cumsum(self.sizes[features]) // _SLOTS_AT_A_TIME
        return np.split(features, np.flatnonzero(np.diff(group)) + 1)


def _cut_on_workers(queries: Queries, most: int) -> list[Floats]:
    """Return the thresholds of each feature of documents on a cluster, for at most ``most`` bins.

    Columns travel from worker to worker. Each worker sorts some of them, of all documents.
    """
    cluster: Any = queries.backend
    shards = cluster.scatter(queries)
    size = min(
        max(_ON_WORKER // (np.dtype(np.float32).itemsize * queries.n_docs), 1),
        -(-queries.n_features // cluster.n_workers),
    )
    groups = [slice(first, first + size) for first in range(0, queries.n_features, size)]
    cuts = []
    for first in range(0, len(groups), cluster.n_workers):
        own = groups[first : first + cluster.n_workers]
        plan = [NewPart([(part, columns) for part in range(len(shards))], most) for columns in own]
        found = cluster.exchange(_turn_columns, _cut_pieces, shards, plan)
        cuts += [column for group in cluster.gather(list, found) for column in group]
    return cuts


def _turn_columns(queries: Queries, columns: slice) -> Floats:
    """Return some features of the documents, a row for each."""
    return np.ascontiguousarray(_take_columns(queries, columns).T)


def _cut_pieces(pieces: Sequence[Floats], most: int) -> list[Floats]:
    """Return the thresholds of each row of a matrix, given as pieces of its columns, for at most ``most`` bins."""
    return [_cut_column(np.concatenate(rows), most) for rows in zip(*pieces, strict=True)]


def _take_columns(queries: Queries, columns: slice) -> Floats:
    """Return some features of the documents."""
    return queries.X[:, columns]


def _cut_columns(parts: Sequence[Floats], most: int, backend: Backend) -> list[Floats]:
    """Return the thresholds of each column of a matrix, given as parts of its rows, for at most ``most`` bins.

    The columns are copied and sorted together, so that the memory does not grow with the number of threads.
    """
    ends = np.cumsum([len(part) for part in parts]).tolist()
    columns = np.empty((parts[0].shape[1], ends[-1]), parts[0].dtype)

    def copy_rows(at: int) -> None:
        own = columns[:, ends[at] - len(parts[at]) : ends[at]]
        for start in range(0, len(parts[at]), _ROWS):
            own[:, start : start + _ROWS] = parts[at][start : start + _ROWS].T

    backend.each(copy_rows, range(len(parts)))
    return backend.each(lambda values: _cut_column(values, most), list(columns))


def _cut_column(values: Floats, most: int) -> Floats:
    """Sort the values of a feature in place, and return its thresholds.

    Where values are missing, a threshold below all values splits known from missing.
    """
    values.sort()  # NaN comes last
    known = values[: np.searchsorted(values, values.dtype.type(np.nan))]
    if len(known) == len(values) or not len(known) or known[0] == np.finfo(np.float32).min:
        return find_thresholds(known, most)
    below = np.nextafter(known[:1], np.float32(-np.inf))
    return np.concatenate([below, find_thresholds(known, most - 1)])


class BinnedShard(NamedTuple):
    """The documents of some queries by descending grade: their rows, their pairs, and the bins of their features."""

    X: Floats
    rows: Ints
    graded: GradedDocuments
    codes: Ints

    def add_stump(self, scores: Floats, stump: Stump, cut: BinCut | None) -> Floats:
        """Return scores, in the order of grades, with a stump added; ``cut`` is where it cuts the bins, if it does."""
        if cut is None:
            return np.add(scores, stump(self.X)[self.rows])
        return add_above(scores, self.codes[stump.feature], *cut, stump.missing, stump.weight)

    def sum_by_slot(self, values: Floats, bins: FeatureBins, features: Ints) -> Floats:
        """Return the sums of values over the documents of each slot of some features."""
        out = np.zeros(bins.count_slots(features))
        sum_bins(self.codes, bins.starts, features, values, out)
        return out


class ThresholdSums(NamedTuple):
    """The sums of documents' values for each slot: over documents above its threshold, and over those without value."""

    above: Floats  # over documents above the threshold of the slot
    missing: Floats  # over documents without the feature


def sum_above_thresholds(sums: Floats, bins: FeatureBins, features: Ints) -> ThresholdSums:
    """Return for each slot the sum of values over documents above its threshold, given the sums by slot."""
    running = sums.copy()
    accumulate_bins(running, bins.starts, features)
    sizes = bins.sizes[features]
    ends = np.cumsum(sizes)
    known = np.repeat(running[ends - 2], sizes)  # up to the last bin
    return ThresholdSums(known - running, np.repeat(sums[ends - 1], sizes))


class BestStump(NamedTuple):
    """The stump for which r, the sum of the potentials of the documents where the stump is 1, is furthest from 0."""

    slot: int
    missing: bool
    r: float


def find_best_stump(sums: Floats, bins: FeatureBins) -> BestStump:
    """Return the stump whose r is furthest from 0, given potentials summed by slot (Freund et al., section 3.2).

    A missing value counts 1 where that makes abs(r) larger. The first of equals is taken, up to rounding, so that
    the order of the documents does not matter.
    """
    above, missing = sum_above_thresholds(sums, bins, np.arange(bins.n_features))
    threshold = ~np.isnan(bins.thresholds)
    r = np.where(threshold, above, 0.0), np.where(threshold, above + missing, 0.0)
    size = np.maximum(np.abs(r[0]), np.abs(r[1]))
    slot = int(np.argmax(size >= size.max() - SAME))
    side = int(abs(r[1][slot]) > abs(r[0][slot]) + SAME)
    return BestStump(slot, bool(side), float(r[side][slot]))
