"""Small models of every kind that can be exported, with rows that hurt them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import pairwise

import lightgbm
import numpy as np
import xgboost

import rankwright as rw
from rankwright.models.export.parity_rows import choose_rows
from rankwright.models.model import Model
from rankwright.scorers import Feature, Kernel, KernelSum, Linear, Network, Stumps, Trees, WeightedSum, merge_scorers
from rankwright.scorers.kernel_sum import KERNELS
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.network import ACTIVATIONS
from rankwright.scorers.score_parts import split_scorer

NAMES = ("bm25", "clicks", "age", "ratio", "kind")
N_FEATURES = len(NAMES)
N_ROWS = 100_000
CATEGORIES = (None, None, None, None, tuple("abcdefg"))


def make_data(n: int = 600, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Features of different scales, the last with the numbers 0 to 6, and a target that needs all of them."""
    rng = np.random.default_rng(7)
    X = np.stack(
        [
            rng.uniform(0, 50, n),
            rng.integers(0, 9, n),
            rng.normal(0, 3, n),
            rng.uniform(0.05, 1, n),
            rng.integers(0, 7, n),
        ],
        axis=1,
    ).astype(np.float32)
    y = X[:, 0] / 25 + np.sqrt(X[:, 1]) + X[:, 2] * X[:, 3] + np.isin(X[:, 4], [1, 4, 5]) + rng.normal(0, 0.1, n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@cache
def train_trees(
    n_trees: int = 6, num_leaves: int = 12, missing: float = 0.0, categorical: bool = False
) -> lightgbm.Booster:
    """Trees of LightGBM on such data."""
    X, y = make_data(missing=missing)
    data = lightgbm.Dataset(X, y - y.mean(), feature_name=list(NAMES), categorical_feature=[4] if categorical else [])
    params = {"verbosity": -1, "num_threads": 1, "num_leaves": num_leaves, "min_data_in_leaf": 4, "learning_rate": 0.4}
    params |= {"min_data_per_group": 5, "cat_smooth": 1.0, "boost_from_average": False, "seed": 3}
    return lightgbm.train(params, data, n_trees)


def make_trees(**options) -> Trees:
    return Trees(Forest.from_text(train_trees(**options).model_to_string()))


def make_stumps(missing: bool) -> Stumps:
    X, _ = make_data()
    rng = np.random.default_rng(5)
    feature = rng.integers(0, N_FEATURES, 30)
    threshold = X[rng.integers(0, len(X), 30), feature]
    return Stumps(feature, threshold, rng.normal(size=30), rng.random(30) < 0.5 if missing else None)


def make_scaling() -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_data()
    return X.mean(0, dtype=np.float64), 1.0 / X.std(0, dtype=np.float64)


def make_network(activation: str) -> Network:
    rng = np.random.default_rng(1)
    sizes = (N_FEATURES, 6, 4, 1)
    weights = [rng.normal(size=shape) for shape in pairwise(sizes)]
    return Network(*make_scaling(), weights, [rng.normal(size=size) for size in sizes[1:]], activation)


def make_kernel_sum(name: str) -> KernelSum:
    rng = np.random.default_rng(2)
    kernel = Kernel(name, 0.2, 0.5, 3)
    return KernelSum(kernel, *make_scaling(), rng.normal(size=(7, N_FEATURES)), rng.normal(size=7), 0.75)


def make_linear() -> Linear:
    return Linear(np.random.default_rng(3).normal(size=N_FEATURES), -2.5)


def add(*scorers) -> WeightedSum:
    return WeightedSum(scorers, np.array([0.7, -1.3, 0.2][: len(scorers)]), 0.5)


@cache
def train_xgboost(missing: float) -> xgboost.Booster:
    X, y = make_data(missing=missing)
    data = xgboost.DMatrix(X, y, feature_names=list(NAMES))
    return xgboost.train({"max_depth": 4, "nthread": 1, "eta": 0.4, "base_score": 0.25, "seed": 3}, data, 6)


def make_extreme_trees() -> Trees:
    """Trees with thresholds at 0, at the largest float32, infinite ones, and tiny ones that differ in their features."""
    thresholds = [0.0, -0.0, 1e-35, float(np.finfo(np.float32).max), np.inf, -7e37, 2.0**-126, -1e-20, 0.1, 1 / 3]
    rng = np.random.default_rng(4)
    trees = [
        Tree.from_nodes(
            *(np.array([at % N_FEATURES, (at + 1) % N_FEATURES]), np.array([own, rng.choice(thresholds)])),
            *(np.array([at % 2 == 0, True]), np.array([1, ~0]), np.array([~2, ~1]), rng.normal(size=3)),
        )
        for at, own in enumerate(thresholds)
    ]
    return Trees(Forest.from_trees(trees, N_FEATURES))


MODELS = {
    "linear": make_linear,
    "feature": lambda: Feature(2, -1),
    "stumps": lambda: make_stumps(missing=False),
    "stumps with missing": lambda: make_stumps(missing=True),
    "trees": make_trees,
    "trees with missing": lambda: make_trees(missing=0.3),
    "trees with categories": lambda: make_trees(categorical=True),
    "deep trees": lambda: make_trees(n_trees=3, num_leaves=60, missing=0.1),
    "one leaf": lambda: Trees(Forest.constant(N_FEATURES, 0.625)),
    **{f"network of {name}": lambda name=name: make_network(name) for name in ACTIVATIONS},
    **{f"{name} kernel sum": lambda name=name: make_kernel_sum(name) for name in KERNELS},
    "sum of linear": lambda: add(make_linear(), Feature(1)),
    "sum of trees": lambda: add(make_trees(), make_trees(missing=0.3), make_stumps(missing=True)),
    "sum of linear and trees": lambda: add(make_linear(), make_trees()),
    "sum of network and kernel sum": lambda: add(make_network("tanh"), make_kernel_sum("rbf"), make_linear()),
    "merged linear, stumps and trees": lambda: merge_scorers(
        [make_trees(missing=0.3), make_linear(), make_stumps(missing=False), Feature(1)], [0.7, -1.3, 0.2, 2.0], 0.5
    ),
    "merged forests and stumps": lambda: merge_scorers(
        [make_trees(), rw.import_model(train_xgboost(missing=0.3)).scorer, make_stumps(missing=True)],
        [1.0, -0.4, 2.0],
        0.5,
    ),
    "merged trees and network": lambda: merge_scorers(
        [make_network("relu"), make_trees(), make_linear(), make_kernel_sum("rbf")], [0.3, 1.0, 0.5, -1.0], 0.25
    ),
    "trees with extreme thresholds": make_extreme_trees,
    "imported LightGBM": lambda: rw.import_model(train_trees(missing=0.3)).scorer,
    "imported XGBoost": lambda: rw.import_model(train_xgboost(missing=0.0)).scorer,
    "imported XGBoost with missing": lambda: rw.import_model(train_xgboost(missing=0.3)).scorer,
}


@cache
def make_model(kind: str) -> Model:
    categories = CATEGORIES if "categories" in kind else None
    return Model("LambdaMART", {}, "ndcg@10", MODELS[kind](), N_FEATURES, NAMES, categories=categories)


@cache
def make_rows(kind: str) -> np.ndarray:
    """100,000 rows; the first 1,000 are those of a parity file."""
    model = make_model(kind)
    parts = split_scorer(model.scorer, N_FEATURES)
    options = {"categories": model.categories, "has_missing": model.scorer.allow_nan}
    rows = (
        choose_rows(parts, 1_000, **options),
        choose_rows(parts, N_ROWS - 1_000, seed=1, data=make_data()[0], **options),
    )
    return np.concatenate(rows)


def score_with_oracle(target: str, path, X: np.ndarray, names=NAMES) -> np.ndarray:
    """The scores of an exported file as its library, or an interpreter written from the facts, computes them.

    The module ``tests/reference/oracle_TARGET.py`` has ``score(path, X, names)``.
    """
    return import_module(f"tests.reference.oracle_{target}").score(path, X, names)
