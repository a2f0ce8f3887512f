"""Rankers that say so train on features that stay on a cluster, to the bit; the others refuse them at once."""

from __future__ import annotations

import warnings
from functools import cache

import pytest
from sklearn.linear_model import Ridge
from tests.remote_backend import Remote, SealedQueries

import rankwright as rw
from rankwright.objectives import ExpectedMeasure
from rankwright.rankers import RANKERS

BUDGETS = {"n_estimators": 3, "max_iter": 3, "n_restarts": 2}
BLENDS = (rw.AutoRanker, rw.Blend)
TREES = (rw.BoostedTrees, rw.DirectRankTrees, rw.GBRank, rw.LambdaMART, rw.MART)  # they need workers of Dask
ALONE = [ranker for ranker in RANKERS if ranker.takes_distributed and ranker not in (*BLENDS, *TREES)]
REFUSED = [ranker for ranker in RANKERS if not ranker.takes_distributed]
LINEAR = {
    "BayesRank": {"hidden": None, "training": {"n_epochs": 2}},
    "SmoothRank": {"first_sigma": 1.0, "last_sigma": 0.5},
}
VARIANTS = [
    *(pytest.param(ranker, LINEAR.get(ranker.__name__, {}), id=ranker.__name__) for ranker in ALONE),
    pytest.param(rw.Regression, {"scale": "query"}, id="Regression by query"),
    pytest.param(rw.RankBoost, {"scale": "query", "max_bins": None}, id="RankBoost by query"),
    pytest.param(rw.SmoothRank, LINEAR["SmoothRank"] | {"kernel_map": "nystroem"}, id="SmoothRank in a kernel's space"),
    pytest.param(rw.LinearRanker, {"objective": ExpectedMeasure(rw.NDCG(5), 3)}, id="LinearRanker sampled"),
    pytest.param(rw.SingleFeature, {"feature": 2, "sign": -1}, id="SingleFeature given"),
    pytest.param(rw.PermuRank, {"start": "adarank"}, id="PermuRank from AdaRank"),
]


@cache
def make_sets():
    return rw.make_queries(280, n_docs=30, n_features=4, random_state=0), rw.make_queries(
        20, n_docs=9, n_features=4, random_state=1
    )


def fit(ranker, train, valid=None, **params):
    """Return what a fit leaves: its history and warnings, and scores of other queries."""
    small = {name: value for name, value in BUDGETS.items() if name in ranker().get_params()}
    backend = rw.Serial() if train.backend is None else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rounds do not converge
        fitted = ranker(measure="ndcg@5", backend=backend).set_params(**small | params).fit(train, valid=valid)
    return [
        fitted.history_,
        [(found.category, found.message) for found in fitted.fit_warnings_],
        fitted.predict(make_sets()[1]).tobytes(),
    ]


@pytest.mark.parametrize(("ranker", "params"), VARIANTS)
def test_a_fit_on_features_out_of_reach_has_the_same_bits(ranker, params):
    train, valid = make_sets()
    remote = Remote()
    expected = fit(ranker, train, valid, **params)
    assert fit(ranker, SealedQueries(train, remote), SealedQueries(valid, remote), **params) == expected


@pytest.mark.parametrize("ranker", [rw.Regression, rw.RankSVM, rw.PermuRank, rw.AdaRank, rw.FRank, rw.SVMMap])
def test_validation_queries_may_be_here_and_features_more_than_documents(ranker):
    train, valid = (rw.make_queries(5, n_docs=6, n_features=60, random_state=seed) for seed in (0, 1))
    params = {"measure": "ndcg@5"}
    expected = ranker(**params, backend=rw.Serial()).fit(train, valid=valid)
    found = ranker(**params).fit(SealedQueries(train, Remote()), valid=valid)
    assert found.history_ == expected.history_
    assert found.predict(valid).tobytes() == expected.predict(valid).tobytes()


def test_scores_of_features_out_of_reach_are_the_same():
    train, _ = make_sets()
    sealed = SealedQueries(train, Remote())
    fitted = rw.Regression(scale="query").fit(train)
    assert fitted.predict(sealed).tobytes() == fitted.predict(train).tobytes()
    assert fitted.score(sealed) == fitted.score(train)


@pytest.mark.parametrize(
    ("ranker", "params"),
    [
        (rw.Blend, {"rankers": [rw.Regression(), rw.RankBoost(n_estimators=3)], "n_folds": 2}),
        (rw.AutoRanker, {"families": ("linear",), "n_folds": 2, "max_seconds": None, "budget_ms": 1e3}),
    ],
    ids=("Blend", "AutoRanker"),
)
def test_blends_of_features_out_of_reach_have_the_same_bits(ranker, params):
    train = rw.make_queries(12, n_docs=5, n_features=3, random_state=0)
    fitted = [
        ranker(measure="ndcg@5").set_params(**params).fit(part) for part in (train, SealedQueries(train, Remote()))
    ]
    assert fitted[0].predict(train).tobytes() == fitted[1].predict(train).tobytes()
    assert fitted[0].history_ == fitted[1].history_


def test_which_rankers_need_the_features_here():
    assert {ranker.__name__ for ranker in REFUSED} == {"NeuralRanker"}  # trained on batches of all documents


@pytest.mark.parametrize(
    ("ranker", "said"),
    [
        *((ranker(), "needs the features in the memory of this machine") for ranker in REFUSED),
        (rw.BayesRank(), "a network is trained on batches"),
        (rw.RankNet(hidden=(3,)), "batches .* with hidden=None RankNet trains on the cluster"),
        (rw.MART(lightgbm_params={"extra_trees": True}), "extra_trees .* without this parameter MART trains"),
        (rw.SmoothRank(hidden=(3,)), "a network is trained on batches"),
        (rw.Blend(rankers=[rw.Regression(), Ridge()]), "of the member ridge, a Ridge is fitted to arrays"),
        (rw.Blend(rankers=[rw.BayesRank()]), "of the member bayesrank, a network is trained on batches"),
        (rw.Regression(backend=rw.Serial()), r"backend=Serial\(\); leave backend out"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, rw.Ranker) else "",
)
def test_what_needs_the_features_here_says_so_before_it_starts(ranker, said):
    remote = Remote()
    with pytest.raises(rw.InputError, match=said):
        ranker.fit(SealedQueries(rw.make_queries(4, n_docs=3, n_features=2, random_state=0), remote))
    assert not remote.stored


def test_a_diagnosis_needs_the_features_here():
    train, _ = make_sets()
    with pytest.raises(rw.InputError, match=r"a diagnosis takes all of them at once\. .*queries\.collect\(\)"):
        rw.diagnose(rw.Regression().fit(train), SealedQueries(train, Remote()))


def test_a_blend_does_not_pool_features_out_of_reach():
    train, valid = make_sets()
    with pytest.raises(rw.InputError, match="leave valid out"):
        rw.Blend(rankers=[rw.Regression()]).fit(SealedQueries(train, Remote()), valid=valid)


def test_features_are_on_one_cluster():
    train, valid = make_sets()
    with pytest.raises(rw.InputError, match="other documents are elsewhere"):
        rw.Regression().fit(SealedQueries(train, Remote()), valid=SealedQueries(valid, Remote()))


def test_missing_features_are_found_on_the_workers():
    X = make_sets()[0].X.copy()
    X[8_000, 2] = float("nan")
    holes = make_sets()[0].with_X(X)
    with pytest.raises(
        rw.InputError, match=r"NaN \(in 1 of [0-9,]+ rows, first in row 8000, counted from 0, feature 3\)"
    ):
        rw.Regression().fit(SealedQueries(holes, Remote()))
    assert fit(rw.RankBoost, SealedQueries(holes, Remote())) == fit(rw.RankBoost, holes)


def test_a_model_that_learns_nothing_says_why():
    train = make_sets()[0]
    flat = train.with_X(0 * train.X)
    with pytest.warns(rw.DegenerateModelWarning, match="no feature differs"):
        rw.Regression().fit(SealedQueries(flat, Remote()))
