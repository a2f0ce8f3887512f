"""Blend: cross-fitting without leaks, one scorer, an honest estimate."""

from __future__ import annotations

import pickle
import weakref
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning

import rankwright as rw
from rankwright.data.joined_queries import join_queries
from rankwright.data.unretrieved import Unretrieved
from rankwright.measures.jumps import SearchStoppedError
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.blend_weights import BlendWeights
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import search_line
from rankwright.optimisers.rounds import Deadline
from rankwright.rankers.blend import blend as blend_module
from rankwright.rankers.blend import cross_fitting
from rankwright.rankers.blend.blend_problem import BlendProblem, MeanEstimate
from rankwright.rankers.blend.candidates import Candidate, FoldFit, fit_candidate
from rankwright.rankers.blend.cross_fitting import (
    CrossFitter,
    FitTask,
    FittedMember,
    HeldOutQueries,
    _choose_variant,
    build_member,
)
from rankwright.rankers.blend.fold_plan import FoldKey, FoldPlan, find_learnable, iterate_round_counts, standardise
from rankwright.scorers import Linear

QUERIES = rw.make_queries(40, n_docs=12, n_features=6, random_state=0)
TREES = partial(rw.MART, num_leaves=4, n_estimators=8)


def make_cross(queries=QUERIES, n_folds=3, n_repeats=1, measure="ndcg@5"):
    plan = FoldPlan.draw(queries, n_folds, n_repeats, np.random.default_rng(0))
    return CrossFitter(plan, rw.parse_measure(measure).for_training(), rw.Serial())


class Memory(RegressorMixin, BaseEstimator):
    """It knows the grades of the documents that it was trained on, and nothing else."""

    def fit(self, X, y):
        self.known_ = {row.tobytes(): grade for row, grade in zip(np.asarray(X), y, strict=True)}
        return self

    def predict(self, X):
        return np.array([self.known_.get(row.tobytes(), hash(row.tobytes()) % 1000 / 1000) for row in np.asarray(X)])


def test_a_member_that_only_remembers_is_found_out():
    noise = rw.parse_measure("ndcg@5").mean(QUERIES, np.random.default_rng(1).random(QUERIES.n_docs))
    for weights in ("exact", "greedy", "stacking"):
        blend = rw.Blend(rankers=[Memory(), rw.Regression()], n_folds=4, measure="ndcg@5", weights=weights).fit(QUERIES)
        rows = {row["member"]: row for row in blend.members_}
        assert rows["memory"]["mean"] == pytest.approx(noise, abs=0.12)
        assert rows["memory"]["mean"] < rows["regression"]["mean"] - 0.1
        assert rows["memory"]["weight"] < 0.25
        assert blend.estimate_.mean < rw.evaluate(blend, QUERIES, "ndcg@5")["ndcg@5"] + 0.1
    assert Memory().fit(QUERIES.X, QUERIES.y).predict(QUERIES.X).tolist() == QUERIES.y.tolist()


def test_every_fold_is_fitted_without_its_queries():
    seen = []

    class Spy(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append({row.tobytes() for row in X})
            return self

        def predict(self, X):
            assert not {row.tobytes() for row in X} & seen[-1]
            return np.asarray(X)[:, 0]

    cross = make_cross()
    spy = Candidate("spy", Spy())
    cross.run([FitTask(spy, key) for key in cross.plan.list_keys()], Deadline(None))
    build = HeldOutQueries.of(cross.plan, cross.plan.list_keys(), cross.measure)
    assert len(seen) == 3
    assert all(len(rows) < QUERIES.n_docs for rows in seen)
    assert len(build.queries) == len(QUERIES)


def test_the_variant_of_a_fold_is_chosen_without_its_queries():
    cross = make_cross(n_folds=4)
    keys = cross.plan.list_keys()
    held_out = HeldOutQueries.of(cross.plan, keys, cross.measure)
    values = np.random.default_rng(0).random((5, len(QUERIES)))
    for key in keys:
        own = held_out.find_positions(key)
        others = np.setdiff1d(np.arange(len(QUERIES)), own)
        expected = int(np.argmax(values[:, others].mean(axis=1)))
        assert _choose_variant(values, held_out, ~held_out.find_own(key)) == expected
        changed = values.copy()
        changed[:, own] = np.random.default_rng(1).random((5, len(own)))
        assert _choose_variant(changed, held_out, ~held_out.find_own(key)) == expected


def test_the_scale_and_the_offset_of_a_member_change_nothing():
    class Scaled(RegressorMixin, BaseEstimator):
        def __init__(self, factor=1.0, offset=0.0):
            self.factor, self.offset = factor, offset

        def fit(self, X, y):
            self.coef_ = np.linalg.lstsq(X.astype(float), y, rcond=None)[0]
            return self

        def predict(self, X):
            return (np.asarray(X, dtype=float) @ self.coef_) * self.factor + self.offset

    blends = [
        rw.Blend(rankers=[("scaled", Scaled(*given)), ("trees", TREES())], n_folds=3, measure="ndcg@5").fit(QUERIES)
        for given in ((1.0, 0.0), (1024.0, 0.0), (1.0, 8.0))
    ]
    for other in blends[1:]:
        assert [row["member"] for row in other.members_] == [row["member"] for row in blends[0].members_]
        for row, expected in zip(other.members_, blends[0].members_, strict=True):
            assert row["weight"] == pytest.approx(expected["weight"], abs=1e-9)
        spread = [
            np.concatenate([s - s.mean() for s in (each.predict(QUERIES)[q] for q in QUERIES)]) for each in blends
        ]
        assert spread[1] == pytest.approx(spread[0], abs=1e-9)


def test_scores_that_differ_by_rounding_are_no_ranking():
    indptr = np.array([0, 3, 7])
    noise = np.full(7, 0.1) + np.array([0, 1, 0, 0, -1, 0, 1]) * 1e-17
    assert standardise(noise, indptr)[1] == 0.0
    assert standardise(np.full(7, 1.0 / 3.0), indptr)[0].tolist() == [0.0] * 7
    for scale in (1e-200, 1.0, 1e200):
        scores, factor = standardise(np.arange(7.0) * scale, indptr)
        assert np.sqrt(np.mean(scores**2)) == pytest.approx(1.0)
        assert factor * scale == pytest.approx(standardise(np.arange(7.0), indptr)[1])
    assert standardise(np.array([np.inf, 0, 0, 0, 0, 0, 0]), indptr)[1] == 0.0


def test_folds_are_balanced():
    queries = rw.make_queries(53, n_docs=8, random_state=1)
    plan = FoldPlan.draw(queries, 5, 3, np.random.default_rng(0))
    highest = np.array([queries.y[rows].max() for rows in queries])
    for row in plan.folds:
        assert np.ptp(np.bincount(row)) <= 1
        for grade in np.unique(highest):
            assert np.ptp(np.bincount(row[highest == grade], minlength=5)) <= 1 + (grade > 0)
    assert not np.array_equal(plan.folds[0], plan.folds[1])
    for key in plan.list_keys():
        train, held_out = plan.split_fold(key)
        assert len(train) + len(held_out) == 53
        assert not set(train.qid.tolist()) & set(held_out.qid.tolist())
        assert held_out.qid.tolist() == queries.qid[plan.find_held_out(key)].tolist()
        assert plan.take_held_out(key).X.tobytes() == held_out.X.tobytes()


def test_every_training_set_has_queries_to_learn_from():
    y = np.where(np.repeat(np.arange(40), QUERIES.sizes) < 3, QUERIES.y, 0)
    few = QUERIES.replace(y=y)
    useful = find_learnable(few)
    assert 1 < useful.sum() <= 3
    plan = FoldPlan.draw(few, 5, 2, np.random.default_rng(0))
    assert plan.n_folds == useful.sum()
    for key in plan.list_keys():
        assert find_learnable(plan.split_fold(key)[0]).any()
    blend = rw.Blend(rankers=[rw.Regression(), TREES()], measure="map(empty=skip)").fit(few)
    assert np.isfinite(blend.predict(few)).all()
    one = few.replace(y=np.where(np.repeat(np.arange(40), few.sizes) == np.flatnonzero(useful)[0], y, 0))
    assert not FoldPlan.draw(one, 5, 2, np.random.default_rng(0)).has_held_out
    blend = rw.Blend(rankers=[rw.Regression(), TREES()], measure="map(empty=skip)").fit(one)
    assert np.isnan(blend.estimate_).all()
    assert all(np.isnan(row["mean"]) for row in blend.members_)
    assert [row["weight"] for row in blend.members_] == [0.5, 0.5]
    assert "oof" not in blend.history_[0]


def test_data_are_not_kept_alive_by_a_fitted_blend():
    queries = rw.make_queries(20, random_state=0)
    X = queries.X.copy()
    held = weakref.ref(X)
    blend = rw.Blend(rankers=[rw.Regression(), TREES()], n_folds=2).fit(queries.with_X(X))
    del X
    assert held() is None
    assert len(pickle.dumps(blend)) < 200_000


def test_numbers_of_rounds_grow_by_a_fifth():
    found = list(iterate_round_counts(200))
    assert found[:11] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    assert found[-1] == 200
    assert all(a < b <= a + max(1, a // 5) for a, b in pairwise(found))


@pytest.mark.parametrize(
    "ranker",
    [
        TREES(),
        rw.LambdaMART(num_leaves=4, n_estimators=8),
        rw.GBRank(num_leaves=4, n_estimators=8),
        rw.DirectRankTrees(num_leaves=4, n_estimators=8),
        rw.RankBoost(n_estimators=8),
        rw.FRank(n_estimators=8),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_the_first_terms_are_the_model_of_fewer_rounds(ranker):
    whole = clone(ranker).fit(QUERIES).scorer_
    for n in (1, 3, 8):
        fewer = clone(ranker).set_params(n_estimators=n).fit(QUERIES)
        assert whole.slice_terms(0, n)(QUERIES.X) == pytest.approx(fewer.predict(QUERIES), abs=1e-9)
    total = whole.slice_terms(0, 3)(QUERIES.X) + whole.slice_terms(3, 8)(QUERIES.X)
    assert total == pytest.approx(whole(QUERIES.X), abs=1e-9)


def test_the_scorer_is_the_weighted_mean_of_the_models_of_all_folds():
    cross = make_cross(n_repeats=2)
    keys = cross.plan.list_keys()
    members = [
        Candidate("linear", rw.Regression()),
        Candidate("trees", TREES()),
        Candidate("boost", rw.RankBoost(n_estimators=5)),
    ]
    cross.run([FitTask(each, key) for each in members for key in keys], Deadline(None))
    held_out = HeldOutQueries.of(cross.plan, keys, cross.measure)
    fitted = [build_member(cross, each.name, [each], held_out) for each in members]
    problem = BlendProblem.of(fitted, held_out, rw.Serial())
    coef = np.array([0.5, 0.2, 0.3])
    expected = np.zeros(QUERIES.n_docs)
    for weight, member in zip(coef, fitted, strict=True):
        for scorer, factor in zip(member.scorers, member.factors, strict=True):
            expected += weight * factor * scorer(QUERIES.X) / len(keys)
    assert problem.merge(coef)(QUERIES.X) == pytest.approx(expected, abs=1e-9)
    for member in fitted:  # held-out scores are those of the model of the fold
        for at, key in enumerate(keys):
            part = cross.plan.take_held_out(key)
            rows = held_out.find_rows(key)
            raw = member.scorers[at](part.X) * member.factors[at]
            centred = np.concatenate([raw[q] - raw[q].mean() for q in part])
            assert member.scores[key.repeat, rows] == pytest.approx(centred, abs=1e-9)
    assert problem.merge(np.array([0.0, 1.0, 0.0])).trees is not None


def test_one_fold_alone_does_not_reward_the_luckiest_of_many_variants():
    """The scores of variants are noise: their choice on the queries that they are measured on would pay."""
    rng = np.random.default_rng(0)
    errors, gains = [], []
    for seed in range(12):
        queries = rw.Queries.from_arrays(
            rng.normal(size=(1000, 60)), rng.integers(0, 3, 1000), qid=np.repeat(np.arange(100), 10)
        )
        cross = make_cross(queries, n_folds=2)
        key = FoldKey(0, seed % 2)
        held_out = HeldOutQueries.of(cross.plan, [key], cross.measure)
        variants = tuple(Linear(row) for row in np.eye(60))
        values = np.array(
            [cross.measure.prepare(held_out.queries).values(each(cross.plan.take_held_out(key).X)) for each in variants]
        )
        candidate = Candidate("noise", rw.Regression())
        cross.fits[candidate] = {key: FoldFit(variants, values, 1.0, ())}
        member = build_member(cross, "noise", [candidate], held_out)
        assert member.scorers == (variants[int(np.argmax(values.mean(axis=1)))],)  # the model is the best of all
        errors.append(member.values.mean() - values.mean())
        gains.append(values.mean(axis=1).max() - values.mean())
        assert np.unique(held_out.groups).tolist() == list(range(5))
    assert abs(np.mean(errors)) < 0.02 < np.mean(gains)


@pytest.mark.parametrize(("noise", "allowed"), [(0.3, 0.004), (0.6, 0.02), (1.5, 0.08)])
def test_the_estimate_of_the_mean_of_many_models(noise, allowed):
    """Models are the truth with independent noise: two show what the mean of ten gains at least.

    Losses fall as 1/n where models differ little. Where they differ much, ten gain more than is extrapolated.
    """
    rng = np.random.default_rng(0)
    queries = rw.make_queries(1500, n_docs=15, random_state=3)
    measure = rw.parse_measure("ndcg@10").for_training()
    plan = FoldPlan.draw(queries, 5, 2, rng)
    held_out = HeldOutQueries.of(plan, plan.list_keys(), measure)
    truth = queries.y + 0.5 * rng.normal(size=queries.n_docs)
    scores = truth + noise * rng.normal(size=(2, queries.n_docs))
    ten = truth + noise * rng.normal(size=(10, queries.n_docs)).mean(axis=0)
    member = FittedMember("noisy", (Linear(np.ones(queries.n_features)),) * 10, np.ones(10), scores, np.zeros(1500))
    problem = BlendProblem.of([member], held_out, rw.Serial())
    weights = BlendWeights(np.ones(1), dict.fromkeys(range(5), np.ones(1)))
    found = np.mean(problem.estimate_values(weights))
    expected, two = measure.mean(queries, ten), measure.mean(queries, scores.mean(axis=0))
    assert two < found < expected + 0.004
    assert found == pytest.approx(expected, abs=allowed)
    assert found - two > (expected - two) / 3


def test_intervals_cover_the_mean_of_all_queries():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(600):
        weight = rng.integers(1, 4, 40).astype(float)
        estimate = MeanEstimate.of(rng.beta(2, 3, 40), weight)
        covered.append(estimate.low <= 0.4 <= estimate.high)
    assert 0.92 <= np.mean(covered) <= 0.975
    values, weight = np.array([0.2, np.nan, 0.6, 0.4]), np.array([1.0, 5.0, 1.0, 0.0])
    assert MeanEstimate.of(values, weight).mean == pytest.approx(0.4)
    assert np.isnan(MeanEstimate.of(values[:1], weight[:1]).low)
    above = MeanEstimate(1.02, 0.97, 1.07)
    assert above.cut_to_range(rw.NDCG(10)) == (1.0, 0.97, 1.0)
    assert above.cut_to_range(rw.parse_measure("dcg@10")) == above
    assert np.isnan(MeanEstimate.of(values[:1], weight[:1]).cut_to_range(rw.NDCG(10)).high)
    equal = MeanEstimate.of(np.array([0.1, 0.5, 0.6]), np.ones(3))
    assert equal.high - equal.mean == pytest.approx(4.302652729911275 * np.std([0.1, 0.5, 0.6], ddof=1) / np.sqrt(3))


def test_the_estimate_is_near_the_measure_of_new_queries():
    queries = rw.make_queries(1200, n_docs=12, n_features=8, random_state=4)
    train, new = queries.take(range(150)), queries.take(range(150, 1200))
    blend = rw.Blend(rankers=[rw.Regression(), TREES()], n_repeats=2).fit(train)
    assert blend.estimate_.low < blend.score(new) < blend.estimate_.high
    assert blend.estimate_.high - blend.estimate_.low < 0.2


@pytest.mark.parametrize("weights", ["exact", "equal", "greedy", "stacking"])
def test_rules_of_weights(weights):
    blend = rw.Blend(rankers=[rw.Regression(), TREES()], n_folds=3, weights=weights).fit(QUERIES)
    assert sum(row["weight"] for row in blend.members_) == pytest.approx(1.0)
    assert len(blend.history_) == (1 if weights == "equal" else 2)
    if weights == "equal":
        assert [row["weight"] for row in blend.members_] == [0.5, 0.5]
        assert blend.shrinkage_ == np.inf
    assert blend.history_[-1]["loss"] == 1.0 - blend.history_[-1]["oof"]


def test_validation_queries_join_training_in_any_order():
    train, valid = QUERIES.take(range(25)), QUERIES.take(range(25, 40))
    backwards = valid.take(np.arange(15)[::-1])
    members = [rw.Regression(), TREES()]
    one, other = (rw.Blend(rankers=members, n_folds=3).fit(train, valid=each) for each in (valid, backwards))
    assert one.predict(QUERIES).tobytes() == other.predict(QUERIES).tobytes()
    alone = rw.Blend(rankers=members, n_folds=3).fit(train)
    assert alone.predict(QUERIES).tobytes() != one.predict(QUERIES).tobytes()


def test_a_query_in_both_sets_counts_once():
    queries = rw.make_queries(30, n_docs=8, n_features=4, random_state=2)
    members = [rw.MART(n_estimators=20, num_leaves=8, min_child_samples=2), rw.Regression()]
    one = rw.Blend(rankers=members, n_folds=3).fit(queries)
    for valid in (queries, queries.take([5, 3, 20])):
        other = rw.Blend(rankers=members, n_folds=3).fit(queries, valid=valid)
        assert other.estimate_ == one.estimate_
        assert other.predict(queries).tobytes() == one.predict(queries).tobytes()


def test_copies_of_a_query_are_in_one_fold():
    """Otherwise a fit would have seen the queries that it is measured on."""
    noise = np.random.default_rng(0).normal(size=(400, 6)), np.random.default_rng(1).integers(0, 3, 400)
    once = rw.Queries.from_arrays(*noise, qid=np.repeat(np.arange(40), 10))
    X, y = np.concatenate([once.X, once.X]), np.concatenate([once.y, once.y])
    qid = np.repeat(np.arange(80), 10)
    twice = rw.Queries.from_arrays(X, y, qid=qid, weight=np.linspace(1.0, 1.2, 80))
    plan = FoldPlan.draw(twice.grouped(), 5, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(plan.folds[:, :40], plan.folds[:, 40:])
    assert [np.bincount(row).tolist() for row in plan.folds] == [[16] * 5] * 2
    members = [rw.MART(num_leaves=8, n_estimators=20), rw.Regression()]
    alone, doubled = (rw.Blend(rankers=members, random_state=0).fit(each).estimate_ for each in (once, twice))
    assert abs(alone.mean - doubled.mean) < 0.1


def test_selection_looks_at_queries_that_no_model_has_seen():
    train, valid = (rw.make_queries(30, random_state=seed) for seed in (0, 51))
    greedy = rw.MART(n_estimators=60, num_leaves=31, min_child_samples=2)
    blend = rw.Blend(rankers=[("mart", greedy), rw.SingleFeature()], weights="equal", n_folds=2)
    chosen = rw.select(blend, {"mart": [greedy, rw.Regression()]}, train, valid)
    assert isinstance(chosen.get_params()["mart"], rw.Regression)
    assert [row["value"] for row in chosen.selection_][1] == chosen.estimate_.mean
    assert chosen.score(valid) > chosen.estimate_.mean  # the members have seen these
    with pytest.raises(rw.InputError, match=r"chosen by its own estimate of ndcg@10; leave measure='map' out"):
        rw.select(blend, {"n_folds": [2]}, train, valid, measure="map")


def test_stacking_looks_at_all_documents_whatever_the_cut_off():
    queries = rw.make_queries(40, n_docs=15, random_state=3)
    members = [rw.Regression(), rw.ListNet(), rw.SingleFeature(feature=0)]
    found = [
        {
            row["member"]: row["weight"]
            for row in rw.Blend(rankers=members, measure=name, weights="stacking").fit(queries).members_
        }
        for name in ("ndcg@1", "ndcg")
    ]
    assert found[0] == pytest.approx(found[1])


class TestTimeLimit:
    def test_it_ends_the_search_of_weights(self):
        """Of a measure in Python, whose line searches take long."""
        rw.make_measure(lambda grades: float((grades[:3] > 0).mean()), name="first_three_of_blend")
        queries = rw.make_queries(60, n_docs=30, n_features=8, random_state=0)
        members = [(f"m{i}", rw.SingleFeature(feature=i)) for i in range(6)]
        with pytest.warns(ConvergenceWarning, match="max_seconds=1"):
            blend = rw.Blend(rankers=members, measure="first_three_of_blend", max_seconds=1.0).fit(queries)
        assert sum(row["weight"] for row in blend.members_) == pytest.approx(1.0)

    def test_it_ends_a_line_search_in_the_middle(self):
        seen, asked = [], []

        def count(grades):
            seen.append(len(grades))
            return float(grades[0] > 0)

        measure = rw.make_measure(count, name="counted_in_a_line_search")
        landscape = Landscape.of(rw.make_queries(60, n_docs=20, n_features=2, random_state=0), measure, rw.Serial())
        point = landscape.evaluate(np.array([1.0, 0.0]))
        seen.clear()
        with pytest.raises(SearchStoppedError):  # after a few of sixty queries
            search_line(landscape, point, 1, stop=lambda: bool(asked.append(1)) or len(asked) > 5)
        n_seen = len(seen)
        assert ClimbRules(stop=lambda: True).search(landscape, point, 1) is None
        assert len(seen) == n_seen
        search_line(landscape, point, 1)
        assert len(seen) - n_seen > 8 * n_seen

    def test_members_that_were_left_out_are_named(self, monkeypatch):
        monkeypatch.setattr(blend_module, "Deadline", lambda seconds: CountingDeadline(4))
        members = [rw.Regression(), TREES(), rw.RankBoost(n_estimators=3)]
        with pytest.warns(ConvergenceWarning, match=r"max_seconds=9; raise max_seconds, .* left out: mart, rankboost"):
            blend = rw.Blend(rankers=members, n_folds=3, max_seconds=9, backend=rw.Serial()).fit(QUERIES)
        assert [row["member"] for row in blend.members_] == ["regression"]

    def test_weights_are_searched_after_the_limit_ended_the_fits(self, monkeypatch):
        """Fits get a part of the time, so that some is left for the weights."""
        members = [rw.Regression(), TREES(), rw.RankBoost(n_estimators=3)]
        two = rw.Blend(rankers=members[:2], n_folds=3).fit(QUERIES)
        monkeypatch.setattr(Deadline, "shorten", lambda self, share: CountingDeadline(6))
        with pytest.warns(ConvergenceWarning, match="max_seconds=1000; raise max_seconds, .* left out: rankboost"):
            cut = rw.Blend(rankers=members, n_folds=3, max_seconds=1000, backend=rw.Serial()).fit(QUERIES)
        assert len(cut.history_) == 2
        assert cut.members_ == two.members_

    def test_fits_that_end_in_time_are_no_reason_to_warn(self, monkeypatch):
        fitting, fits = Deadline(1000.0), []

        def fit_until_the_time_is_over(*args):
            fits.append(fit_candidate(*args))
            if len(fits) == 4:
                fitting.end = 0.0
            return fits[-1]

        monkeypatch.setattr(cross_fitting, "fit_candidate", fit_until_the_time_is_over)
        monkeypatch.setattr(Deadline, "shorten", lambda self, share: fitting)
        members = [rw.Regression(), TREES()]
        blend = rw.Blend(rankers=members, n_folds=2, max_seconds=1000, backend=rw.Serial()).fit(QUERIES)
        assert (len(fits), blend.fit_warnings_) == (4, [])

    def test_equal_weights_take_no_time(self):
        members = [TREES(), rw.SingleFeature(feature=0)]
        with pytest.warns(ConvergenceWarning, match="max_seconds=0"):
            blend = rw.Blend(rankers=members, weights="equal", n_folds=2, max_seconds=0).fit(QUERIES)
        assert {row["weight"] for row in blend.members_} == {1.0 / len(blend.members_)}

    def test_no_time_at_all_still_gives_a_model(self):
        for backend in (rw.Serial(), rw.Threads(2)):
            with pytest.warns(ConvergenceWarning, match="max_seconds=0"):
                blend = rw.Blend(rankers=[TREES(), rw.Regression()], n_folds=3, max_seconds=0, backend=backend).fit(
                    QUERIES
                )
            assert len(blend.history_) == 1
            assert np.isfinite(blend.predict(QUERIES)).all()


class CountingDeadline(Deadline):
    """A deadline that passes after some questions."""

    def __init__(self, n):
        super().__init__(9)
        self.left = n

    def __call__(self):
        self.left -= 1
        self.has_passed = self.has_passed or self.left < 0
        return self.has_passed

    def remaining(self):
        return 0.0 if self.has_passed else 9.0

    def shorten(self, share):
        return self


class TestJoinedQueries:
    def test_weights_ids_and_unretrieved_documents(self):
        one = rw.Queries.from_arrays(
            [[1.0], [2.0], [3.0]], [0, 1, 2], ["b", "a", "b"], docid=["x", "y", "z"], weight=[2.0, 3.0]
        )
        other = rw.Queries.from_arrays([[4.0]], [1], ["b"], docid=["w"])
        other = other.replace(unretrieved=Unretrieved(np.array([2.0]), np.array([0, 1])))
        joined = join_queries([one, other])
        assert joined.X.ravel().tolist() == [1.0, 3.0, 2.0, 4.0]
        assert joined.y.tolist() == [0, 2, 1, 1]
        assert joined.indptr.tolist() == [0, 2, 3, 4]
        assert joined.docid.tolist() == ["x", "z", "y", "w"]
        assert joined.weight.tolist() == [2.0, 3.0, 1.0]
        assert joined.unretrieved.y.tolist() == [2.0]
        assert joined.unretrieved.indptr.tolist() == [0, 0, 0, 1]
        assert join_queries([one]).row_qid.tolist() == ["b", "b", "a"]

    def test_what_only_one_part_has(self):
        one = rw.Queries.from_arrays([[1.0]], [0], [1], docid=["x"])
        weighted = one.replace(doc_weight=np.array([2.0]), docid=None)
        joined = join_queries([one, weighted])
        assert joined.docid is None
        assert joined.doc_weight.tolist() == [1.0, 2.0]
        assert joined.weight is None
        assert joined.unretrieved is None

    def test_a_measure_of_the_whole_is_that_of_the_parts(self):
        parts = [QUERIES.take(range(10)), QUERIES.take(range(10, 40))]
        scores = np.random.default_rng(0).random(QUERIES.n_docs)
        measure = rw.parse_measure("map")
        assert measure.values(join_queries(parts), scores).tolist() == measure.values(QUERIES, scores).tolist()


def test_keys_of_folds():
    plan = FoldPlan.draw(QUERIES, 2, 2, np.random.default_rng(0))
    assert plan.list_keys() == [FoldKey(0, 0), FoldKey(0, 1), FoldKey(1, 0), FoldKey(1, 1)]
    assert plan.list_keys(1) == [FoldKey(0, 0), FoldKey(0, 1)]
