"""Rows of features that expose the differences between a model and its copy in a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.categories import Categories
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import ScoreParts

_LARGEST = float(np.finfo(np.float32).max)
_SMALL = (0.0, -0.0, 1e-45, -1e-45, 1e-40, 2e-35, -2e-35, 1e-30, 3e-8, -3e-8, 5e-7, 9.9e-7)
_HUGE = (1e9, -1e9, 1e30, -1e30, _LARGEST, -_LARGEST)
_SPLIT_SHARE = 0.6  # of the rows, at most, that are made for single splits
_DATA_SHARE = 0.25  # of the rows, at most, that are rows of the data as they are
_MISSING_SHARE = 0.1  # of the values of a random row


def choose_rows(
    parts: ScoreParts,
    n: int,
    *,
    seed: int = 0,
    data: Floats | None = None,
    categories: Categories | None = None,
    has_missing: bool = True,
) -> Floats:
    """Return rows of features that expose wrong comparisons, roundings, missing values and scalings.

    For splits of trees, rows reach the split with its threshold, the float32 above it, the one below it, and a missing
    value. Other rows draw each value from thresholds and their neighbours, midpoints, zeros of both signs, tiny,
    ordinary and huge values. Where a part is no tree, huge values are 1,000 times the scale of its features, so that
    scores stay finite.

    Parameters
    ----------
    parts : ScoreParts
        The parts of the score.
    n : int
        The number of rows.
    seed : int
        The seed of the random choices; the same seed chooses the same rows.
    data : array of shape (n_documents, n_features), optional
        Real documents: a quarter of the rows are some of these, and other rows begin with one of them.
    categories : tuple, optional
        For each feature None or the values of its categories.
    has_missing : bool
        Whether some values are missing (NaN).

    Returns
    -------
    array of shape (n, n_features) of float32
        The rows.
    """
    rng = np.random.default_rng(seed)
    thresholds = _group_thresholds(parts)
    pools = [_list_values(parts, feature, thresholds[feature], categories) for feature in range(parts.n_features)]
    X = _draw_rows(pools, n, rng, data)
    if has_missing:
        X[rng.random(X.shape) < _MISSING_SHARE] = np.nan
    at = min(n, 2 if has_missing else 1)
    X[:at] = [[0.0] * parts.n_features, [np.nan] * parts.n_features][:at]
    if data is not None and len(data):
        taken = data[rng.permutation(len(data))[: int(n * _DATA_SHARE)]]
        X[at : at + len(taken)] = taken if has_missing else np.nan_to_num(taken)
        at += len(taken)
    variants = _reach_splits(parts, X, rng, 4 if has_missing else 3)
    for row, variant in zip(range(at, min(at + int(n * _SPLIT_SHARE), n)), variants, strict=False):
        X[row] = variant
    return X


def leave_gaps(X: Floats, gaps: Sequence[tuple[int, float, float]]) -> Floats:
    """Return rows without values inside gaps (feature, low, high), where a target cannot be equal: they become low."""
    found = X.copy() if gaps else X
    for feature, low, high in gaps:
        column = found[:, feature]
        column[(low < column) & (column < high)] = low
    return found


def _group_thresholds(parts: ScoreParts) -> list[Floats]:
    """Return for each feature the thresholds of trees and stumps, sorted, within the range of float32."""
    splits = [(t.columns["split_feature"][~t.categorical], t.columns["threshold"][~t.categorical]) for t in parts.trees]
    splits += [(stumps.feature, stumps.threshold.astype(np.float64)) for stumps in parts.stumps]
    feature = np.concatenate([np.empty(0, np.int64), *(own for own, _ in splits)])
    threshold = np.clip(np.concatenate([np.empty(0), *(own for _, own in splits)]), -_LARGEST, _LARGEST)
    order = np.argsort(feature, kind="stable")
    ends = np.searchsorted(feature[order], np.arange(1, parts.n_features))
    return [np.unique(own) for own in np.split(threshold[order], ends)]


def _list_values(parts: ScoreParts, feature: int, found: Floats, categories: Categories | None) -> Floats:
    """Return the values of a feature to draw from, given its thresholds."""
    values = None if categories is None else categories[feature]
    if values is not None:
        return np.arange(len(values), dtype=np.float32)
    nearest = found.astype(np.float32)
    between = (found[1:] + found[:-1]) / 2.0
    scaled = [*_list_scaled_values(parts, feature)]
    extremes = np.array(_SMALL if scaled else (*_SMALL, *_HUGE))
    with np.errstate(over="ignore"):
        columns = [nearest, *_list_neighbours(nearest), between, extremes, *scaled]
        joined: Floats = np.concatenate([column.astype(np.float32) for column in columns])
    return joined[np.isfinite(joined)]


def _list_scaled_values(parts: ScoreParts, feature: int) -> Iterator[Floats]:
    """Yield values of a feature on the scale of the parts that are no trees, from its mean to 1,000 deviations."""
    steps = np.array([-1e3, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 1e3])
    if parts.coef is not None:
        yield steps
    for _, network in parts.networks:
        yield network.mean[feature] + steps / (network.factor[feature] or 1.0)
    for _, kernel_sum in parts.kernel_sums:
        own = np.concatenate([steps, kernel_sum.landmarks[:, feature]])
        yield kernel_sum.mean[feature] + own / (kernel_sum.factor[feature] or 1.0)


def _list_neighbours(values: Floats) -> list[Floats]:
    """Return the float32 numbers above and below each value."""
    with np.errstate(over="ignore"):
        return [np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))]


def _draw_rows(pools: list[Floats], n: int, rng: np.random.Generator, data: Floats | None) -> Floats:
    """Return rows whose values are drawn from the pools, about half of them from the data or between pool values."""
    X = np.empty((n, len(pools)), np.float32)
    rows = None if data is None or not len(data) else rng.integers(0, len(data), n)
    for feature, pool in enumerate(pools):
        X[:, feature] = rng.choice(pool, n)
        usual = rng.random(n) < 0.5
        if rows is not None and data is not None:
            own = np.nan_to_num(data[rows[usual], feature])
        else:
            ordinary = pool[np.abs(pool) <= max(1.0, 10.0 * float(np.median(np.abs(pool))))]
            own = rng.uniform(ordinary.min(), ordinary.max(), int(usual.sum()))
            own = np.round(own) if _is_numbers_of_categories(pool) else own
        X[usual, feature] = own
    return X


def _is_numbers_of_categories(pool: Floats) -> bool:
    """Return whether the values are 0, 1, 2, ...: the numbers of categories."""
    return np.array_equal(pool, np.arange(len(pool)))


def _reach_splits(parts: ScoreParts, X: Floats, rng: np.random.Generator, n_variants: int) -> Iterator[Floats]:
    """Yield rows that reach single splits, in random order: at the threshold, above it, below it, and missing."""
    trees = parts.list_trees()
    splits = [(tree, node) for tree in trees for node in range(tree.n_splits)]
    parents = {id(tree): _list_parents(tree) for tree in trees}
    for at in rng.permutation(len(splits)):
        tree, node = splits[at]
        row = _reach_node(tree, node, parents[id(tree)], X[rng.integers(0, len(X))])
        if row is None:
            continue
        feature = int(tree.columns["split_feature"][node])
        if tree.categorical[node]:
            yield row
            continue
        nearest = np.clip(tree.columns["threshold"][node : node + 1], -_LARGEST, _LARGEST).astype(np.float32)
        values = np.concatenate([nearest, *_list_neighbours(nearest), [np.nan]])
        for value in values[:n_variants]:
            if not np.isinf(value):
                variant = row.copy()
                variant[feature] = value
                yield variant


def _list_parents(tree: Tree) -> dict[int, tuple[int, bool]]:
    """Return for each node its parent, and whether it is the left child."""
    children = enumerate(zip(tree.columns["left_child"].tolist(), tree.columns["right_child"].tolist(), strict=True))
    return {child: (node, child == left) for node, (left, right) in children for child in (left, right) if child >= 0}


def _reach_node(tree: Tree, node: int, parents: dict[int, tuple[int, bool]], start: Floats) -> Floats | None:
    """Return the row changed so that it reaches a node; None if no row of float32 values does, or it may not."""
    low: dict[int, float] = {}
    high: dict[int, float] = {}
    row = start.copy()
    while node in parents:
        node, is_left = parents[node]
        feature, threshold = int(tree.columns["split_feature"][node]), float(tree.columns["threshold"][node])
        if tree.categorical[node]:
            row[feature] = _find_category(tree, node, is_left)
        elif is_left:
            high[feature] = min(high.get(feature, np.inf), threshold)
        else:
            low[feature] = max(low.get(feature, -np.inf), threshold)
    for feature in low.keys() | high.keys():
        lowest, highest = low.get(feature, -np.inf), min(high.get(feature, np.inf), _LARGEST)
        if lowest >= _LARGEST:
            return None
        value = np.float32(highest if feature in high else max(lowest, -_LARGEST))
        if value > highest:
            value = np.nextafter(value, np.float32(-np.inf))
        if value <= lowest:
            value = np.nextafter(value, np.float32(np.inf))
        if not lowest < value <= highest:
            return None
        row[feature] = value
    return row


def _find_category(tree: Tree, node: int, is_in: bool) -> int:
    """Return the least number of a category that is in the set of a split, or that is not in it."""
    bits = np.unpackbits(tree.category_sets[node].astype("<u4").view(np.uint8), bitorder="little")
    return int(np.argmax(np.append(bits, 0) == is_in))
