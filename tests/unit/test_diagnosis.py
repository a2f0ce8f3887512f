"""Diagnosis: bounds against listing them one by one, scales against a grid, weights against line profiles, verdicts by rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.warned import may_not_converge

import rankwright as rw
from rankwright.analysis.diagnosis import BestScale, Certificate, SingleWeightGains, UpperBoundValues
from rankwright.analysis.diagnosis.score_scales import Tangent, ViolatedRankings, find_best_factor
from rankwright.analysis.diagnosis.verdicts import LOOSE, MAX_GAP, MIN_GAIN, DiagnosisFacts, decide_verdict
from rankwright.experiments.tables import trial_tables
from rankwright.objectives.upper_bounds import SURROGATES, Basic, TypeOne, TypeTwo, list_bounds
from rankwright.optimisers.landscape import Landscape
from rankwright.scorers import Linear


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(40, n_docs=12, n_features=6, noise=1.5, random_state=3)


@pytest.fixture(scope="module")
def ranker(queries):
    return rw.RankSVM(measure="ndcg@5").fit(queries)


# The hook


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        (rw.AdaRank(), TypeOne(rw.NDCG(5), "exponential")),
        (rw.SVMMap(), TypeTwo(rw.AP(), "margin")),
        (rw.SVMNDCG(k=3), TypeTwo(rw.NDCG(3), "margin", perfect="grades")),
        (
            rw.PermuRank(ranking_score="ranks", perfect_rankings="grades"),
            TypeTwo(rw.NDCG(5), "hinge", "sum", "ranks", "grades"),
        ),
        (rw.DirectRank(), Basic(rw.NDCG(5))),
        (rw.RankSVM(), None),
        (rw.Regression(), None),
    ],
)
def test_what_rankers_minimise(ranker, expected):
    assert ranker.find_minimised_bound(rw.parse_measure("ndcg@5(ties=average)").for_training()) == expected


# UpperBoundEvaluator


@pytest.mark.parametrize("backend", [rw.Serial(), rw.Threads(2)])
@pytest.mark.parametrize("name", ["ndcg@5", "map", "err@5", "dcg@3", "mrr"])
def test_every_bound_by_query(queries, ranker, name, backend):
    found = rw.diagnose(ranker, queries, name, backend=backend)
    scores, measure = ranker.predict(queries), rw.parse_measure(name)
    np.testing.assert_array_equal(found.values, measure.values(queries, scores))
    for bound, at in zip(list_bounds(measure)[1:], found.bounds, strict=True):
        expected = bound.prepare(queries).at(scores)
        np.testing.assert_allclose(at.values, expected.values, rtol=1e-9)
        np.testing.assert_array_equal(at.exact, expected.exact)
        assert at.name == bound.label
        assert (at.gap >= -1e-12).all()
        assert at.mean == pytest.approx(expected.values.mean())
        assert at.total == pytest.approx(expected.values.sum())
        assert at.mean_gap == pytest.approx(at.mean - found.mean_loss)
    np.testing.assert_allclose(found.loss, Basic(measure).prepare(queries).at(scores).values, atol=1e-12)


def test_weights_of_queries_weigh(queries, ranker):
    weight = np.linspace(0.0, 2.0, len(queries))
    found = rw.diagnose(ranker, queries.replace(weight=weight))
    margin = found["type two, margin"]
    assert margin.mean == pytest.approx(np.average(margin.values, weights=weight))
    assert found.mean_loss == pytest.approx(np.average(found.loss, weights=weight))


@pytest.mark.parametrize("ranker", [rw.SVMMap(C=3.0), rw.SVMNDCG(C=3.0), rw.AdaRank(measure="map")])
def test_the_own_bound_is_what_training_recorded(queries, ranker):
    ranker.fit(queries)
    found = rw.diagnose(ranker, queries)
    record = ranker.history_[-1] if ranker.keeps_last else max(ranker.history_, key=lambda r: r["train"])
    expected = record["loss"]
    if isinstance(ranker, rw.AdaRank):  # it counts queries without any loss as exp(-1), or as exp(-0)
        found_values, expected = found.own.values[found.live], found.own.mean
        np.testing.assert_allclose(found_values, np.exp(-found.E[found.live]))
    assert found.own.mean == pytest.approx(expected)
    assert found.seen


def test_a_bound_on_another_measure_stands_apart(queries):
    ranker = rw.SVMMap(measure="ndcg@5", C=10.0).fit(queries)
    found = rw.diagnose(ranker, queries)
    assert [bound.measure for bound in found.bounds] == ["ndcg@5"] * 7 + ["map"]
    assert found.own is found.bounds[-1]
    scores = ranker.predict(queries)
    np.testing.assert_allclose(found.own.loss, Basic(rw.AP()).prepare(queries).at(scores).values)
    assert (found.own.gap >= -1e-12).all()
    assert "type two, margin on map *" in str(found)
    assert "type two, margin on map: gap" in found.to_pandas()


# Scales


@pytest.mark.parametrize("name", ["map", "ndcg", "ndcg@5"])
@pytest.mark.parametrize("length", [0.01, 1.0, 100.0])
def test_best_scales_are_least(queries, name, length):
    coef = rw.Regression().fit(queries).coef_ * length
    model = rw.Model("Other", {}, name, Linear(coef), queries.n_features)
    found, scores = rw.diagnose(model, queries), model.predict(queries)
    for bound, at in zip(list_bounds(rw.parse_measure(name))[4:], found.bounds[3:], strict=True):
        losses = bound.prepare(queries)
        np.testing.assert_allclose(at.least.values, losses.at(scores * at.least.factor).values)
        typical = 1.0 / np.ptp(scores)
        other = min(losses.at(scores * typical * 10.0**power).values.mean() for power in np.arange(-4, 5, 0.25))
        assert at.least_mean <= other * 1.02  # a search that gives up finds a little less here, a little more there
        assert at.least_mean <= at.mean
    assert found["type two, step"].least is None
    assert found["type one, exponential"].least is None


def test_the_best_scale_does_not_know_the_scale(queries):
    coef = rw.Regression().fit(queries).coef_
    one, other = (
        rw.diagnose(rw.Model("Other", {}, "map", Linear(coef * length), queries.n_features), queries)
        for length in (1.0, 1000.0)
    )
    for name in ("type two, hinge", "type two, margin", "type two, logistic"):
        assert one[name].least.factor == pytest.approx(1000.0 * other[name].least.factor, rel=1e-3)
        assert one[name].least_mean == pytest.approx(other[name].least_mean, rel=1e-4)


def test_the_lower_bound_of_a_scale_is_a_weighted_mean():
    nothing, tangent = np.zeros((1, 2)), Tangent(1.0, np.array([0.5, 0.25]), np.zeros(2))
    found = find_best_factor(
        SURROGATES["hinge"], ViolatedRankings(nothing, nothing, 1.0), np.array([1.0, 3.0]), [tangent]
    )
    assert found == (0.0, (0.5 + 3.0 * 0.25) / 4.0)


def test_scores_that_are_all_alike_have_no_scale(queries):
    found = rw.diagnose(rw.Model("Other", {}, "map", Linear(np.zeros(6)), 6), queries)
    assert found["type two, margin"].least.factor == 1.0
    assert found["type two, margin"].least_mean == found["type two, margin"].mean


# Weights


@pytest.mark.parametrize("scale", ["standard", "query"])
def test_one_weight_alone(queries, scale):
    ranker = rw.Regression(measure="ndcg@5", scale=scale).fit(queries)
    alone = rw.diagnose(ranker, queries).weight_gains
    scaled = queries if scale == "standard" else rw.scale_features(queries, "query")
    landscape = Landscape.of(scaled, rw.NDCG(5), rw.Serial())
    point = landscape.evaluate(ranker.coef_)
    for j in range(queries.n_features):
        highest = landscape.profile(point, j).values.max()
        assert alone.gain[j] == pytest.approx(max(highest - point.value, 0.0), abs=1e-9)
        coef = ranker.coef_.copy()
        coef[j] = alone.to[j]
        assert rw.NDCG(5).mean(scaled, Linear(coef)(scaled.X)) == pytest.approx(point.value + alone.gain[j], abs=1e-9)
    assert alone.features == ("1", "2", "3", "4", "5", "6")
    assert alone.gain[alone.best] == alone.gain.max() > 0


def test_a_climb_leaves_nothing_along_any_weight(queries):
    ranker = rw.DirectRank(measure="ndcg@5", n_restarts=1, random_state=0).fit(queries)
    found = rw.diagnose(ranker, queries)
    assert found.weight_gains.gain.max() < 1e-9
    assert found.verdict.problem == "neither"
    assert found.own.name == "basic loss"


# Models, and what they tell of their training


@pytest.mark.parametrize(
    "ranker", [rw.AdaRank(), rw.SVMMap(), rw.PermuRank(max_iter=3, ranking_score="ranks"), rw.RankSVM()]
)
def test_a_saved_model_is_diagnosed_alike(queries, ranker, tmp_path):
    ranker.fit(queries, valid=queries)
    rw.save(ranker, tmp_path / "model.json")
    found, loaded = rw.diagnose(ranker, queries), rw.diagnose(rw.load(tmp_path / "model.json"), queries)
    assert str(found) == str(loaded)
    assert found.seen


@may_not_converge
def test_parameters_are_those_of_the_fit(queries):
    ranker = rw.PermuRank(measure="map", max_iter=2, ranking_score="ranks").fit(queries)
    name = rw.diagnose(ranker, queries).own.name
    ranker.set_params(ranking_score="pairs")
    assert rw.diagnose(ranker, queries).own.name == name == "type two, hinge, sum, perfect by grade, Phi of ranks"


def test_other_queries_are_noticed(queries, ranker):
    other = rw.make_queries(40, n_docs=12, n_features=6, noise=1.5, random_state=4)
    assert rw.diagnose(ranker, other).seen is False
    assert rw.diagnose(ranker, other, "map").seen is False
    assert rw.diagnose(ranker, queries, "map").seen is True
    assert rw.diagnose(rw.Model("Other", {}, "map", Linear(np.ones(6)), 6), queries).seen is None


SHAPE = {"n_estimators": 13, "num_leaves": 4, "min_child_samples": 5}


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize(
    "ranker",
    [
        rw.MART(**SHAPE),
        rw.LambdaMART(**SHAPE, polish_rounds=3),
        rw.LambdaMART(**SHAPE, lambdas="lightgbm", polish_rounds=2),
        rw.DirectRankTrees(**SHAPE, polish_rounds=1),
        rw.DirectRankTrees(**SHAPE, weight_range=None),
        rw.BoostedTrees(**SHAPE, measure="map", objective="fidelity"),
    ],
)
@pytest.mark.parametrize("many", [100_000, 1])  # documents: with more, some rounds do not know the training measure
def test_trees_know_their_training_queries(queries, ranker, validated, many, monkeypatch, tmp_path):
    monkeypatch.setattr("rankwright.rankers.trees.tree_boosting._MANY", many)
    train, valid = queries.slice(0, 28), queries.slice(28, 40)
    fitted = clone(ranker).fit(train, valid=valid if validated else None)
    rw.save(fitted, tmp_path / "model.json")
    for model in (fitted, rw.load(tmp_path / "model.json")):
        found, elsewhere = rw.diagnose(model, train), rw.diagnose(model, valid)
        assert (found.seen, elsewhere.seen) == (True, False)
        assert found.mean == pytest.approx(fitted.score(train))
        assert (found.own, found.certificate, found.weight_gains) == (None, None, None)
        # without weights to try, a bound of its own or a certificate there is nothing to blame
        assert (found.verdict.problem, elsewhere.verdict.problem) == ("unknown", "unknown")
        assert "One weight alone: not searched." in str(found)


@may_not_converge
def test_the_certificate_is_of_the_kept_round(queries):
    ranker = rw.PermuRank(measure="map", max_iter=6, C=10.0).fit(queries)
    [kept] = [record for record in ranker.history_ if record.get("kept")]
    assert rw.diagnose(ranker, queries).certificate == Certificate(kept["objective"], kept["gap"])
    svm = rw.SVMMap(max_iter=2, C=10.0).fit(queries)
    last = svm.history_[-1]
    found = rw.diagnose(svm, queries)
    assert found.certificate == Certificate(last["objective"], last["gap"])
    assert found.certificate.relative > MAX_GAP
    assert found.verdict.problem == "optimiser"


def test_a_measure_of_ones_own(queries):
    mine = rw.make_measure(lambda grades: float(np.mean(grades[:3] > 0)), name="mine")
    ranker = rw.AdaRank(measure=mine).fit(queries)
    found = rw.diagnose(ranker, queries)
    assert not found["type two, hinge"].exact[found.live].any()
    assert all((bound.gap >= -1e-12).all() for bound in found.bounds)
    model = ranker.to_model()
    assert str(rw.diagnose(model, queries, mine)) == str(found)
    elsewhere = replace(model, measure="of another process")
    with pytest.raises(rw.InputError, match=r"'of another process' is a user's own.*pass measure="):
        rw.diagnose(elsewhere, queries)
    assert rw.diagnose(elsewhere, queries, mine).own is None


def test_a_measure_of_ones_own_is_not_searched_for_hours(queries, monkeypatch):
    monkeypatch.setattr("rankwright.analysis.diagnosis.single_weights.MAX_CROSSINGS", 10)
    mine = rw.make_measure(lambda grades: float(grades[0] > 0), name="mine")
    found = rw.diagnose(rw.AdaRank(measure=mine).fit(queries), queries)
    assert found.weight_gains is None
    assert "One weight alone: not searched." in str(found)
    assert rw.diagnose(rw.RankSVM().fit(queries), queries).weight_gains is not None


def test_what_cannot_be_evaluated_is_left_out(monkeypatch):
    monkeypatch.setattr("rankwright.objectives.rankings.MAX_NODES", 100)
    queries = rw.make_queries(5, n_docs=60, n_features=3, random_state=0)
    found = rw.diagnose(rw.Regression(measure="err").fit(queries), queries)
    assert [bound.name for bound in found.bounds] == ["type one, exponential", "type one, logistic"]
    assert "type two, margin" in found.left_out
    assert "type two, margin: left out, a query has too many" in str(found)


def test_queries_without_any_better_ranking(queries):
    flat = queries.replace(y=np.zeros(queries.n_docs))
    found = rw.diagnose(rw.Model("Other", {}, "map", Linear(np.ones(6)), 6), flat)
    assert (found.mean_loss, found.verdict.problem) == (0.0, "neither")
    assert not found.live.any()
    skipped = rw.diagnose(rw.Model("Other", {}, "map(empty=skip)", Linear(np.ones(6)), 6), flat)
    assert np.isnan(skipped.mean)
    assert skipped.weight_gains is None


def test_single_features_have_no_weights(queries):
    found = rw.diagnose(rw.SingleFeature().fit(queries), queries)
    assert found.weight_gains is None
    assert found.verdict.problem == "unknown"


def test_unknown_phi(queries, ranker):
    with pytest.raises(rw.InputError, match="phi='words'; expected one of pairs, ranks"):
        rw.diagnose(ranker, queries, phi="words")


def test_a_data_frame(queries, ranker):
    found = rw.diagnose(ranker, queries)
    frame = found.to_pandas()
    assert list(frame.index) == list(queries.qid)
    np.testing.assert_array_equal(frame["ndcg@5"], found.values)
    np.testing.assert_allclose(frame["type two, hinge: gap"], frame["type two, hinge"] - frame["loss"])
    assert frame["type two, hinge: exact"].dtype == bool
    with pytest.raises(KeyError, match="no bound is called 'hinge'; there are type one, exponential"):
        found["hinge"]


# Verdicts


def facts(*, gain: float | None = 0.0, gap: float | None = None, **changes: object) -> DiagnosisFacts:
    alone = None if gain is None else SingleWeightGains(("a", "b"), np.zeros(2), np.ones(2), np.array([gain, 0.0]), 1.0)
    certificate = None if gap is None else Certificate(2.0, 2.0 * gap)
    given = dict(
        measure="map",
        loss=0.4,
        own=None,
        own_after=None,
        certificate=certificate,
        weight_gains=alone,
        validated=False,
        seen=True,
    )
    return DiagnosisFacts(**{**given, **changes})


def own(mean: float, least: float | None = None, factor: float = 2.0) -> UpperBoundValues:
    one = np.ones(1)
    found = None if least is None else BestScale(factor, one * least, one > 0)
    return UpperBoundValues("type two, margin", "map", True, one, one * 0.4, one * mean, one > 0, found)


RULES = {
    "nothing to gain": (facts(loss=0.004, gap=1.0), "neither", "next to nothing"),
    "a gap": (facts(gap=MAX_GAP * 1.01, gain=0.1), "optimiser", "1.01% above"),
    "no gap, a gain": (facts(gap=MAX_GAP * 0.99, gain=0.1), "surrogate", "feature a alone would raise map by 0.1000"),
    "no gap, a small gain": (facts(gap=0.0, gain=MIN_GAIN * 0.99), "neither", "by more than 0.005"),
    "the scale, up": (facts(gap=0.0, gain=0.1, own=own(0.9, 0.8)), "scale", "too short: try a larger C"),
    "the scale, down": (facts(gap=0.0, gain=0.1, own=own(0.9, 0.8, 0.5)), "scale", "too long: try a smaller C"),
    "nearly the scale": (facts(gap=0.0, gain=0.1, own=own(0.9, 0.82)), "surrogate", "a alone"),
    "a scale of 0": (facts(gap=0.0, gain=0.1, own=own(0.9, 0.5, 0.0)), "surrogate", "when all scores are alike"),
    "no certificate, the bound falls": (facts(gain=0.1, own=own(0.6), own_after=0.5), "optimiser", "0.6000 to 0.5000"),
    "no certificate, it rises": (facts(gain=0.1, own=own(0.6), own_after=0.7), "surrogate", "but raise the bound"),
    "no bound": (facts(gain=0.1), "surrogate", "no bound on a measure"),
    "no weights, loose": (facts(gain=None, own=own(0.9, 0.4 * LOOSE * 1.1)), "surrogate", "says little"),
    "no weights, tight": (facts(gain=None, own=own(0.5, 0.5)), "unknown", "No weights"),
    "other queries": (facts(gap=0.0, gain=0.1, own=own(0.9, 0.8), seen=False), "unknown", "only the training queries"),
    "other queries, a gap": (facts(gap=0.1, gain=0.1, seen=False), "optimiser", "10.00% above"),
    "perhaps other queries": (facts(gap=0.0, gain=0.1, seen=None), "surrogate", "a alone"),
    "no gain, loose": (facts(gain=0.0, own=own(0.9, 0.4 * LOOSE * 1.1)), "neither", "says little"),
}


@pytest.mark.parametrize(("given", "problem", "words"), RULES.values(), ids=RULES)
def test_verdicts(given, problem, words):
    verdict = decide_verdict(given)
    assert verdict.problem == problem
    assert words in verdict.text


def test_a_round_chosen_by_validation_may_be_short_on_purpose():
    on_purpose = "may be on purpose"
    assert on_purpose in decide_verdict(facts(gain=0.1, own=own(0.6), own_after=0.5, validated=True)).text
    assert on_purpose not in decide_verdict(facts(gain=0.1, own=own(0.6), own_after=0.5)).text


# What trials leave for the report


def left(ranker, queries):
    fold = rw.split_folds(queries, 3, random_state=0)[0]
    ranker.fit(fold.train)
    return trial_tables.tabulate_bounds(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {})), rw.diagnose(
        ranker, fold.train
    )


@may_not_converge
@pytest.mark.parametrize(
    ("ranker", "names", "own"),
    [
        (rw.AdaRank(), ["type one, exponential", "type two, margin"], 0),
        (rw.SVMMap(), ["type one, exponential", "type two, margin"], 1),
        (rw.SVMMap(measure="ndcg@5"), ["type one, exponential", "type two, margin", "type two, margin"], 2),
        (
            rw.PermuRank(max_iter=3),
            ["type one, exponential", "type two, margin", "type two, hinge, sum, perfect by grade"],
            2,
        ),
        (rw.SVMNDCG(measure="ndcg"), ["type one, exponential", "type two, margin, perfect by grade"], 1),
        (rw.DirectRank(n_restarts=1), ["type one, exponential", "type two, margin", "basic loss"], 2),
        (rw.Regression(), ["type one, exponential", "type two, margin"], None),
    ],
)
def test_bounds_of_a_trial(queries, ranker, names, own):
    table, found = left(ranker, queries)
    assert table["bound"].tolist() == names
    assert np.flatnonzero(table["own"]).tolist() == ([] if own is None else [own])
    for i, (name, measure) in enumerate(zip(names, table["measure"], strict=True)):
        [bound] = [b for b in found.bounds if (b.name, b.measure) == (name, measure)]
        assert table["value"][i] == pytest.approx(bound.mean)
        assert table["loss"][i] == pytest.approx(bound.mean - bound.mean_gap)
        if not np.isnan(table["least"][i]):
            assert (table["least"][i], table["factor"][i]) == pytest.approx((bound.least_mean, bound.least.factor))
    assert np.isfinite(table["least"]).tolist() == [n == "type two, margin" and i < 2 for i, n in enumerate(names)]


def test_bounds_are_for_data_of_some_size(queries, monkeypatch):
    monkeypatch.setattr(trial_tables, "MOST_BOUNDED", 10)
    assert left(rw.Regression(), queries)[0] is None
