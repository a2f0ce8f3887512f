"""Fits that share bins and sorted rows have the bits of fits that do not."""

import gc
import threading
from contextlib import nullcontext
from functools import partial

import lightgbm
import numpy as np
import pytest

import rankwright as rw
from rankwright.optimisers.weak.binned_documents import BinnedDocuments, bin_documents
from rankwright.optimisers.weak.regression_trees import RegressionTree
from rankwright.optimisers.weak.threshold_stumps import FeatureBins
from rankwright.rankers.fit_memory import DataSize, estimate_shared
from rankwright.runtime.backends import Serial, Threads
from rankwright.runtime.shared_preparations import MAX_SHARED, PreparationCache, prepare_once

KINDS = ("plain", "weights", "missing", "categories", "sparse", "constant", "single")


def make_data(kind, n_docs=600, random_state=0):
    """Return queries of which some features are rare, missing, constant or categorical."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_docs, 9)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    y = rng.integers(0, 4, n_docs) * (X[:, 0] > -0.5)
    sizes = 1 if kind == "single" else 20
    parts = {}
    if kind == "weights":
        parts = {"doc_weight": rng.random(n_docs) + 0.1}
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:, 5] = np.where(np.arange(n_docs) < 10, 0, np.where(np.arange(n_docs) < 20, np.nan, 1))
    if kind == "categories":
        X[:, 3] = rng.integers(0, 6, n_docs)
        X[:, 4] = np.arange(n_docs) < 12
        parts = {"categories": [None] * 3 + [list("abcdef"), list("no")] + [None] * 4}
    if kind == "sparse":
        for column, n in zip(range(3, 9), (3, 8, 15, 30, 60, 120)):
            X[rng.permutation(n_docs)[n:], column] = 0.0
    if kind == "constant":
        X[:, 2:7] = 1.5
    queries = rw.Queries.from_arrays(X, y, qid=np.arange(n_docs) // sizes, **parts)
    if kind == "weights":
        queries = queries.replace(weight=rng.random(len(queries)) + 0.5)
    return queries


def list_rankers(measure="ndcg@5"):
    """Return tree rankers that differ in what bins depend on and in what they do not depend on."""
    own = {"measure": measure, "n_estimators": 4, "backend": Serial()}
    drawn = {"feature_fraction": 0.5, "bagging_fraction": 0.7, "bagging_freq": 1}
    return [
        *(rw.LambdaMART(num_leaves=n, **own) for n in (3, 8)),
        rw.LambdaMART(min_child_samples=40, learning_rate=0.3, **own),
        rw.LambdaMART(lambdas="lightgbm", min_child_samples=5, **own),
        rw.LambdaMART(lightgbm_params=drawn, random_state=3, **own),
        rw.LambdaMART(lightgbm_params={**drawn, "extra_trees": True}, min_child_samples=9, random_state=3, **own),
        rw.LambdaMART(lightgbm_params={"max_bin": 15, "lambda_l2": 1.0}, **own),
        rw.MART(min_child_samples=1, **own),
        rw.MART(min_child_samples=100, **own),
        rw.BoostedTrees(objective="top_one", min_child_samples=14, num_leaves=5, **own),
        rw.DirectRankTrees(num_leaves=4, min_child_samples=31, **own),
        rw.GBRank(num_leaves=6, min_child_samples=20, learning_rate=0.5, **own),
    ]


def fit_texts(rankers, queries):
    return [ranker.fit(queries).to_model().scorer.trees.forest.text() for ranker in rankers]


@pytest.fixture
def built(monkeypatch):
    """The bins that LightGBM made."""
    found, make = [], BinnedDocuments.of.__func__

    def record(cls, *arguments):
        found.append(make(cls, *arguments))
        return found[-1]

    monkeypatch.setattr(BinnedDocuments, "of", classmethod(record))
    return found


@pytest.mark.filterwarnings("ignore::rankwright.basics.errors.DegenerateModelWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, -1])
def test_trees_have_the_bits_of_fits_that_share_nothing(kind, order, built):
    queries, rankers = make_data(kind), list_rankers()
    rankers = [each for each in rankers if queries.doc_weight is None or each.takes_doc_weight(rw.parse_measure("map"))]
    expected = fit_texts(rankers, queries)
    alone = len(built)
    with PreparationCache().use():
        found = fit_texts(rankers[::order], queries)[::order]
    assert found == expected
    assert len(built) - alone < alone


@pytest.mark.parametrize("fewest", [1, 2, 5, 10, 20, 40, 70, 200])
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_bins_are_shared_where_the_same_features_are_left_out(kind, fewest, built):
    queries = make_data(kind)
    with PreparationCache().use():
        for other in (3, 30, 90, 15, fewest):
            found = bin_documents(queries, RegressionTree(min_child_samples=other).to_lightgbm(1))
            alone = BinnedDocuments.of(queries, RegressionTree(min_child_samples=other).to_lightgbm(1))
            built.pop()
            assert np.array_equal(found.used, alone.used)
    assert len(built) <= 5
    if kind == "plain":
        assert len(built) <= 4


def test_features_that_are_left_out_would_change_trees():
    # a feature of 10 zeros, 10 missing values and ones: LightGBM's filter does not see the split that joins the first
    queries = make_data("missing")
    params = RegressionTree(min_child_samples=15, num_leaves=31).to_lightgbm(1)
    target = np.where(queries.X[:, 5] == 1, 1.0, -1.0)
    texts = []
    for filters in (True, False):
        own = {**params, "feature_pre_filter": filters}
        booster = lightgbm.Booster(own, lightgbm.Dataset(queries.X, queries.y, params=own))
        booster.update(fobj=lambda scores, data: (-target, np.ones(len(target))))
        texts.append(booster.dump_model()["tree_info"][0]["tree_structure"].get("split_feature"))
    assert texts[0] != 5
    assert texts[1] == 5


def test_threads_grow_trees_on_one_data_set_at_a_time(built):
    queries, rankers = make_data("missing", 4000), list_rankers() * 3
    expected = fit_texts(rankers, queries)
    alone, cache, found = len(built), PreparationCache(), {}

    def work(numbers):
        with cache.use():
            for number in numbers:
                found[number] = rankers[number].fit(queries).to_model().scorer.trees.forest.text()

    threads = [threading.Thread(target=work, args=(range(k, len(rankers), 4),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(len(rankers))] == expected
    assert len(built) - alone < alone / 3


def test_stump_rankers_share_bins(monkeypatch):
    queries, made, make = make_data("plain"), [], FeatureBins.of.__func__
    monkeypatch.setattr(FeatureBins, "of", classmethod(lambda *a: made.append(1) or make(*a)))
    rankers = [rw.RankBoost(n_estimators=5), rw.FRank(n_estimators=5), rw.RankBoost(n_estimators=5, max_bins=7)]
    expected = [ranker.fit(queries).predict(queries).tobytes() for ranker in rankers]
    assert len(made) == 3
    with PreparationCache().use():
        assert [ranker.fit(queries).predict(queries).tobytes() for ranker in rankers] == expected
    assert len(made) == 5


def test_a_start_of_its_own_is_not_shared(built):
    queries = make_data("plain")
    with PreparationCache().use():
        weak = RegressionTree()
        starts = (None, np.ones(queries.n_docs), None, np.zeros(queries.n_docs))
        growers = [weak.prepare(queries, 1, start, objective="lambdarank") for start in starts]
    assert len(built) == 3
    assert growers[0].data is growers[2].data
    assert growers[0].data.get_init_score() is None


@pytest.mark.parametrize("backend", [Serial(), Threads(2)])
def test_a_blend_bins_each_fold_once(backend, built, monkeypatch):
    queries = make_data("plain")
    members = [rw.LambdaMART(num_leaves=n, n_estimators=5) for n in (3, 6)]
    members += [rw.MART(n_estimators=5), rw.RankBoost(n_estimators=5), rw.Regression()]
    blend = partial(rw.Blend, rankers=members, n_folds=3, random_state=0, measure="ndcg@5", backend=backend)
    shared = blend().fit(queries)
    assert len(built) == 3
    monkeypatch.setattr(PreparationCache, "use", lambda self: nullcontext())
    assert blend().fit(queries).predict(queries).tobytes() == shared.predict(queries).tobytes()
    assert len(built) == 3 + 9


class Data:
    """A data set that is known by its identity."""


def copy_nothing(data):
    return data


def test_nothing_is_kept_outside_the_block():
    data, cache = Data(), PreparationCache()
    with cache.use():
        kept = prepare_once(data, "a", list)
    assert prepare_once(data, "a", list) is not kept
    with cache.use():
        assert prepare_once(data, "a", list) is kept
        assert prepare_once(Data(), "a", list) is not kept
        assert prepare_once(data, "b", list) is not kept


def test_preparations_are_forgotten_with_their_data():
    data, cache = Data(), PreparationCache()
    with cache.use():
        prepare_once(data, "a", Data, 100)
        assert prepare_once(data, "itself", partial(copy_nothing, data), 50) is data
    assert cache.n_bytes == 100
    del data
    gc.collect()
    assert cache.n_bytes == 0


def test_the_oldest_preparations_make_room():
    sets, cache = [Data() for _ in range(4)], PreparationCache(250)
    with cache.use():
        kept = [prepare_once(each, "a", Data, 100) for each in sets[:2]]
        assert prepare_once(sets[0], "a", Data, 100) is kept[0]
        prepare_once(sets[2], "a", Data, 100)
        assert prepare_once(sets[0], "a", Data, 100) is kept[0]
        assert cache.n_bytes == 200
        assert prepare_once(sets[1], "a", Data, 100) is not kept[1]
        large = prepare_once(sets[3], "a", Data, 1000)
        assert prepare_once(sets[3], "a", Data, 1000) is large
    assert cache.n_bytes == 1000


def test_a_failed_preparation_is_made_again():
    data, cache = Data(), PreparationCache()
    with cache.use():
        with pytest.raises(ZeroDivisionError):
            prepare_once(data, "a", lambda: 1 // 0)
        assert prepare_once(data, "a", lambda: 7) == 7


def test_the_estimate_of_memory_covers_what_is_kept():
    assert estimate_shared(DataSize(1000, 10, 50)) == 5 * 5 * 10_000
    assert estimate_shared(DataSize(10**6, 100, 10**4)) == MAX_SHARED
    assert estimate_shared(DataSize(10**7, 100, 10**5)) == 10**9
    queries = make_data("plain")
    cache = PreparationCache()
    with cache.use():
        for ranker in (rw.MART(n_estimators=2), rw.RankBoost(n_estimators=2), rw.Regression()):
            ranker.fit(queries)
    assert 0 < cache.n_bytes <= estimate_shared(DataSize.of(queries)) / 5
