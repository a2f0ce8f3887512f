"""Scores of one query at a time: the bits, the errors and the memory of ``predict`` with plain arrays."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from tests.unit.test_tree_layout import make_forest

import rankwright as rw
from rankwright.models.model import Model
from rankwright.scorers import Feature, Kernel, KernelSum, Linear, Network, Scorer, Stumps, Trees, WeightedSum
from rankwright.scorers.linear import QueryScaling

D = 5


def make_scorers():
    """A scorer of each kind."""
    rng = np.random.default_rng(0)
    feature, threshold = rng.integers(D, size=40), rng.normal(size=40).astype(np.float32)
    weights = [rng.normal(size=(D, 4)), rng.normal(size=(4, 1))]
    linear, trees = Linear(rng.normal(size=D), 0.5), Trees(make_forest(rng, [7, 31, 1], D))
    return {
        "linear": linear,
        "feature": Feature(3, -1),
        "stumps": Stumps(feature, threshold, np.ones(40), np.zeros(40, bool)),
        "kernel": KernelSum(Kernel("rbf"), np.zeros(D), np.ones(D), rng.normal(size=(6, D)), rng.normal(size=6)),
        "network": Network(np.zeros(D), np.ones(D), weights, [np.zeros(4), np.zeros(1)]),
        "trees": trees,
        "sum": WeightedSum([linear, trees], np.array([1.0, 2.0])),
    }


SCORERS = make_scorers()
MODELS = {name: Model("Ranker", {}, "ndcg@10", scorer, D) for name, scorer in SCORERS.items()}


def make_rows(n=70):
    return np.random.default_rng(1).normal(size=(n, D)).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Recorder(Scorer):
    """A scorer that keeps the rows it is given."""

    kind: ClassVar[str] = "recorder"
    seen: list
    value: float = 1.0

    def __call__(self, X):
        self.seen.append(X)
        return np.full(len(X), self.value)

    def accepts(self, n_features):
        return True

    def to_json(self):
        return {}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 2, 70])
def test_arrays_have_the_scores_of_queries(name, n):
    model, X = MODELS[name], make_rows(n)
    expected = model.predict(rw.Queries.from_arrays(X, None, group=[n]))
    read_only = X.copy()
    read_only.flags.writeable = False
    for rows in (X, X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], read_only, X.tolist()):
        found = model.predict(rows)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.predict(X, qid=np.zeros(n, int)), expected)


def test_a_float32_array_is_not_copied():
    seen, X = [], make_rows()
    model = Model("Ranker", {}, "ndcg@10", Recorder(seen), D)
    model.predict(X)
    assert seen[0] is X
    model.predict(X[3:9])
    assert np.shares_memory(seen[1], X)


def set_value(value):
    X = make_rows()
    X[4, 2] = value
    return X


BAD = {
    "infinity": set_value(np.inf),
    "a double too large": set_value(1.0).astype(np.float64) * 1e300,
    "missing": set_value(np.nan),
    "missing and infinite": np.where(np.arange(D) == 1, np.nan, set_value(-np.inf)).astype(np.float32),
    "a feature too few": make_rows()[:, 1:],
    "a feature too many": np.ones((3, D + 1), np.float32),
    "no documents": np.empty((0, D), np.float32),
    "no features": np.empty((3, 0), np.float32),
    "one dimension": np.ones(D, np.float32),
    "three dimensions": np.ones((2, D, 1), np.float32),
    "texts": np.full((2, D), "a"),
    "objects": np.full((2, D), None),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", ["linear", "trees"])
def test_errors_are_those_of_queries(what, name):
    model, X = MODELS[name], BAD[what]
    expected = catch(lambda: model.predict_rows(model.group_documents(X, None)))
    assert catch(lambda: model.predict(X)) == expected
    takes_it = name == "trees" and what in ("missing", "objects")
    assert (expected is None) == takes_it


def catch(predict):
    """The message of the error, if there is one."""
    try:
        predict()
    except rw.InputError as error:
        return str(error)
    return None


def test_scores_must_be_finite():
    model = Model("Ranker", {}, "ndcg@10", Recorder([], np.inf), D)
    with pytest.raises(rw.InputError, match="scores row 0 with inf; expected finite scores"):
        model.predict(make_rows())


def test_scaling_and_categories_take_the_long_way():
    X = make_rows(6)
    scaled = replace(MODELS["linear"], scaling=QueryScaling())
    with pytest.raises(rw.InputError, match="predict needs qid"):
        scaled.predict(X)
    assert not np.array_equal(scaled.predict(X, qid=[1, 1, 1, 2, 2, 2]), MODELS["linear"].predict(X))
    categorical = replace(MODELS["trees"], categories=(None, ("a", "b"), None, None, None))
    with pytest.raises(rw.InputError, match="feature 2 has numbers here"):
        categorical.predict(X)


def test_a_fitted_ranker_predicts_as_its_model_does():
    queries = rw.make_queries(20, random_state=0)
    named = queries.replace(features=tuple(f"f{i}" for i in range(queries.n_features)))
    for train in (queries, named):
        ranker = rw.SingleFeature().fit(train)
        expected = ranker.predict(train)
        np.testing.assert_array_equal(
            ranker.predict(rw.Queries.from_arrays(train.X, None, group=[train.n_docs])), expected
        )
    ranker = rw.SingleFeature().fit(queries)
    for rows in (queries.X, queries.X.astype(np.float64), queries.X.tolist()):
        np.testing.assert_array_equal(ranker.predict(rows), ranker.predict(queries))


@pytest.mark.parametrize("name", MODELS)
def test_threads_that_predict_at_the_same_time(name):
    model, parts = MODELS[name], [make_rows(n) for n in (1, 64, 65, 100) * 4]
    expected = [model.predict(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(model.predict, parts), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


IN_A_SERVER = """
import sys
import numpy as np
import rankwright as rw
for path in sys.argv[1:]:
    rw.load(path).predict(np.zeros((100, 5), np.float32))
heavy = ("sklearn", "pandas", "lightgbm", "torch", "pyarrow", "scipy.sparse", "scipy.stats", "scipy.optimize")
print(sorted(set(heavy) & set(sys.modules)))
"""


def test_loading_and_predicting_import_nothing_heavy(tmp_path):
    paths = [tmp_path / f"{name}.json" for name in MODELS]
    for model, path in zip(MODELS.values(), paths, strict=True):
        rw.save(model, path)
    done = subprocess.run([sys.executable, "-c", IN_A_SERVER, *map(str, paths)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr[-1000:]
