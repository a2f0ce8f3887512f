"""What every ranker promises, checked on all of them."""

from __future__ import annotations

import json
import threading
import warnings
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.warned import allow_warnings, may_be_ineffective, may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.rankers import RANKERS, find_ranker

EXPECTED = {
    "AdaRank",
    "AutoRanker",
    "BayesRank",
    "Blend",
    "BoostedTrees",
    "CoordinateAscent",
    "DORM",
    "DirectRank",
    "DirectRankTrees",
    "FRank",
    "GBRank",
    "LambdaMART",
    "LambdaRank",
    "LinearRanker",
    "ListMLE",
    "ListNet",
    "MART",
    "NeuralRanker",
    "PermuRank",
    "RankBoost",
    "RankCosine",
    "RankNet",
    "RankSVM",
    "Regression",
    "SVMMap",
    "SVMNDCG",
    "SingleFeature",
    "SmoothRank",
    "SoftRank",
}
NETWORKS = [partial(ranker, hidden=(4,)) for ranker in (rw.LambdaRank, rw.ListMLE, rw.ListNet, rw.RankNet, rw.SoftRank)]
NETWORKS += [partial(rw.SmoothRank, hidden=(4,), first_sigma=1.0, last_sigma=0.5)]


def kind(ranker) -> type[rw.Ranker]:
    return getattr(ranker, "func", ranker)


def name_of(ranker) -> str:
    return kind(ranker).__name__ + (" network" if ranker in NETWORKS else "")


def quick(ranker, **params) -> rw.Ranker:
    """An unfitted ranker of few rounds and starts, or of few epochs of one batch if it is a network."""
    made = ranker(**params)
    if isinstance(made, rw.Blend) and "rankers" not in params:
        made.set_params(rankers=[rw.Regression(), rw.MART(num_leaves=4, n_estimators=5)], n_folds=2)
    few = {"n_estimators": 15, "n_restarts": 2}
    made.set_params(**{name: few[name] for name in few if name in made.get_params() and name not in params})
    if made.get_params().get("hidden") and "training" not in params:
        made.set_params(training={"n_epochs": 5, **({} if isinstance(made, rw.BayesRank) else {"batch_size": 200})})
    return made


def is_network(ranker) -> bool:
    return bool(quick(ranker).get_params().get("hidden"))


QUERIES = rw.make_queries(40, n_docs=15, n_features=10, random_state=0)
every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=name_of)
every_ranker_and_network = pytest.mark.parametrize("ranker", [*RANKERS, *NETWORKS], ids=name_of)


def test_the_expected_rankers_are_found():
    assert {ranker.__name__ for ranker in RANKERS} == EXPECTED
    assert set(rw.__all__) >= EXPECTED


@pytest.mark.parametrize("ranker", [*RANKERS, partial(rw.ListNet, hidden=(4,), training={"n_epochs": 2})], ids=name_of)
def test_scikit_learn_accepts(ranker):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings of their own
        check_estimator(quick(ranker, **short(ranker)))


@pytest.fixture(scope="module")
def queries():
    return QUERIES


@cache
def fitted_once(ranker) -> rw.Ranker:
    """A ranker fitted to QUERIES, for tests that leave it as it is."""
    return quick(ranker).fit(QUERIES)


def awkward() -> dict[str, rw.Queries]:
    """Small sets that have broken rankers before."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), np.repeat(np.arange(6), 5)
    make = rw.Queries.from_arrays
    return {
        "ties": make(rng.integers(0, 2, (30, 3)), y, qid),
        "constant": make(np.ones((30, 3)), y, qid),
        "one constant feature": make(np.column_stack([X[:, :2], np.ones(30)]), y, qid),
        "single documents": make(X, y, np.arange(30)),
        "one document": make(X[:1], [1], [1]),
        "one irrelevant document": make(X[:1], [0], [1]),
        "none relevant": make(X, np.zeros(30), qid),
        "all relevant": make(X, np.full(30, 2), qid),
        "one query with relevant documents": make(X, np.where(qid == 2, y, 0), qid),
        "unsorted": make(X, y, rng.permutation(qid)),
        "strings": make(X, y, [f"query {q}" for q in qid]),
        "wild scales": make(X * [1e-6, 1, 1e9], y, qid),
        "weights": make(X, y, qid, weight=[0, 1, 2, 3, 4, 5]),
        "perfect feature": make(np.column_stack([y, X[:, 1:]]), y, qid),
        "fractional grades": make(X, y / 2, qid),
    }


NOTHING_TO_RANK = {
    "constant",
    "single documents",
    "one document",
    "one irrelevant document",
    "none relevant",
    "all relevant",
}


MEASURES = ["ndcg@10", "map", "err", "mrr(empty=skip)", "ndcg@3(empty=1)"]


@every_ranker_and_network
def test_survives(ranker):
    """Every set; of each ranker and of each set, every measure with some."""
    for number, (name, data) in enumerate(awkward().items(), [*RANKERS, *NETWORKS].index(ranker)):
        measure = MEASURES[number % len(MEASURES)]
        where = f"{name} by {measure}"
        if "skip" in measure and not data.y.any():
            with pytest.raises(rw.InputError, match="skips every training query"):
                quick(ranker, measure=measure).fit(data)
            continue
        with allow_warnings(rw.DegenerateModelWarning) as found:
            fitted = quick(ranker, measure=measure).fit(data, valid=data)
        assert found or name not in NOTHING_TO_RANK, where
        scores = fitted.predict(data)
        assert scores.shape == (data.n_docs,), where
        assert np.isfinite(scores).all(), where
        assert isinstance(fitted.history_, list), where
        assert 0 <= fitted.score(data) <= 1, where


@every_ranker_and_network
def test_scores_depend_on_the_row_alone_and_are_float64(ranker, queries):
    fitted = fitted_once(ranker)
    scores = fitted.predict(queries)
    assert scores.dtype == np.float64
    for rows in list(queries)[:5]:
        assert fitted.predict(queries.X[rows]).tobytes() == scores[rows].tobytes()


def assert_same_fits(ranker, data, *backends, **options) -> None:
    first, *others = (quick(ranker, backend=each, **options).fit(data, valid=data) for each in backends)
    for other in others:
        assert other.predict(data).tobytes() == first.predict(data).tobytes()
        assert json.dumps(other.history_, default=float) == json.dumps(first.history_, default=float)


@may_be_ineffective
@every_ranker_and_network
def test_is_the_same_on_every_backend(ranker):
    """On data for which linear algebra would use threads if it were allowed to."""
    data = rw.make_queries(180, n_docs=30, n_features=8, random_state=1)
    assert_same_fits(ranker, data, rw.Serial(), None)


@may_be_ineffective
@pytest.mark.usefixtures("small_shards")
@every_ranker_and_network
def test_is_deterministic_under_every_scaling(ranker):
    data = rw.make_queries(45, n_docs=20, n_features=6, random_state=1)
    assert_same_fits(ranker, data, rw.Serial(), rw.Threads(2), rw.Threads(3))
    for scale in ("query", None) if "scale" in quick(ranker).get_params() else ():
        assert_same_fits(ranker, data, rw.Serial(), rw.Threads(2), scale=scale)


@every_ranker_and_network
def test_every_kind_of_input_gives_the_same_model(ranker, queries):
    expected = fitted_once(ranker).predict(queries)
    X, y, qid = queries.X.astype(float), queries.y, queries.row_qid
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    tables = [
        (X, X),
        (frame, frame),
        (pl.from_pandas(frame), pl.from_pandas(frame)),
        (sp.csr_matrix(X), sp.csr_matrix(X)),
    ]
    for train, test in tables:
        fitted = quick(ranker).fit(train, y, qid=qid)
        assert fitted.predict(test).tobytes() == expected.tobytes()
    strings = quick(ranker).fit(X, y, qid=[f"q{q}" for q in qid])
    assert strings.predict(X).tobytes() == expected.tobytes()


def shuffled(data: rw.Queries, seed: int) -> rw.Queries:
    """The same queries with their rows in another order, and other ids."""
    rng = np.random.default_rng(seed)
    rows, number = rng.permutation(data.n_docs), dict(zip(data.qid.tolist(), rng.permutation(len(data)), strict=True))
    ids = [f"q{number[qid]}" for qid in data.row_qid[rows].tolist()]
    weight = None if data.weight is None else dict(zip(data.qid.tolist(), data.weight.tolist(), strict=True))
    firsts = dict.fromkeys(data.row_qid[rows].tolist())
    weights = None if weight is None else [weight[qid] for qid in firsts]
    return rw.Queries.from_arrays(data.X[rows], data.y[rows], ids, weight=weights)


def seeds_of(ranker) -> list[dict[str, Any]]:
    """Parameters under which row order could matter most: small batches, sampled losses, samples of documents."""
    found: list[dict[str, Any]] = [{}]
    if is_network(ranker):
        found.append({"training": {"n_epochs": 5, "batch_size": 3}})
    if kind(ranker) is rw.BayesRank:
        found = [{"k": 5, "training": {"n_epochs": 3}}, {"k": 5, "hidden": None, "training": {"n_epochs": 3}}]
    if kind(ranker) is rw.LinearRanker:
        found += [{"objective": "expected"}, {"objective": "cosine"}]
    if kind(ranker) is rw.SmoothRank and not is_network(ranker):
        found += [{"kernel_map": "nystroem"}, {"optimiser": "lbfgs"}]
    return found


@may_not_converge
@every_ranker_and_network
def test_the_order_of_rows_does_not_change_what_is_learned(ranker):
    """Not a bit of it, whatever the ids; trees are LightGBM's on the rows as they come, and sum in their order."""
    plain = rw.make_queries(24, n_docs=12, n_features=6, random_state=0)
    weighted = plain.replace(weight=np.random.default_rng(1).random(24))
    doubled = rw.Queries.from_arrays(
        np.concatenate([plain.X] * 2),
        np.concatenate([plain.y] * 2),
        np.concatenate([plain.row_qid, plain.row_qid + 500]),
    )
    for seed, data in enumerate((plain, weighted, doubled)):
        for params in seeds_of(ranker):
            first, other = (quick(ranker, **params).fit(each) for each in (data, shuffled(data, seed)))
            if other._sorts_rows():
                assert other.predict(data).tobytes() == first.predict(data).tobytes()
                assert json.dumps(other.history_, default=float) == json.dumps(first.history_, default=float)
            else:
                assert other.predict(data) == pytest.approx(first.predict(data), rel=1e-6, abs=1e-9)


def kept(fitted, name: str) -> float:
    """What the history says of the round that became the model: the best on validation queries, or else the last."""
    values = [record[name] for record in fitted.history_]
    [value] = [record[name] for record in fitted.history_ if record.get("kept")]
    if not fitted.keeps_last:
        climbs = isinstance(fitted, rw.AdaRank | rw.DirectRank | rw.CoordinateAscent)  # the measure itself
        assert value == (max(values) if name == "valid" or climbs else values[-1])
    return value


@every_ranker_and_network
def test_validation_keeps_the_best_round(ranker, queries):
    train, valid = queries.take(range(25)), queries.take(range(25, 40))
    fitted = quick(ranker, measure="ndcg@5").fit(train, valid=valid)
    assert {"loss", "train", "valid"} <= set(fitted.history_[0])
    assert fitted.score(valid) == pytest.approx(kept(fitted, "valid"), abs=1e-12)
    assert any(record["train"] == pytest.approx(fitted.score(train), abs=1e-12) for record in fitted.history_)


@every_ranker_and_network
def test_a_time_limit(ranker, queries):
    """After it training ends with what there is, and warns; a limit that is not reached changes no bit."""
    if "max_seconds" not in quick(ranker).get_params():
        assert kind(ranker) in (rw.Regression, rw.SingleFeature)  # which do not iterate
        return
    with pytest.warns(ConvergenceWarning, match=r"stopped after max_seconds=0; raise max_seconds"):
        stopped = quick(ranker, max_seconds=0).fit(queries)
    assert np.isfinite(stopped.predict(queries)).all()
    assert len(stopped.history_) < len(fitted_once(ranker).history_)
    limited = quick(ranker, max_seconds=1e6).fit(queries)
    assert limited.predict(queries).tobytes() == fitted_once(ranker).predict(queries).tobytes()


@every_ranker_and_network
def test_saved_and_loaded_it_is_the_same(ranker, queries, tmp_path):
    for options in ({}, {"scale": "query"}):
        if not set(options) <= set(quick(ranker).get_params()):
            continue
        fitted = quick(ranker, measure="map(rel=2)", **options).fit(queries, valid=queries)
        rw.save(fitted, tmp_path / "model.json")
        model = rw.load(tmp_path / "model.json")
        assert model.predict(queries).tobytes() == fitted.predict(queries).tobytes()
        assert model.predict(queries.X, qid=queries.row_qid).tobytes() == fitted.predict(queries).tobytes()
        assert (model.ranker, model.measure) == (kind(ranker).__name__, "map(rel=2)")
        assert model.score(queries) == fitted.score(queries)
        assert model.history == json.loads(json.dumps(fitted.history_, default=float))
        assert model.params["measure"] == "map(rel=2)"
        assert rw.evaluate(model, queries, "map").means == rw.evaluate(fitted, queries, "map").means
        rw.save(model, tmp_path / "again.json")
        assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()


@every_ranker
@may_learn_nothing
def test_feature_names_travel(ranker, tmp_path):
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "grade": [1, 0, 0, 1], "bm25": [2.0, 1, 0, 3], "age": [1.0, 5, 2, 2]})
    rw.save(quick(ranker).fit(rw.Queries.from_frame(frame, label="grade", qid="q")), tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").features == ("bm25", "age")


@every_ranker
def test_rank(ranker, queries):
    fitted = fitted_once(ranker)
    ranked = fitted.rank(queries, k=3)
    scores = fitted.predict(queries)
    assert list(ranked) == queries.qid.tolist()
    for rows, documents in zip(queries, ranked.values(), strict=True):
        order = np.argsort(-scores[rows], kind="stable")[:3]
        assert documents.tolist() == queries.docid[rows][order].tolist()


@every_ranker
def test_clear_errors(ranker, queries):
    with pytest.raises(NotFittedError):
        quick(ranker).predict(queries)
    with pytest.raises(NotFittedError):
        quick(ranker).score(queries)
    with pytest.raises(rw.InputError, match="did you mean ndcg"):
        quick(ranker, measure="ndgc@10").fit(queries)
    with pytest.raises(rw.InputError, match="measure=3"):
        quick(ranker, measure=3).fit(queries)
    with pytest.raises(rw.InputError, match="backend="):
        quick(ranker, backend="gpu").fit(queries)
    fitted = fitted_once(ranker)
    with pytest.raises(rw.InputError, match="documents have 3 features; the model was trained on 10"):
        fitted.predict(rw.make_queries(3, n_features=3, random_state=0))
    with pytest.raises(ValueError, match="10 features"):
        fitted.predict(np.zeros((4, 3)))
    with pytest.raises(rw.InputError, match="have 3 features; training has 10"):
        quick(ranker).fit(queries, valid=rw.make_queries(3, n_features=3, random_state=0))
    with pytest.raises(rw.InputError, match="valid is a tuple"):
        quick(ranker).fit(queries, valid=(1, 2))
    with pytest.raises(rw.InputError, match="part of the Queries"):
        quick(ranker).fit(queries, queries.y)
    with pytest.raises(rw.InputError, match="qid has shape"):
        quick(ranker).fit(queries.X, queries.y, qid=[1, 2])
    with pytest.raises(rw.InputError, match="grades start at 0"):
        rw.evaluate(fitted, rw.Queries.from_arrays(np.zeros((1, 10)), [-1], [1]), "ndcg")
    with pytest.raises(rw.InputError, match="k=-1"):
        fitted.rank(queries, k=-1)
    with pytest.raises(rw.InputError, match="sample_weight"):
        fitted.score(queries, sample_weight=np.ones(queries.n_docs))


@every_ranker
def test_validation_queries_that_do_not_count(ranker, queries):
    empty = rw.Queries.from_arrays(np.zeros((2, 10)), [0, 0], [1, 1])
    with pytest.raises(rw.InputError, match=r"map\(empty=skip\) skips every validation query"):
        quick(ranker, measure="map(empty=skip)").fit(queries, valid=empty)


@every_ranker
def test_what_was_fitted_stays_fitted(ranker, queries, tmp_path):
    fitted = quick(ranker, measure="map").fit(queries)
    scores, value = fitted.predict(queries), fitted.score(queries)
    fitted.set_params(measure="nonsense")
    assert fitted.predict(queries).tobytes() == scores.tobytes()
    assert fitted.score(queries) == value
    rw.save(fitted, tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").measure == "map"
    with pytest.raises(rw.InputError):
        fitted.fit(rw.make_queries(5, n_features=400, random_state=0))
    with pytest.raises(rw.InputError):
        fitted.fit(pd.DataFrame(queries.X[:, :3], columns=["a", "b", "c"]), queries.y, qid=queries.row_qid)
    assert fitted.predict(queries).tobytes() == fitted.predict(queries.X).tobytes() == scores.tobytes()
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.raises(ValueError, match="features"):
        fitted.predict(np.zeros((2, 400)))


@every_ranker
@may_learn_nothing
def test_features_in_another_order_are_refused(ranker, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"q": np.repeat([1, 2], 5), "l": rng.integers(0, 3, 10), "a": rng.random(10), "b": rng.random(10)}
    )
    queries = rw.Queries.from_frame(frame, label="l", qid="q")
    other = rw.Queries.from_frame(frame[["q", "l", "b", "a"]], label="l", qid="q")
    fitted = quick(ranker).fit(queries)
    rw.save(fitted, tmp_path / "m.json")
    for predict in (fitted.predict, rw.load(tmp_path / "m.json").predict):
        with pytest.raises(rw.InputError, match="feature 1 is called 'b'; the model was trained on 'a' in its place"):
            predict(other)
    with pytest.raises(rw.InputError, match="training has 'a' in its place"):
        quick(ranker).fit(queries, valid=other)
    with pytest.raises(rw.InputError, match="the model was trained on 'a'"):
        rw.load(tmp_path / "m.json").predict(frame[["b", "a"]])
    unnamed = rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid)
    assert fitted.predict(unnamed).tobytes() == fitted.predict(queries).tobytes()


@may_be_ineffective
@may_not_converge
@pytest.mark.usefixtures("small_shards")
@every_ranker_and_network
def test_the_highest_grade_is_the_whole_datas(ranker):
    """max=data must not mean the highest grade of a shard."""
    data = rw.make_queries(40, n_docs=20, n_features=6, random_state=0)
    y = data.y.copy()
    y[-1] = 4
    data = rw.Queries(data.X, y, data.indptr, data.qid)
    options = short(ranker)
    fitted = quick(ranker, measure="err(max=data)", **options).fit(data)
    assert fitted.score(data) == pytest.approx(kept(fitted, "train"), abs=1e-12)
    valid = data.take(range(20))
    assert valid.y.max() == 2
    fitted = quick(ranker, measure="err(max=data)", **options).fit(data, valid=valid)
    assert fitted.to_model().measure == "err"  # a highest grade of 4 is the usual one
    assert fitted.score(valid) == pytest.approx(kept(fitted, "valid"), abs=1e-12)
    chosen = rw.select(quick(ranker, measure="err(max=data)", **options), {}, data, valid)
    value = chosen.estimate_.mean if chosen.pools_valid else chosen.score(valid)
    assert chosen.selection_[0]["value"] == value


def short(ranker) -> dict[str, int]:
    """Parameters that make training on much data short, where there are any."""
    return {name: 2 for name in ("n_restarts", "n_estimators", "max_iter") if name in quick(ranker).get_params()}


@may_be_ineffective
@may_not_converge
@pytest.mark.usefixtures("small_shards")
@every_ranker_and_network
def test_fits_in_any_thread_have_the_same_bits(ranker):
    data = rw.make_queries(40, n_docs=20, n_features=5, random_state=0)
    expected = quick(ranker, backend=rw.Serial(), **short(ranker)).fit(data).predict(data).tobytes()
    for backend in (rw.Serial(), rw.Threads(2)):
        found = []

        def fit(backend=backend, found=found):
            found.append(quick(ranker, backend=backend, **short(ranker)).fit(data).predict(data).tobytes())

        threads = [threading.Thread(target=fit) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 3


@every_ranker
def test_queries_of_no_weight_do_not_count(ranker, queries):
    relevant = np.array([queries.y[rows].any() for rows in queries])
    assert not relevant.all()
    weighted = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=(~relevant).astype(float))
    with pytest.raises(rw.InputError, match="skips every training query"):
        quick(ranker, measure="map(empty=skip)").fit(weighted)


@every_ranker_and_network
def test_missing_values_are_refused_unless_allowed(ranker, queries):
    X = queries.X.copy()
    X[3, 2] = np.nan
    holed = queries.with_X(X)
    if kind(ranker).allow_nan and kind(ranker) is not rw.Blend:  # whose members here do not all
        quick(ranker).fit(holed).predict(holed)
        return
    with pytest.raises(rw.InputError, match=r"NaN \(in 1 of 592 rows, first in row 3, counted from 0, feature 3\)"):
        quick(ranker).fit(holed)
    with pytest.raises(rw.InputError, match="validation documents contain NaN"):
        quick(ranker).fit(queries, valid=holed)
    with pytest.raises(rw.InputError, match="NaN"):
        fitted_once(ranker).predict(holed)
    with pytest.raises(rw.InputError, match="NaN"):
        fitted_once(ranker).to_model().predict(holed.X)
    with pytest.raises(
        rw.InputError,
        match=r"NaN \(in 1 of 592 rows, first in row 3, counted from 0, feature 3\).* ranker that takes NaN \(BoostedTrees",
    ):
        quick(ranker).fit(X, queries.y, qid=queries.row_qid)


@every_ranker_and_network
def test_wild_raw_features_just_work(ranker):
    """Rescaling the features changes nothing of substance under standard scaling."""
    data = rw.make_queries(60, n_features=6, random_state=2)
    factor = 10.0 ** np.array([-9, -3, 0, 3, 9, 15])
    wild = data.with_X((data.X * factor).astype(np.float32))
    plain = quick(ranker).fit(data).score(data)
    assert quick(ranker).fit(wild).score(wild) == pytest.approx(plain, abs=0.02)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def per_query_mean(ranker, queries: rw.Queries, train: np.ndarray, test: np.ndarray) -> float:
    fitted = clone(ranker).fit(queries.X[train], queries.y[train], qid=queries.row_qid[train])
    held_out = rw.Queries.from_arrays(queries.X[test], queries.y[test], queries.row_qid[test])
    return float(rw.evaluate(fitted, held_out, ranker.measure).means[str(rw.parse_measure(ranker.measure))])


@every_ranker_and_network
@pytest.mark.usefixtures("routing")
class TestRouting:
    @pytest.fixture
    def queries(self):
        return QUERIES.take(range(16))

    def test_cross_validate_scores_queries_not_folds(self, ranker, queries):
        estimator, cv = quick(ranker, measure="ndcg@5"), rw.QueryKFold(2)
        qid = queries.row_qid
        result = cross_validate(estimator, queries.X, queries.y, cv=cv, params={"qid": qid}, error_score="raise")
        expected = [per_query_mean(estimator, queries, *split) for split in cv.split(queries.X, qid=qid)]
        assert result["test_score"] == pytest.approx(expected, abs=1e-12)

    def test_grid_search(self, ranker, queries):
        measures = {"measure": ["ndcg@1", "map"]}
        search = GridSearchCV(
            quick(ranker), measures, cv=rw.QueryKFold(2, shuffle=True, random_state=0), error_score="raise"
        )
        search.fit(queries.X, queries.y, qid=queries.row_qid)
        for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
            splits = rw.QueryKFold(2, shuffle=True, random_state=0).split(queries.X, qid=queries.row_qid)
            expected = [per_query_mean(quick(ranker, **params), queries, *split) for split in splits]
            assert score == pytest.approx(np.mean(expected), abs=1e-12)
        assert search.score(queries.X, queries.y, qid=queries.row_qid) == pytest.approx(
            search.best_estimator_.score(queries.X, queries.y, qid=queries.row_qid)
        )

    def test_pipeline(self, ranker, queries):
        pipeline = make_pipeline(StandardScaler(), quick(ranker, measure="map"))
        pipeline.fit(queries.X, queries.y, qid=queries.row_qid)
        scores = pipeline.predict(queries.X, qid=queries.row_qid)
        expected = rw.parse_measure("map").mean(queries, scores)
        assert pipeline.score(queries.X, queries.y, qid=queries.row_qid) == pytest.approx(expected, abs=1e-12)
        result = cross_validate(
            pipeline, queries.X, queries.y, cv=rw.QueryKFold(2), params={"qid": queries.row_qid}, error_score="raise"
        )
        assert np.isfinite(result["test_score"]).all()

    def test_a_grid_over_a_pipeline_of_per_query_scaling(self, ranker, queries):
        if "scale" not in quick(ranker).get_params():
            pytest.skip("the ranker does not scale")
        pipeline = make_pipeline(StandardScaler(), quick(ranker, scale="query"))
        grid = {f"{kind(ranker).__name__.lower()}__measure": ["map", "ndcg@3"]}
        search = GridSearchCV(pipeline, grid, cv=rw.QueryKFold(2), error_score="raise")
        search.fit(queries.X, queries.y, qid=queries.row_qid)
        best = search.best_estimator_  # scikit-learn's search itself routes nothing in predict
        assert best.predict(queries.X, qid=queries.row_qid).shape == (queries.n_docs,)
        with pytest.raises(rw.InputError, match="predict needs qid"):
            best.predict(queries.X)


@every_ranker_and_network
def test_never_one_big_query(ranker, queries):
    fitted = quick(ranker).fit(queries.X, queries.y, qid=queries.row_qid)
    with pytest.raises(rw.InputError, match="score needs qid"):
        fitted.score(queries.X, queries.y)
    with pytest.raises(rw.InputError, match="QueryKFold needs qid"):
        list(rw.QueryKFold(3).split(queries.X))
    X, y = queries.X[:60], queries.y[:60]
    with pytest.warns(rw.MissingQueryIdWarning, match="fit was called without qid"):
        single = quick(ranker).fit(X, y)
    with pytest.warns(rw.MissingQueryIdWarning, match="score was called without qid"):
        assert 0 <= single.score(X, y) <= 1


def test_names_on_the_command_line():
    for ranker in RANKERS:
        assert find_ranker(ranker.__name__.lower()) is ranker
    assert find_ranker("Ada-Rank") is rw.AdaRank
    with pytest.raises(rw.InputError, match="did you mean regression"):
        find_ranker("regresion")
    with pytest.raises(rw.InputError, match="there are adarank"):
        find_ranker("xyz")
