"""BayesRank: what it minimises, that it does, and figure 8 of the paper."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.conftest import random_queries
from tests.reference import plackett_luce
from tests.warned import may_be_ineffective, may_learn_nothing

import rankwright as rw
from rankwright import objectives as on
from rankwright.rankers.smooth.bayesrank import USUAL


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(60, n_docs=20, n_features=8, random_state=0)


@pytest.fixture(scope="module")
def small():
    """Lists short enough to try all their rankings; some of one document, some with nothing relevant."""
    return random_queries(np.random.default_rng(0), m=10, most=6, d=3)


def bayesrank(n_epochs, **options):
    """Whatever the defaults are."""
    usual = {"optimiser": "adaptive", "learning_rate": 1.0, "activation": "tanh", "n_epochs": n_epochs}
    if options.get("hidden", (10,)) is None:
        del usual["activation"]  # which a linear scorer does not have
    training = {**usual, **options.pop("training", {})}
    return rw.BayesRank(**{"hidden": (10,), "k": 2, **options}, training=training)


def kept(ranker):
    [row] = [row for row in ranker.history_ if row.get("kept")]
    return row


def by_query(queries, values):
    return [values[rows].tolist() for rows in queries]


class TestWhatItMinimises:
    @pytest.mark.parametrize("k", [1, 2])
    @pytest.mark.parametrize("hidden", [None, (4,)])
    def test_it_is_equations_7_and_10_with_pow2(self, small, k, hidden):
        """To eq. (7) all rankings of a query with nothing relevant are perfect: empty=1."""
        ranker = bayesrank(12, k=k, gain="pow2", hidden=hidden, measure="ndcg@10(empty=1)").fit(small)
        risk = plackett_luce.R(k, by_query(small, small.y), by_query(small, ranker.predict(small)))
        assert kept(ranker)["expected"] == pytest.approx(-risk, rel=1e-5)
        assert kept(ranker)["loss"] == pytest.approx(len(small) * (1.0 + risk), rel=1e-4)

    @pytest.mark.parametrize(("gain", "name"), [(None, "ndcg@2"), ("exp", "ndcg@2"), ("linear", "ndcg@2(gain=linear)")])
    def test_gains(self, small, gain, name):
        ranker = bayesrank(12, gain=gain, hidden=None).fit(small)
        objective = on.ExpectedMeasure(name).prepare(small)(ranker.predict(small))
        assert kept(ranker)["loss"] == pytest.approx(objective.loss, rel=1e-5)

    @pytest.mark.parametrize("measure", ["ndcg@10", "map", "err", "mrr", "rbp", "dcg@10"])
    @pytest.mark.parametrize("k", [1, 2])
    def test_any_measure_cut_at_k(self, small, measure, k):
        ranker = bayesrank(6, measure=measure, k=k, hidden=None).fit(small)
        objective = on.ExpectedMeasure(rw.parse_measure(measure).with_cut_off(k)).prepare(small)(ranker.predict(small))
        assert kept(ranker)["loss"] == pytest.approx(objective.loss, rel=1e-5)
        assert kept(ranker)["expected"] == pytest.approx(1.0 - objective.loss / len(small), rel=1e-5)

    def test_weights_of_queries_and_queries_that_do_not_count(self, small):
        weight = np.arange(len(small)) + 1.0
        weighted = rw.Queries(small.X, small.y, small.indptr, small.qid, weight=weight)
        ranker = bayesrank(6, measure="ndcg@10(empty=skip)", hidden=None).fit(weighted)
        counted = np.array([max(grades) > 0 for grades in by_query(small, small.y)])
        assert not counted.all()
        objective = on.ExpectedMeasure("ndcg@2(empty=skip)").prepare(weighted)(ranker.predict(weighted))
        assert kept(ranker)["expected"] == pytest.approx(1.0 - objective.loss / weight[counted].sum(), rel=1e-5)

    def test_samples_estimate_it(self, queries):
        """Steps that go nowhere: epochs are estimates of one number, in batches or not, of a network or not."""
        for hidden in (None, (3,)):
            ranker = bayesrank(40, k=10, hidden=hidden, training={"optimiser": "adam", "learning_rate": 1e-12}).fit(
                queries
            )
            losses = [row["loss"] for row in ranker.history_]
            scores = ranker.predict(queries)
            rng = np.random.default_rng(0)
            bound = on.ExpectedMeasure("ndcg@10", 2000).prepare(queries)
            assert len(set(losses)) == 40
            error = np.std(losses) / 40**0.5
            assert np.mean(losses) == pytest.approx(bound(scores, rng).loss, abs=4 * error + 0.02)

    def test_the_penalty(self, queries):
        plain, held = (bayesrank(60, hidden=None, alpha=alpha).fit(queries) for alpha in (0.0, 10.0))
        deviation = queries.X.std(axis=0)
        w = held.coef_ * deviation
        assert kept(held)["objective"] == pytest.approx(kept(held)["loss"] + 10.0 * w @ w, rel=1e-4)
        assert np.linalg.norm(w) < 0.5 * np.linalg.norm(plain.coef_ * deviation)


class TestDescent:
    @pytest.mark.parametrize("hidden", [None, (5,), (4, 3)])
    @pytest.mark.parametrize("k", [1, 2])
    @pytest.mark.parametrize("alpha", [0.0, 0.5])
    def test_exact_batch_descent_never_climbs(self, queries, hidden, k, alpha):
        rows = bayesrank(50, hidden=hidden, k=k, alpha=alpha).fit(queries).history_
        assert all(after["objective"] <= before["objective"] for before, after in pairwise(rows))
        assert rows[-1]["objective"] < 0.8 * rows[0]["objective"]

    @pytest.mark.parametrize("hidden", [None, (10,)])
    @pytest.mark.parametrize("k", [1, 2, 10])
    @pytest.mark.parametrize("training", [{}, {"optimiser": "adam", "learning_rate": 0.03}], ids=["adaptive", "adam"])
    def test_it_learns(self, queries, hidden, k, training):
        ranker = bayesrank(40, hidden=hidden, k=k, training=training).fit(queries)
        rows = ranker.history_
        assert rows[-1]["expected"] > rows[0]["expected"] + 0.15
        assert ranker.score(queries) > 0.54  # at random it is 0.27
        assert set(rows[0]) - {"kept"} == {"round", "loss", "objective", "expected", "misordered", "train"}

    @pytest.mark.parametrize("k", [2, 10])
    @pytest.mark.parametrize(
        "training", [{"learning_rate": 0.3}, {"optimiser": "adam", "learning_rate": 0.003}], ids=["adaptive", "adam"]
    )
    def test_figure_8(self, queries, k, training):
        """The expected measure rises, and fewer and fewer pairs are in the wrong order."""
        rows = bayesrank(40, k=k, training=training).fit(queries).history_
        expected, misordered = ([row[name] for row in rows] for name in ("expected", "misordered"))
        assert expected[-1] > 1.5 * expected[0]
        assert misordered[-1] < 0.3 * misordered[0]
        assert spearmanr(expected, misordered).statistic < -0.85

    def test_pairs_in_the_wrong_order(self, small):
        ranker = bayesrank(8, hidden=None).fit(small)
        pairs = zip(by_query(small, ranker.predict(small)), by_query(small, small.y), strict=True)
        shares = [plackett_luce.misordered(*pair) for pair in pairs]
        expected = np.mean([share for share in shares if share is not None])
        assert kept(ranker)["misordered"] == pytest.approx(expected, abs=1e-12)

    @may_learn_nothing
    def test_where_all_documents_are_of_one_grade(self):
        queries = rw.Queries.from_arrays(np.random.default_rng(0).normal(size=(6, 2)), np.ones(6), [0, 0, 0, 1, 1, 1])
        rows = bayesrank(3, hidden=None).fit(queries).history_
        assert rows[-1]["expected"] == pytest.approx(1.0)

    def test_more_ranks_than_documents(self, small):
        for k in (50, None):
            ranker = bayesrank(3, hidden=None, k=k, measure="map").fit(small)
            assert np.isfinite(ranker.predict(small)).all()


class TestParameters:
    def test_by_default_it_is_algorithm_1(self, queries):
        ranker = rw.BayesRank(training={"n_epochs": 3}).fit(queries)
        assert USUAL.optimiser == "adaptive"
        assert ranker.scorer_.activation == USUAL.activation
        widths = (8, *ranker.hidden, 1)
        assert [np.shape(weight) for weight in ranker.scorer_.weights] == list(pairwise(widths))
        rates = [{"learning_rate": USUAL.learning_rate}, {"optimiser": "adam"}]
        like, unlike = (rw.BayesRank(training={"n_epochs": 3, **other}).fit(queries) for other in rates)
        assert like.history_ == ranker.history_ != unlike.history_

    @may_be_ineffective
    def test_without_hidden_layers_it_is_linear(self, queries):
        fits = [bayesrank(4, hidden=hidden).fit(queries) for hidden in (None, (), [])]
        assert {fit.scorer_.kind for fit in fits} == {"linear"}
        assert len({fit.predict(queries).tobytes() for fit in fits}) == 1
        with pytest.raises(AttributeError, match="a network model has no coef_"):
            bayesrank(1).fit(queries).coef_  # noqa: B018

    @pytest.mark.parametrize("k", [2, 5])
    def test_seeds(self, queries, k):
        """A linear scorer has no first weights to draw: only samples depend on the seed."""
        fits = {
            (hidden, seed): bayesrank(3, hidden=hidden, k=k, random_state=seed).fit(queries).predict(queries).tobytes()
            for hidden in (None, (3,))
            for seed in (0, 1)
        }
        assert fits[(3,), 0] != fits[(3,), 1]
        assert (fits[None, 0] == fits[None, 1]) == (k == 2)

    @pytest.mark.parametrize("scale", ["query", None])
    def test_scales(self, queries, scale):
        shifted = queries.with_X(queries.X + np.float32(100.0))
        plain, moved = (bayesrank(5, hidden=None, scale=scale).fit(data) for data in (queries, shifted))
        assert moved.score(shifted) == pytest.approx(plain.score(queries), abs=0.01)

    def test_a_users_measure(self):
        small = rw.make_queries(10, n_docs=8, n_features=4, random_state=0)
        first = rw.make_measure(lambda grades: float(grades[0] > 0), name="first")
        ranker = bayesrank(20, measure=first, k=None, hidden=None, n_samples=16).fit(small)
        exact = on.ExpectedMeasure("p@1").prepare(small)(ranker.predict(small))
        assert kept(ranker)["expected"] == pytest.approx(1.0 - exact.loss / len(small), abs=0.15)
        assert ranker.history_[-1]["expected"] > ranker.history_[0]["expected"]

    @may_be_ineffective
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"k": 0}, "k=0; expected a whole number of at least 1"),
            ({"k": 2.0}, "k=2.0"),
            ({"gain": "exponential"}, "gain='exponential'; expected None or 'exp'"),
            ({"gain": "pow2", "measure": "map"}, "only NDCG and DCG have gains to choose"),
            ({"gain": "exp", "measure": rw.make_measure(lambda grades: 0.5, name="own")}, "only NDCG and DCG"),
            ({"n_samples": 0}, "n_samples=0"),
            ({"alpha": -1.0}, "alpha=-1.0"),
            ({"hidden": "10"}, "hidden='10'"),
            ({"scale": "minmax"}, "scale='minmax'"),
            ({"random_state": "x"}, "random_state='x'"),
            ({"training": {"learning_rates": 1}}, "did you mean learning_rate"),
        ],
    )
    @pytest.mark.parametrize("hidden", [None, (3,)])
    def test_errors(self, small, hidden, options, message):
        with pytest.raises(rw.InputError, match=message):
            rw.BayesRank(**{"hidden": hidden, **options}).fit(small)


class TestLinearRankerOnEstimates:
    def test_it_learns_what_bayesrank_does(self, queries):
        """An objective that is an estimate leaves line searches nothing to go by: it descends in epochs."""
        ranker = rw.LinearRanker(objective="expected", alpha=1e-3).fit(queries)
        exact = rw.LinearRanker(objective=on.ExpectedMeasure("ndcg@2"), alpha=1e-3).fit(queries)
        same = bayesrank(200, hidden=None, k=None).fit(queries)
        assert ranker.score(queries) == pytest.approx(same.score(queries), abs=0.02)
        assert ranker.score(queries) > exact.score(queries) - 0.01
        assert kept(ranker)["train"] == pytest.approx(ranker.score(queries), abs=1e-12)

    def test_paths_and_threads(self, queries):
        fits = [
            rw.LinearRanker(objective="expected", alpha=2.0, backend=b).fit(queries)
            for b in (rw.Serial(), rw.Threads(2))
        ]
        path = rw.LinearRanker(objective="expected").fit_path([0.1, 2.0], queries)
        assert len({fit.predict(queries).tobytes() for fit in (*fits, path[1])}) == 1
        assert path[0].predict(queries).tobytes() != path[1].predict(queries).tobytes()
