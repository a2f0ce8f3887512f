"""Training on clicks: every ranker on a measure from clicks, LightGBM's positions, and pair losses of relevance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.unit.test_click_counts import make_counts

import rankwright as rw
from rankwright.objectives.pairwise_objectives import Exponential, Fidelity, Hinge, Logistic, SquaredHinge
from rankwright.rankers import RANKERS

MEASURE = "ndcg@5(clicks=ips,clip=4)"
SAME = {"BoostedTrees", "DirectRankTrees", "FRank", "GBRank", "LambdaMART", "MART", "RankBoost", "SingleFeature"}
OTHERS = {"AutoRanker", "BayesRank", "Blend", "SVMMap"}  # two are slow, one is tested below, one is refused


def make_clicked(n_queries: int = 16, seed: int = 0) -> rw.Queries:
    """Return queries with interleaved rows and clicks, and without grades."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries), 6))
    counts = make_counts(rng, len(qid), n_queries)
    X = np.column_stack(
        [
            rw.parse_measure("ndcg(clicks=ips)")
            .label(rw.Queries.from_arrays(np.zeros((len(qid), 1)), None, qid, clicks=counts))
            .y,
            rng.normal(size=(len(qid), 3)),
        ]
    )
    return rw.Queries.from_arrays(X + rng.normal(size=X.shape), None, qid, clicks=counts)


@pytest.fixture(scope="module")
def clicked() -> rw.Queries:
    return make_clicked()


def make_fast(ranker: type[rw.Ranker]) -> dict:
    names = ranker().get_params()
    fast = {"n_estimators": 5} if "n_estimators" in names else {}
    fast |= {"min_child_samples": 2} if "min_child_samples" in names else {}
    return fast | ({"training": {"n_epochs": 2}} if ranker is rw.NeuralRanker else {})


@pytest.mark.filterwarnings("ignore::rankwright.RankwrightWarning")
@pytest.mark.parametrize("ranker", [r for r in RANKERS if r.__name__ not in OTHERS], ids=lambda r: r.__name__)
def test_rankers_train_and_choose_by_clicks_alone(ranker, clicked):
    """Documents have no grades here. Rows of one query need not be adjacent, and their order changes nothing."""
    valid, fast = make_clicked(seed=1), make_fast(ranker)
    fitted = ranker(measure=MEASURE, **fast).fit(clicked, valid=valid)
    assert str(fitted.measure_) == MEASURE
    kept = next(row for row in fitted.history_ if row.get("kept"))
    assert fitted.score(valid) == pytest.approx(kept["valid"], abs=1e-9)
    scores = fitted.predict(clicked)
    assert rw.evaluate(fitted, clicked, MEASURE)[MEASURE] == rw.evaluate(scores, clicked, MEASURE)[MEASURE]
    again = ranker(measure=MEASURE, **fast).fit(clicked.grouped(), valid=valid.grouped())
    assert clicked.restore(again.predict(clicked.grouped())).tobytes() == scores.tobytes()
    if ranker.__name__ in SAME:  # the others start from or are a regression, or sort rows by their clicks, too
        measure = rw.parse_measure(MEASURE)
        known = [measure.label(part).replace(clicks=None) for part in (clicked, valid)]
        other = ranker(measure="ndcg@5(gain=linear)", **fast).fit(known[0], valid=known[1])
        assert other.predict(clicked).tobytes() == scores.tobytes()


@pytest.mark.filterwarnings("ignore::rankwright.RankwrightWarning")
def test_blends_and_selection_go_by_clicks(clicked):
    valid = make_clicked(seed=1)
    members = [rw.SingleFeature(feature=0), rw.LambdaMART(n_estimators=3, min_child_samples=2)]
    blend = rw.Blend(rankers=members, measure=MEASURE, n_folds=2, random_state=0).fit(clicked, valid=valid)
    assert blend.score(clicked) > 0.5
    grid = {"n_estimators": [1, 5]}
    chosen = rw.select(rw.LambdaMART(min_child_samples=2, measure=MEASURE), grid, clicked, valid)
    best = max(row["value"] for row in chosen.selection_)
    assert chosen.score(valid) == pytest.approx(best)


def test_trained_models_are_compared_diagnosed_and_polished_by_clicks(clicked):
    """The documents have no grades, so that whatever needs some takes those of the clicks."""
    trees = rw.LambdaMART(measure=MEASURE, n_estimators=4, min_child_samples=2).fit(clicked)
    linear = rw.DirectRank(measure=MEASURE, n_restarts=1).fit(clicked)
    results = rw.compare_scores({"trees": trees, "linear": linear}, clicked, MEASURE)
    assert MEASURE in str(results.measures)
    assert MEASURE in str(rw.diagnose(trees, clicked))
    polished = rw.polish_model(trees, clicked, MEASURE, max_iter=2)
    assert polished.predict(clicked).shape == (96,)
    found = rw.polish(clicked.X[:, :2], clicked, MEASURE)
    assert found.after >= found.before
    worth = rw.permutation_importance(linear, clicked, MEASURE)
    assert MEASURE in str(worth)


def test_a_relevance_that_many_clicks_tell_is_learned():
    queries = rw.make_queries(60, n_docs=8, random_state=0)
    log = rw.simulate_clicks(queries, queries.X[:, 3], n_sessions=300_000, random_state=0)
    rows = {str(name): row for row, name in enumerate(queries.doc_names.tolist())}
    order = [rows[str(name)] for name in log.docid.tolist()]
    counts = rw.ClickCounts(
        log.cell_indptr, log.position, log.n_shown, log.n_clicked, log.n_lists, log.truth.examination.probability
    )
    shown = rw.Queries.from_arrays(queries.X[order], None, queries.row_qid[order], clicks=counts)
    value = {
        name: rw.evaluate(rw.DirectRank(measure=f"dcg@5(clicks={name})", n_restarts=1).fit(shown), queries, "ndcg@5")[
            "ndcg@5"
        ]
        for name in ("naive", "ips", "coec")
    }
    graded = rw.evaluate(rw.DirectRank(measure="ndcg@5", n_restarts=1).fit(queries), queries, "ndcg@5")["ndcg@5"]
    assert min(value["ips"], value["coec"]) > value["naive"]
    assert min(value["ips"], value["coec"]) > graded - 0.03


class TestPositions:
    """LightGBM's own lambdas take ``Queries.position``."""

    def make(self, **parts):
        queries = rw.make_queries(30, n_docs=8, random_state=0)
        return rw.Queries.from_arrays(queries.X, queries.y > 1, queries.row_qid, **parts)

    def fit(self, queries, **params):
        return rw.LambdaMART(lambdas="lightgbm", n_estimators=5, num_leaves=4, lightgbm_params=params or None).fit(
            queries
        )

    def test_lightgbm_gets_them(self):
        import lightgbm as lgb

        position = np.random.default_rng(0).integers(1, 9, self.make().n_docs)
        queries = self.make(position=position)
        ranker = self.fit(queries, lambdarank_position_bias_regularization=0.5)
        data = lgb.Dataset(
            queries.X, queries.y, group=queries.grouped().sizes, position=position, params=ranker.lightgbm_params_
        )
        booster = lgb.train(ranker.lightgbm_params_, data, 5)
        assert ranker.predict(queries).tobytes() == booster.predict(queries.X).tobytes()
        assert ranker.predict(queries).tobytes() != self.fit(self.make()).predict(queries).tobytes()

    def test_they_follow_interleaved_rows(self):
        made, rng = self.make(), np.random.default_rng(0)
        position, order = rng.integers(1, 9, made.n_docs), rng.permutation(made.n_docs)
        mixed = rw.Queries.from_arrays(made.X[order], made.y[order], made.row_qid[order], position=position[order])
        adjacent = mixed.grouped()
        assert self.fit(mixed).predict(made).tobytes() == self.fit(adjacent).predict(made).tobytes()

    def test_regularisation_without_positions_is_refused(self):
        with pytest.raises(rw.InputError, match="no effect without Queries"):
            self.fit(self.make(), lambdarank_position_bias_regularization=0.5)
        with pytest.raises(rw.InputError, match="lambdas='lightgbm' with"):
            rw.LambdaMART(lambdas="lightgbm", measure="ndcg@5(discount=reciprocal)").fit(self.make())

    def test_the_exact_lambdas_do_not_look_at_them(self):
        one, other = self.make(), self.make(position=np.arange(self.make().n_docs) % 8 + 1)
        fits = [rw.LambdaMART(n_estimators=3, num_leaves=4).fit(each).predict(one).tobytes() for each in (one, other)]
        assert fits[0] == fits[1]


PHI = {
    Hinge: lambda o: max(1.0 - o, 0.0),
    SquaredHinge: lambda o: max(1.0 - o, 0.0) ** 2,
    Exponential: lambda o: np.exp(-o),
    Logistic: lambda o: np.log1p(np.exp(-o)),
    Fidelity: lambda o: 1.0 - 1.0 / np.sqrt(1.0 + np.exp(-o)),
}


@pytest.mark.parametrize("kind", PHI, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_relevance(kind, weighted):
    """The loss is linear in the grades, and a document weighs its grade before every other document."""
    rng = np.random.default_rng(0)
    y, scores, indptr = rng.random(7) * (rng.random(7) < 0.7), rng.normal(size=7), [0, 4, 7]
    cost = rng.random(7) + 0.5 if weighted else np.ones(7)
    weight = [2.0, 0.5] if weighted else [1.0, 1.0]
    queries = rw.Queries.from_arrays(
        np.zeros((7, 1)), y, [1, 1, 1, 1, 2, 2, 2], weight=weight, doc_weight=cost if weighted else None
    )
    objective = kind(pair_weighting="relevance")

    def expect(scores):
        total = 0.0
        for q, (start, stop) in enumerate(pairwise(indptr)):
            for i in range(start, stop):
                for j in range(start, stop):  # its own copy adds a constant
                    total += weight[q] * y[i] * cost[i] * cost[j] * PHI[kind](scores[i] - scores[j])
        return total

    found = objective.prepare(queries)(scores)
    assert found.loss == pytest.approx(expect(scores))
    steps = 1e-6 * np.eye(7)
    slopes = [(expect(scores + step) - expect(scores - step)) / 2e-6 for step in steps]
    assert found.gradient == pytest.approx(slopes, abs=1e-6)


@pytest.mark.filterwarnings("ignore::rankwright.RankwrightWarning")
def test_ranknet_takes_pairs_of_relevance(clicked):
    ranker = rw.RankNet(measure=MEASURE, pair_weighting="relevance").fit(clicked)
    other = rw.LinearRanker(measure=MEASURE, objective=Logistic("relevance")).fit(clicked)
    assert ranker.coef_ == pytest.approx(other.coef_, rel=1e-3, abs=1e-4)
    with pytest.raises(rw.InputError, match="'pair' or 'query'"):
        rw.RankSVM(pair_weighting="relevance", measure=MEASURE).fit(clicked)
