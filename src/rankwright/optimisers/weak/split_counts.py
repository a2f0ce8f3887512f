"""Exact numbers of documents in the leaves of a tree that LightGBM grows on several machines.

A machine knows how many of its own documents go left at a split. LightGBM's machines do not tell each other: they
estimate the number of all from sums of curvatures, and so find other splits where leaves have few documents. Here the
estimates are replaced on their way from machine to machine. For that LightGBM's steps are followed: which leaf it
splits next, and whether it looks for splits of what comes of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.optimisers.weak.lightgbm_bins import LightGBMBins, explain_version
from rankwright.optimisers.weak.split_pruning import FeaturePruner, Histogram, NodeSums
from rankwright.runtime.communicator import Communicator

_SPLIT = np.dtype(
    [
        *(("feature", "<i4"), ("left_count", "<i4"), ("right_count", "<i4"), ("gain", "<f8"), ("threshold", "<u4")),
        *(("left_output", "<f8"), ("right_output", "<f8")),
        *(("left_gradient", "<f8"), ("left_curvature", "<f8"), ("left_unused", "<i8")),
        *(("right_gradient", "<f8"), ("right_curvature", "<f8"), ("right_unused", "<i8")),
        *(("missing_left", "?"), ("sign", "i1"), ("n_bins", "<i4")),
    ]
)
_KEPT_COLUMNS = 32
_UNKNOWN = ("lambda_l1", "max_delta_step", "path_smooth")  # with these LightGBM judges splits in other ways

T = TypeVar("T", bound=np.generic)


def finds_same_splits(params: Mapping[str, Any]) -> bool:
    """Return whether with these parameters trees have the bits of those that grow on one machine."""
    if params.get("feature_fraction", 1.0) < 1.0 or np.any(params.get("monotone_constraints") or 0):
        return False
    return not any(params.get(name, 0.0) > 0.0 for name in _UNKNOWN)


def measure_message(max_cat_threshold: int) -> int:
    """Return the bytes of a message about the best splits of two leaves."""
    return 2 * (_SPLIT.itemsize + 4 * max_cat_threshold)


@dataclass(slots=True)
class _Leaf:
    """A leaf of the tree, and the best split of it.

    Parameters
    ----------
    rows : array
        The documents of this machine in it.
    n_docs : int
        The number of documents of all machines in it.
    depth : int
        The number of splits above it.
    feature, threshold, gain : int, int, float
        Its best split.
    left : array, optional
        Which of this machine's documents go left there.
    n_left : int
        The number of documents of all machines that go left.
    sums : (NodeSums, NodeSums), optional
        The sums of both sides.
    histogram : Histogram, optional
        Its histogram of this machine's features.
    """

    rows: Ints
    n_docs: int
    depth: int
    feature: int = -1
    threshold: int = 0
    gain: float = -np.inf
    left: NDArray[np.bool_] | None = None
    n_left: int = 0
    sums: tuple[NodeSums, NodeSums] | None = None
    histogram: Histogram | None = None

    @property
    def n_own_left(self) -> int:
        """The number of documents of this machine that go left."""
        return 0 if self.left is None else int(np.count_nonzero(self.left))

    @property
    def rank(self) -> tuple[float, int]:
        """The key by which leaves are split first: the gain, and of equal ones the smaller number of the feature."""
        return self.gain, -self.feature if self.feature >= 0 else -(2**31)


class SplitCounter:
    """A counter of the documents on both sides of each split, for one tree after another.

    Parameters
    ----------
    parts : sequence of arrays
        The features of this machine's documents.
    bins : mapping
        The bins of each feature.
    params : mapping
        LightGBM's parameters.
    communicator : Communicator
        The connections with the other machines.
    """

    def __init__(
        self,
        parts: Sequence[Floats],
        bins: Mapping[int, LightGBMBins],
        params: Mapping[str, Any],
        communicator: Communicator,
    ) -> None:
        self.parts, self.bins, self.communicator = parts, bins, communicator
        self.max_depth, self.fewest = int(params.get("max_depth", -1)), int(params["min_data_in_leaf"])
        self.n_bytes = measure_message(int(params.get("max_cat_threshold", 32)))
        self.columns: OrderedDict[int, Floats] = OrderedDict()
        own = sum(len(part) for part in parts)
        self.rows = np.arange(own, dtype=np.int32)
        self.n_docs = int(self._add_up(np.array([own]))[0])
        self.pruner = None
        if finds_same_splits(params):
            self.pruner = FeaturePruner(bins, params, communicator.rank, communicator.size)
        self.begin_tree()

    def begin_tree(self, sums: tuple[float, float] | None = None) -> None:
        """Begin another tree.

        ``sums`` are those of the gradients and curvatures of this machine; None if they are not exact, so that one
        machine and several do not find the same splits anyway.
        """
        self.leaves, self.splits = [_Leaf(self.rows, self.n_docs, 0)], list[tuple[int, int]]()
        self.pair, self.is_first = [0], True
        self.root = None
        if sums is not None:
            gradient, curvature = self._add_up(np.array(sums)).tolist()
            self.root = NodeSums(gradient, curvature, self.n_docs)

    def prune(self, histogram: Floats) -> None:
        """Make the sums of features void that LightGBM would not look at on one machine, in the latest smaller leaf.

        It is called when the sums over all machines are known, before a machine looks for the best split.
        """
        parent, sums = None, None
        if self.is_first:
            self.is_first = False
        else:
            self.pair, parent, sums = self._follow()
        if self.pruner is None or self.root is None:
            return
        smaller = self.leaves[self.pair[0]]
        if sums is None:
            smaller.histogram = self.pruner.leave_out(histogram.reshape(-1, 2), None, self.root)
        elif parent is not None:
            smaller.histogram = self.pruner.leave_out(histogram.reshape(-1, 2), parent, sums[0])
            larger = self.leaves[self.pair[1]]
            larger.histogram = self.pruner.find_larger(parent, smaller.histogram, sums[1])

    def correct(self, blocks: Sequence[memoryview]) -> None:
        """Replace the estimates in the messages of all machines about the best splits of the latest two leaves."""
        half, chosen = self.n_bytes // 2, list[tuple[_Leaf, Any]]()
        for place, number in enumerate(self.pair):
            leaf = self.leaves[number]
            found = [np.frombuffer(block, _SPLIT, 1, place * half) for block in blocks]
            best = max(range(len(blocks)), key=lambda i: (_order(found[i]), -i))
            split = found[best]
            leaf.feature, leaf.threshold = int(split["feature"][0]), int(split["threshold"][0])
            leaf.gain = float(split["gain"][0])
            if leaf.feature >= 0:
                start = place * half + _SPLIT.itemsize
                bins = np.frombuffer(blocks[best], np.uint32, int(split["n_bins"][0]), start).astype(np.int64)
                values = self._find_column(leaf.feature)[leaf.rows]
                missing_left = bool(split["missing_left"][0])
                leaf.left = self.bins[leaf.feature].goes_left(values, leaf.threshold, missing_left, bins)
                chosen.append((leaf, split))
        totals = self._add_up(np.array([leaf.n_own_left for leaf, _ in chosen], dtype=np.int64))
        for (leaf, split), total in zip(chosen, totals.tolist(), strict=True):
            leaf.n_left = total
            split["left_count"], split["right_count"] = total, leaf.n_docs - total
            leaf.sums = (
                NodeSums(float(split["left_gradient"][0]), float(split["left_curvature"][0]), total),
                NodeSums(float(split["right_gradient"][0]), float(split["right_curvature"][0]), leaf.n_docs - total),
            )

    def check_tree(self, tree: Any) -> None:
        """Raise InputError unless LightGBM split the leaves in the order that was followed."""
        while len(self.leaves) < tree.n_splits + 1:
            self._split_next()
        columns = tree.columns
        counts = [leaf.n_docs for leaf in self.leaves]
        features = [feature for feature, _ in self.splits]
        if tree.n_splits and (
            columns["leaf_count"].tolist() != counts or columns["split_feature"].tolist() != features
        ):
            raise explain_version("splits the leaves of a tree in another order")

    def _follow(self) -> tuple[list[int], Histogram | None, tuple[NodeSums, NodeSums] | None]:
        """Split as LightGBM did since the last message.

        Return the leaves of the next one, the smaller first, with the histogram of the node that they come from, and
        their sums.
        """
        while True:
            left, right, parent = self._split_next()
            one, other = self.leaves[left], self.leaves[right]
            is_deepest = 0 < self.max_depth <= one.depth
            if is_deepest or max(one.n_docs, other.n_docs) < 2 * self.fewest:
                continue
            assert parent.sums is not None
            if one.n_docs < other.n_docs:
                return [left, right], parent.histogram, parent.sums
            return [right, left], parent.histogram, parent.sums[::-1]

    def _split_next(self) -> tuple[int, int, _Leaf]:
        """Split the leaf whose split gains most; return the numbers of both sides, and what was split."""
        number = max(range(len(self.leaves)), key=lambda i: (self.leaves[i].rank, -i))
        leaf = self.leaves[number]
        if leaf.left is None:
            raise explain_version("splits the leaves of a tree in another order")
        self.splits.append((leaf.feature, leaf.threshold))
        self.leaves[number] = _Leaf(leaf.rows[leaf.left], leaf.n_left, leaf.depth + 1)
        self.leaves.append(_Leaf(leaf.rows[~leaf.left], leaf.n_docs - leaf.n_left, leaf.depth + 1))
        return number, len(self.leaves) - 1, leaf

    def _find_column(self, feature: int) -> Floats:
        """Return a feature of this machine's documents; those that were used last are kept."""
        if feature not in self.columns:
            if len(self.columns) == _KEPT_COLUMNS:
                self.columns.popitem(last=False)
            self.columns[feature] = np.concatenate([part[:, feature] for part in self.parts])
        self.columns.move_to_end(feature)
        return self.columns[feature]

    def _add_up(self, numbers: NDArray[T]) -> NDArray[T]:
        """Return the sums of numbers over all machines."""
        found = np.zeros((self.communicator.size, len(numbers)), dtype=numbers.dtype)
        found[self.communicator.rank] = numbers
        if found.size:
            blocks = [memoryview(row.data).cast("B") for row in found]
            self.communicator.exchange([blocks[self.communicator.rank]] * len(blocks), blocks)
        sums: NDArray[T] = found.sum(axis=0)
        return sums


def _order(split: Any) -> tuple[float, int]:
    """Return what decides which of several splits of one leaf is the best."""
    feature = int(split["feature"][0])
    return float(split["gain"][0]), -feature if feature >= 0 else -(2**31)
