"""Random models of every kind in every export target: awkward thresholds, weights, scalings and sums of all of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.exported import score_with_oracle

import rankwright as rw
from rankwright.models.export.exporting import TARGETS
from rankwright.models.export.parity import read_parity
from rankwright.models.model import Model
from rankwright.scorers import Feature, Kernel, KernelSum, Linear, Network, Stumps, Trees, WeightedSum
from rankwright.scorers.kernel_sum import KERNELS
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree, make_leaf
from rankwright.scorers.network import ACTIVATIONS

AWKWARD = [0.0, -0.0, 1.0000000180025095e-35, 1e-6, 1e-7, -1e-6, 0.1, 1 / 3, -5.0, 16777217.0, 1e30, 3.4e38]
AWKWARD += [float(np.finfo(np.float32).max), np.inf, 2.0**-149, 2.0**-126]


def draw_thresholds(rng, n):
    return rng.choice(
        np.concatenate([AWKWARD, rng.normal(size=8), rng.uniform(0, 1e-3, 4), 10 ** rng.uniform(-12, 12, 4)]), n
    )


def draw_tree(rng, d):
    """A tree of any shape; some of its splits take missing values as 0, as trees do that saw none."""
    n = int(rng.integers(1, 9))
    children, places = np.zeros((2, n), int), [(0, 0), (1, 0)]
    for node in range(1, n):
        children[places.pop(rng.integers(len(places)))] = node
        places += [(0, node), (1, node)]
    for leaf, place in enumerate(places):
        children[place] = ~leaf
    value = rng.choice([1.0, 1e-3, 1e6]) * rng.normal(size=n + 1)
    tree = Tree.from_nodes(rng.integers(0, d, n), draw_thresholds(rng, n), rng.random(n) < 0.5, *children, value)
    kind = np.where(rng.random(n) < 0.7, tree.columns["decision_type"], 0)
    return Tree({**tree.columns, "decision_type": kind})


def draw_trees(rng, d):
    trees = [
        draw_tree(rng, d) if rng.random() < 0.9 else make_leaf(float(rng.normal())) for _ in range(rng.integers(1, 5))
    ]
    return Trees(Forest.from_trees(trees, d))


def draw_stumps(rng, d):
    n = int(rng.integers(0, 12))
    threshold = np.minimum(draw_thresholds(rng, n), 3.4e38).astype(np.float32)
    return Stumps(
        rng.integers(0, d, n), threshold, rng.normal(size=n), rng.random(n) < 0.5 if rng.random() < 0.5 else None
    )


def draw_linear(rng, d):
    coef = rng.normal(size=d) * 10 ** rng.uniform(-8, 8) * (rng.random(d) < 0.7)
    return Linear(coef, float(rng.choice([0.0, 1.5, -1e4])))


def draw_scaling(rng, d):
    return rng.normal(size=d) * 10, 10 ** rng.uniform(-3, 2, d) * (rng.random(d) < 0.8)  # 0 drops a constant feature


def draw_network(rng, d):
    sizes = [d, *rng.integers(1, 6, rng.integers(0, 3)), 1]
    weights = [rng.normal(size=shape) for shape in pairwise(sizes)]
    biases = [rng.normal(size=size) for size in sizes[1:]]
    return Network(*draw_scaling(rng, d), weights, biases, str(rng.choice(list(ACTIVATIONS))))


def draw_kernel_sum(rng, d):
    n, name = int(rng.integers(1, 5)), str(rng.choice(list(KERNELS)))
    kernel = Kernel(name, float(rng.choice([0.0, 0.1, 1.0])), float(rng.normal()), int(rng.integers(1, 5)))
    return KernelSum(kernel, *draw_scaling(rng, d), rng.normal(size=(n, d)), rng.normal(size=n), float(rng.normal()))


PARTS = (
    *(draw_linear, draw_stumps, draw_trees, draw_network, draw_kernel_sum),
    lambda rng, d: Feature(int(rng.integers(d)), int(rng.choice([1, -1]))),
)


def draw_model(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    scorers = [PARTS[rng.integers(len(PARTS))](rng, d) for _ in range(max(1, int(rng.integers(-3, 4))))]
    weights = rng.normal(size=len(scorers)) * rng.choice([1.0, 0.0, 100.0])
    scorer = scorers[0] if len(scorers) == 1 else WeightedSum(scorers, weights, float(rng.normal()))
    return Model("LambdaMART", {}, "ndcg@10", scorer, d, tuple("abcde"[:d]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_random_model_has_its_scores_in_every_target(seed, tmp_path):
    model, able, refusals = draw_model(seed), set(), []
    for target in TARGETS:
        try:
            written = rw.export(model, target, tmp_path / "m.model")
        except rw.InputError as error:
            refusals.append(str(error))
            continue
        able.add(target)
        parity = read_parity(written[-1])
        scores = np.asarray(score_with_oracle(target, written[0], parity.X, parity.names), dtype=np.float64).ravel()
        assert parity.find_differences(scores) == [], target
    assert {"onnx", "c", "vespa"} <= able
    assert all("the nearest target that can is " in refusal for refusal in refusals)
