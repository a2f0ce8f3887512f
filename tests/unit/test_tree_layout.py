"""Scores of 64 documents at a time: the bits of the slow twin, for trees of every shape and values on every edge."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import trees as twin

import rankwright as rw
from rankwright.kernels.scorers.document_lanes import LANE_ORDER
from rankwright.kernels.scorers.tree_scores import compute_block_scores, compute_tree_scores, order_leaves
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.tree_layout import round_down

EDGES = (0.0, -0.0, 0.1, 1.0, -2.5, 1e-45, 3.5e38, 1e300, -1e300, np.inf, 16777217.0)
LESS, EQUAL, MORE = "a chain to the left", "any shape", "a chain to the right"


def make_tree(rng, n_leaves, n_features, shape=EQUAL, categorical=(), edges=EDGES):
    """A tree grown by splitting leaves: any one, or always the first or the last."""
    left, right, open_sides = [], [], []
    for node in range(n_leaves - 1):
        if node:
            at = {LESS: 0, MORE: len(open_sides) - 1, EQUAL: int(rng.integers(len(open_sides)))}[shape]
            parent, side = open_sides.pop(at)
            side[parent] = node
        left.append(0)
        right.append(0)
        pair = [(node, left), (node, right)]
        open_sides = pair + open_sides if shape == LESS else open_sides + pair
    for leaf, place in enumerate(rng.permutation(len(open_sides)).tolist()):
        parent, side = open_sides[place]
        side[parent] = ~leaf
    n = n_leaves - 1
    feature = rng.integers(n_features, size=n)
    by_set = np.isin(feature, categorical)
    threshold = np.where(rng.random(n) < 0.5, rng.choice(edges, n), rng.normal(size=n))
    threshold[by_set] = np.arange(by_set.sum())
    columns = {name: np.zeros(n) for name in ("split_gain", "internal_value", "internal_weight")}
    columns |= {"split_feature": feature, "threshold": threshold, "internal_count": np.ones(n, np.int64)}
    columns |= {"decision_type": np.where(by_set, 1, rng.choice([0, 2, 8, 10], n))}
    columns |= {"left_child": np.array(left, np.int64), "right_child": np.array(right, np.int64)}
    columns |= {"leaf_value": rng.normal(size=n_leaves) * 10.0 ** rng.integers(-9, 9, n_leaves)}
    columns |= {"leaf_weight": np.ones(n_leaves), "leaf_count": np.ones(n_leaves, np.int64)}
    if by_set.any():
        words = rng.integers(1, 4, int(by_set.sum()))
        columns["cat_boundaries"] = np.concatenate([[0], np.cumsum(words)])
        columns["cat_threshold"] = rng.integers(2**32, size=int(words.sum()))
    return Tree(columns)


def make_forest(rng, sizes, n_features=3, shape=EQUAL, categorical=(), edges=EDGES):
    """A forest of random trees with these numbers of leaves."""
    trees = tuple(make_tree(rng, size, n_features, shape, categorical, edges) for size in sizes)
    return Forest(Forest.constant(n_features).header, trees)


def make_rows(rng, forest, n):
    """Values on thresholds, their neighbours among float32, missing ones and others."""
    found = forest.nodes.threshold
    own = found[~np.isnan(found)].tolist()
    with np.errstate(over="ignore"):
        near = np.array([*EDGES, *own], np.float32)
        sides = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
    pool = np.concatenate([near, *sides, np.arange(-2.0, 99.0), [np.nan] * (len(near) // 2)]).astype(np.float32)
    return rng.choice(pool, (n, forest.n_features)).astype(np.float32)


def check_twin(forest, X):
    """Check that both kernels have the bits of the slow twin."""
    expected = twin.node_scores(forest.nodes, X)
    np.testing.assert_array_equal(compute_tree_scores(X, forest.nodes), expected)
    np.testing.assert_array_equal(compute_block_scores(X, forest.nodes, forest.layout), expected)


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 9), min_size=1, max_size=7),
    st.sampled_from([LESS, EQUAL, MORE]),
    st.sampled_from([(), (1,), (0, 1, 2)]),
    st.sampled_from([1, 2, 15, 16, 17, 33]),
)
@settings(max_examples=60, deadline=None)
def test_the_twin_has_the_same_bits(seed, sizes, shape, categorical, n):
    rng = np.random.default_rng(seed)
    forest = make_forest(rng, sizes, 3, shape, categorical)
    check_twin(forest, make_rows(rng, forest, n))


@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 31, 40, 200])
def test_any_number_of_features(n_features):
    rng = np.random.default_rng(n_features)
    forest = make_forest(rng, [3, 9, 2], n_features)
    check_twin(forest, make_rows(rng, forest, 70))
    last = make_forest(rng, [2, 2], 1)
    header = Forest.constant(n_features).header
    moved = [{**tree.columns, "split_feature": np.array([n_features - 1])} for tree in last.trees]
    check_twin(Forest(header, tuple(map(Tree, moved))), make_rows(rng, forest, 20))


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 48, 63, 64, 65, 100, 128, 129, 200])
def test_any_number_of_documents(n):
    rng = np.random.default_rng(n)
    forest = make_forest(rng, [31, 1, 17, 40, 2], 20)
    X = make_rows(rng, forest, 200)
    expected = compute_tree_scores(X, forest.nodes)
    np.testing.assert_array_equal(compute_block_scores(X[:n], forest.nodes, forest.layout), expected[:n])
    np.testing.assert_array_equal(compute_block_scores(X[200 - n :], forest.nodes, forest.layout), expected[200 - n :])


@pytest.mark.parametrize("shape", [LESS, EQUAL, MORE])
def test_trees_of_few_leaves_and_of_many_side_by_side(shape):
    rng = np.random.default_rng(0)
    sizes = [1, 2, 63, 64, 65, 1, 254, 255, 256, 257, 3, 5_000, 400, 1, 31, 31, 31, 31, 31, 255, 4, 256]
    forest = make_forest(rng, sizes, 5, shape, categorical=(2,), edges=np.linspace(-3, 3, 99))
    X = make_rows(rng, forest, 150)
    expected = compute_tree_scores(X, forest.nodes)
    np.testing.assert_array_equal(Trees(forest)(X), expected)
    np.testing.assert_array_equal(expected[:5], twin.node_scores(forest.nodes, X[:5]))
    assert (forest.layout.group_rounds == -1).sum() == 5
    assert len(np.unique(expected)) > 100


def test_equal_splits_are_one_condition():
    rng = np.random.default_rng(0)
    forest = make_forest(rng, [31] * 20, 2, edges=(1.0, 1.0 + 1e-12, 2.0))
    known = len({(int(f), float(t), bool(m)) for f, t, m in zip(*_splits(forest))})
    assert len(forest.layout.threshold) == known < forest.nodes.first_node[-1]
    check_twin(forest, make_rows(rng, forest, 10))


def _splits(forest):
    return forest.nodes.feature, round_down(forest.nodes.threshold), forest.nodes.missing_left


def test_leaves_are_ordered_from_left_to_right():
    forest = make_forest(np.random.default_rng(0), [9, 1, 30], 3)
    place, start, right = order_leaves(forest.nodes)
    for t in range(3):
        own = slice(*forest.nodes.first_leaf[t : t + 2])
        assert sorted(place[own].tolist()) == [*range(own.stop - own.start)]
        nodes = slice(*forest.nodes.first_node[t : t + 2])
        assert sorted(right[nodes].tolist()) == [*range(1, own.stop - own.start)]
        assert (start[nodes] < right[nodes]).all()


def test_lanes_are_each_added_once():
    assert sorted(LANE_ORDER.tolist()) == [*range(64)]


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False))
def test_a_threshold_rounded_down_has_the_same_sides(threshold, x):
    bar = round_down(np.array([threshold]))[0]
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(bar, np.float32(side)) for side in (-np.inf, np.inf)]
    for value in (x, bar, *neighbours):
        assert (np.float64(value) <= threshold) == (np.float32(value) <= bar)


def test_trees_take_the_features_of_training_only():
    with pytest.raises(rw.InputError, match=r"^2 features; the trees were trained on 3$"):
        Trees(Forest.constant(3))(np.zeros((4, 2), np.float32))


def test_threads_that_score_at_the_same_time():
    rng = np.random.default_rng(0)
    made = make_forest(rng, [31] * 50, 20)
    X = make_rows(rng, made, 300)
    expected = compute_tree_scores(X, made.nodes)
    for _ in range(5):
        scorer = Trees(Forest(made.header, made.trees))  # nothing is arranged yet
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(scorer, [X] * 8):
                np.testing.assert_array_equal(found, expected)


OTHER_PROCESSORS = """
import numpy as np
from tests.unit.test_tree_layout import check_twin, make_forest, make_rows
from rankwright.scorers import Trees
rng = np.random.default_rng(0)
for sizes in ([31, 64, 65, 255, 256, 1], [2] * 9, [5, 9, 30]):
    forest = make_forest(rng, sizes, 18, categorical=(3, 4))
    check_twin(forest, make_rows(rng, forest, 90))
"""


@pytest.mark.slow
@pytest.mark.parametrize("features", ["", "+sse4.2,+avx,+avx2", "+avx512f,+avx512bw,+avx512vl"])
def test_processors_without_some_instructions(features, tmp_path):
    root = Path(__file__).parents[2]
    own = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    own["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "src")])
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESSORS], env={**os.environ, **own}, capture_output=True, text=True, cwd=root
    )
    assert done.returncode == 0, done.stderr[-2000:]
