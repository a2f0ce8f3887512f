"""PermuRank against figure 7 by listing all rankings; its working sets, rounds and measures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conftest import data_folder
from tests.reference import bounds as reference
from tests.reference.permurank import permurank
from tests.warned import may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.data.row_hashes import sort_by_content
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.rankers.bounds.working_sets import WorkingSets
from rankwright.scorers.linear import StandardScaling


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(30, n_docs=15, n_features=8, random_state=0)


def short_queries(seed, m=12):
    """Lists of 4 or 5 documents with weights, and one of a single document; no features agree, so that no scores tie."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 6, m)
    sizes[0] = 1
    y = rng.integers(0, 3, sizes.sum())
    X = rng.normal(size=(len(y), 4)) + 0.1 * y[:, None]
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(m), sizes), weight=rng.uniform(0.5, 2.0, m))


def compare(queries, rounds, name, least=2, weights=None, **options):
    """Round by round: loss, objective, sizes, measure; and the weights of the last round.

    After a round whose weights are 0 but for rounding, rounding chooses the rankings: it is the last to be compared.
    """
    queries = sort_by_content(queries, rw.Serial())  # as the ranker sees them: of equal choices the first counts
    factor = StandardScaling.fit(queries).factor
    twin = list(permurank(queries, name, rounds, factor, start=weights, **options))
    if weights is not None:
        options["start"] = "adarank"
    options = {"perfect": "measure", **options}  # as in the paper
    names = {"phi": "ranking_score", "perfect": "perfect_rankings"}
    options = {names.get(option, option): value for option, value in options.items()}
    fitted = rw.PermuRank(measure=name, max_iter=rounds, tol=1e-9, **options).fit(queries)
    zero = [np.abs(each.w).max() < 1e-3 for each in twin]
    alike = zero.index(True) + 1 if any(zero) else len(twin)
    assert alike >= least
    assert any(zero) or len(fitted.history_) == len(twin)
    for record, expected in zip(fitted.history_[:alike], twin[:alike], strict=True):
        assert record["objective"] == pytest.approx(expected.objective, rel=1e-5)
        assert record["loss"] == pytest.approx(expected.loss, rel=1e-3, abs=1e-6)
        assert record["perfect"] == pytest.approx(np.mean([len(B) for B in expected.perfect]))
        assert record["imperfect"] == pytest.approx(np.mean([len(C) for C in expected.imperfect]))
    if not any(zero):
        scores = [queries.X.astype(float) @ (each.w * factor) for each in twin]
        values = np.array([rw.parse_measure(name).for_training().mean(queries, each) for each in scores])
        assert [record["train"] for record in fitted.history_] == pytest.approx(values, abs=1e-9)
        assert fitted.coef_ == pytest.approx(twin[-1].w * factor, rel=1e-2, abs=1e-4)
    return fitted, twin


class TestFigure7:
    """Sets of permutations, every one listed, and each round's problem solved by SciPy."""

    @may_not_converge
    @pytest.mark.parametrize(("seed", "least"), [(0, 2), (2, 3), (3, 4)])
    @pytest.mark.parametrize("name", ["map", "ndcg", "ndcg@3"])
    def test_round_by_round(self, name, seed, least):
        compare(short_queries(seed), 8, name, least)

    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_strengths(self, C):
        compare(short_queries(3), 6, "map", C=C)

    @may_not_converge
    @pytest.mark.parametrize("name", ["map", "ndcg"])
    def test_all_pairs(self, name):
        """Under eq. (2) perfect rankings differ: their set grows, and a pair counts 1/|B|."""
        fitted, _ = compare(short_queries(1), 5, name, phi="ranks")
        assert fitted.history_[-1]["perfect"] > 1

    @may_not_converge
    def test_perfect_by_grade(self):
        """Under a cut-off that is another set of perfect rankings, and one of them is enough."""
        queries = short_queries(2)
        by_grade, _ = compare(queries, 6, "ndcg@3", perfect="grades")
        by_measure, _ = compare(queries, 6, "ndcg@3", perfect="measure")
        assert {record["perfect"] for record in by_grade.history_} == {1.0}
        assert by_measure.history_[-1]["perfect"] > 1

    @may_not_converge
    @pytest.mark.parametrize("name", ["map", "ndcg"])
    def test_rankings_of_adarank_first(self, name):
        queries = short_queries(3)
        adarank = rw.AdaRank(measure=name).fit(queries)
        fitted, _ = compare(queries, 4, name, weights=adarank.coef_ / StandardScaling.fit(queries).factor)
        zero = rw.PermuRank(measure=name, max_iter=4).fit(queries)
        assert fitted.history_[0]["objective"] != pytest.approx(zero.history_[0]["objective"], rel=1e-3)

    @pytest.mark.parametrize("seed", range(3))
    def test_it_stops_when_nothing_is_new(self, seed):
        """Long before the last round allowed, with working sets that its own weights add nothing to."""
        queries = short_queries(seed)
        fitted, _ = compare(queries, 60, "map")
        assert len(fitted.history_) < 60
        more = rw.PermuRank(measure="map", max_iter=100, tol=1e-9).fit(queries)
        assert more.history_ == fitted.history_


class TestWorkingSets:
    @pytest.mark.parametrize("phi", ["pairs", "ranks"])
    @pytest.mark.parametrize("name", ["map", "ndcg@3", "err@3"])
    def test_no_ranking_twice(self, queries, name, phi):
        """Under its Phi: rankings that differ only inside a class are one."""
        factor = StandardScaling.fit(queries).factor
        sets = WorkingSets(queries, rw.parse_measure(name), phi, "measure", factor, rw.Serial())
        rng, weights = np.random.default_rng(0), [np.zeros(8)]
        assert sets.grow(weights[0])
        assert not sets.grow(weights[0])
        assert not sets.grow(2.0 * weights[0])
        for _ in range(5):
            weights.append(rng.normal(size=8))
            sets.grow(weights[-1])
            before = sets.count_rankings()
            assert not sets.grow(weights[-1])
            assert not sets.grow(3.0 * weights[-1])  # the same order
            assert sets.count_rankings() == before
        for each in (*sets.perfect, *sets.imperfect):
            rows = np.array(each.features).round(9)
            assert len(each.keys) == len(each.features) == len(each.lost)
            assert len(np.unique(rows, axis=0)) <= len(rows) <= len(weights)
        assert max(len(c.lost) for c in sets.imperfect) == len(weights)

    def test_features_are_those_of_the_rankings(self, queries):
        """F of a working set's ranking is w . Phi, and what it loses is 1 - AP of the ranking by score."""
        factor = StandardScaling.fit(queries).factor
        sets = WorkingSets(queries, rw.parse_measure("map"), "pairs", "measure", factor, rw.Serial())
        w = np.random.default_rng(0).normal(size=8)
        sets.grow(w)
        scores = compute_linear_scores(queries.X, w * factor, 0.0)
        checked = 0
        for q, B, C in zip(sets.live, sets.perfect, sets.imperfect, strict=True):
            rows = list(queries)[q]
            y, s = queries.y[rows], scores[rows]
            x = s[:, None] - s[None, :]
            pairs = (y[:, None] >= 1) & (y[None, :] < 1)
            assert B.features[0] @ w == pytest.approx(x[pairs].mean())
            assert B.lost[0] == pytest.approx(0)
            ap = reference.MEASURES["map"](y[np.argsort(-s)].tolist())
            if ap < 1:  # otherwise it is not the order of the scores
                assert C.features[0] @ w == pytest.approx(np.abs(x[pairs]).mean())
                assert C.lost[0] == pytest.approx(1 - ap)
                checked += 1
        assert checked > 10

    def test_the_problem_is_eq_7_of_the_sets(self, queries):
        """Its loss times its total is the sum over queries of 1/|B| sum (1 - E)[1 - (F(b) - F(c))]_+."""
        factor = StandardScaling.fit(queries).factor
        sets = WorkingSets(queries, rw.parse_measure("ndcg@3"), "pairs", "measure", factor, rw.Serial())
        rng = np.random.default_rng(1)
        for _ in range(4):
            sets.grow(rng.normal(size=8))
        w = rng.normal(size=8)
        total = 0.0
        for B, C in zip(sets.perfect, sets.imperfect, strict=True):
            x = (np.array(B.features) @ w)[:, None] - (np.array(C.features) @ w)[None, :]
            total += (np.array(C.lost) * np.maximum(1 - x, 0)).sum() / len(B.lost)
        problem = sets.make_loss()
        assert isinstance(problem, PairLoss)
        assert problem.evaluate(w, 1e-9).loss * problem.total == pytest.approx(total)
        assert max(len(B.lost) for B in sets.perfect) > 1

    def test_queries_without_an_imperfect_ranking_are_left_out(self):
        X = np.random.default_rng(0).normal(size=(9, 2))
        y = [0, 0, 1, 1, 1, 0, 2, 1, 1]
        queries = rw.Queries.from_arrays(X, y, qid=[0, 0, 1, 2, 2, 3, 3, 4, 4])
        assert len(WorkingSets(queries, rw.parse_measure("map"), "pairs", "measure", np.ones(2), rw.Serial()).live) == 1
        assert (
            len(WorkingSets(queries, rw.parse_measure("ndcg"), "pairs", "measure", np.ones(2), rw.Serial()).live) == 1
        )
        fitted = rw.PermuRank(measure="map", scale=None).fit(queries)
        only = rw.PermuRank(measure="map", scale=None, C=0.2).fit(queries.take([3]))  # a fifth of the mean
        assert fitted.coef_ == pytest.approx(only.coef_, rel=1e-3)
        assert fitted.history_[0]["imperfect"] == 1.0


class TestRounds:
    def test_the_history(self, queries):
        train, valid = queries.take(range(20)), queries.take(range(20, 30))
        ranker = rw.PermuRank(measure="map", max_iter=6).fit(train, valid=valid)
        rows = ranker.history_
        assert [row["round"] for row in rows] == list(range(1, len(rows) + 1))
        assert set(rows[0]) == {"round", "loss", "objective", "gap", "perfect", "imperfect", "train", "valid"}
        assert all(0 <= row["gap"] <= 1e-4 * row["objective"] for row in rows)
        assert ranker.score(valid) == pytest.approx(max(row["valid"] for row in rows), abs=1e-12)
        json.dumps(rows, allow_nan=False)

    @pytest.mark.parametrize("name", ["map", "map(rel=2)", "ndcg"])
    def test_one_perfect_ranking_is_enough_under_the_pair_phi(self, queries, name):
        rows = rw.PermuRank(measure=name, max_iter=8).fit(queries).history_
        assert {row["perfect"] for row in rows} == {1.0}
        sizes = [row["imperfect"] for row in rows]
        assert sizes[0] == 1.0
        assert ((np.diff(sizes) > 0) & (np.diff(sizes) <= 1)).all()

    def test_the_objective_grows_with_the_sets(self, queries):
        """With |B| = 1 every round's problem has all terms of the one before, and more."""
        rows = rw.PermuRank(measure="map", max_iter=10, tol=1e-7).fit(queries).history_
        assert (np.diff([row["objective"] for row in rows]) >= -1e-6).all()

    @may_not_converge
    def test_more_rounds_begin_alike(self, queries):
        few, many = (rw.PermuRank(measure="ndcg@5", max_iter=n).fit(queries).history_ for n in (3, 6))
        assert many[:3] == [{name: row[name] for name in row if name != "kept"} for row in few]

    @may_not_converge
    def test_the_first_rankings_of_adarank(self, queries):
        """Round 1 prefers the perfect rankings to those that AdaRank's weights make."""
        factor = StandardScaling.fit(queries).factor
        weights = rw.AdaRank(measure="map").fit(queries).coef_
        w = np.divide(weights, factor, out=np.zeros(8), where=factor > 0)
        sets = WorkingSets(queries, rw.parse_measure("map"), "pairs", "measure", factor, rw.Serial())
        sets.grow(w)
        first = rw.PermuRank(measure="map", start="adarank", max_iter=1, tol=1e-8).fit(queries)
        problem = sets.make_loss()
        v = first.coef_ / factor.clip(1e-12)
        expected = 0.5 * v @ v + problem.evaluate(v, 1e-9).loss * problem.total / sets.total
        assert first.history_[0]["objective"] == pytest.approx(expected, rel=1e-6)
        assert first.history_[0]["loss"] != pytest.approx(
            rw.PermuRank(measure="map", max_iter=1).fit(queries).history_[0]["loss"], rel=1e-3
        )


class TestMeasures:
    @may_not_converge
    @pytest.mark.parametrize("name", ["err@5", "p@5", "mrr", "wta", "recall@5", "rbp", "ndcg@3(gain=linear)", "ap@5"])
    def test_any_measure_trains(self, queries, name):
        """And ends above what the worst and a random order reach."""
        ranker = rw.PermuRank(measure=name, max_iter=8).fit(queries)
        measure = rw.parse_measure(name)
        scores = np.random.default_rng(0).normal(size=(20, queries.n_docs))
        assert ranker.score(queries) > np.mean([measure.mean(queries, each) for each in scores])
        assert ranker.score(queries) > measure.mean(queries, np.zeros(queries.n_docs))
        assert ranker.history_[-1]["train"] == pytest.approx(ranker.score(queries), abs=1e-12)

    def test_a_users_measure_trains_as_the_built_in_one(self, queries):
        own = rw.make_measure(lambda grades: reference.MEASURES["ndcg"](grades.tolist()), name="ndcg_of_permurank")
        few = queries.take(range(12))
        found, expected = (rw.PermuRank(measure=m, max_iter=4).fit(few) for m in (own, "ndcg"))
        assert found.coef_ == pytest.approx(expected.coef_, rel=1e-6)
        for name in ("loss", "perfect", "imperfect", "train"):
            assert [r[name] for r in found.history_] == pytest.approx([r[name] for r in expected.history_])

    def test_letors_discount_is_replaced(self, queries):
        plain, letor = (rw.PermuRank(measure=m, max_iter=4).fit(queries) for m in ("ndcg@5", "ndcg@5(discount=letor)"))
        assert [row["loss"] for row in letor.history_] == [row["loss"] for row in plain.history_]
        assert [row["train"] for row in letor.history_] != [row["train"] for row in plain.history_]

    def test_unbounded_measures_are_refused(self, queries):
        with pytest.raises(rw.InputError, match="values from 0 to 1; dcg@10 is not one"):
            rw.PermuRank(measure="dcg@10").fit(queries)


class TestDegenerate:
    @may_learn_nothing
    @pytest.mark.parametrize("start", ["zero", "adarank"])
    def test_without_a_query_that_counts(self, start):
        X = np.random.default_rng(0).normal(size=(6, 3))
        for y, qid in ((np.ones(6), np.zeros(6)), (np.arange(6), np.arange(6)), (np.zeros(6), [0, 0, 0, 1, 1, 1])):
            ranker = rw.PermuRank(measure="map", start=start).fit(X, y, qid=qid)
            assert ranker.coef_.tolist() == [0.0, 0.0, 0.0]
            assert len(ranker.history_) == 1

    @may_learn_nothing
    def test_no_weight_of_the_loss(self, queries):
        ranker = rw.PermuRank(measure="map", C=0.0).fit(queries)
        assert ranker.coef_.tolist() == [0.0] * 8
        assert len(ranker.history_) == 1  # nothing is new after the first rankings

    @pytest.mark.parametrize("scale", ["standard", None, "query"])
    def test_constant_features_get_no_weight(self, scale):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 30)
        X = np.column_stack([y + rng.normal(size=30), np.full(30, 7.3)])
        ranker = rw.PermuRank(measure="map", scale=scale).fit(X, y, qid=np.repeat(np.arange(3), 10))
        assert ranker.coef_[1] == 0.0
        assert ranker.coef_[0] > 0.0

    def test_bad_parameters(self, queries):
        cases = {
            "C": -1.0,
            "tol": "x",
            "max_iter": 0,
            "ranking_score": "all",
            "perfect_rankings": "best",
            "start": "x",
            "scale": "max",
        }
        for name, value in cases.items():
            with pytest.raises(rw.InputError, match=f"{name}="):
                rw.PermuRank(**{name: value}).fit(queries)


@may_not_converge
@pytest.mark.parametrize("measure", ["map", "ndcg@10"])
def test_bits_do_not_depend_on_threads(measure):
    queries = rw.make_queries(250, n_docs=50, n_features=6, random_state=1)
    assert len(rw.Serial().scatter(queries)) > 1
    found = [
        rw.PermuRank(measure=measure, max_iter=3, backend=backend).fit(queries)
        for backend in (rw.Serial(), rw.Threads(3))
    ]
    assert found[0].coef_.tobytes() == found[1].coef_.tobytes()
    assert found[0].history_ == found[1].history_


def test_real_data():
    """OHSUMED's first fold is a matter of seconds."""
    fold = rw.read_folds(data_folder("OHSUMED"))[0]
    ranker = rw.PermuRank(measure="map(dialect=letor3)", max_iter=10).fit(fold.train, valid=fold.valid)
    assert [record["perfect"] for record in ranker.history_] == [1.0] * 10
    assert ranker.score(fold.test) > 0.25
