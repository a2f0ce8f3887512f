"""DirectRank and coordinate ascent: what they promise beyond every ranker's contract."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import data_folder
from tests.reference.line_search import coordinate_ascent
from tests.warned import may_be_ineffective, may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.optimisers import landscape as landscapes
from rankwright.optimisers.ascent import (
    ClimbRules,
    Perturbation,
    climb_cyclic,
    climb_greedy,
    climb_powell,
    climb_with_perturbations,
    find_best_weights,
)
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import MaximumLikelihoodStep, search_line
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling

rw.make_measure(lambda grades: float(grades[:2].mean() / 2), name="two_first")
MEASURES = ["ndcg@10", "ndcg@3", "map", "err", "mrr", "two_first"]


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(40, n_docs=12, n_features=8, random_state=5)


def trains(ranker):
    """The training measure along the restart that was kept."""
    kept = [record["restart"] for record in ranker.history_]
    longest = max(set(kept), key=kept.count)
    return [record["train"] for record in ranker.history_ if record["restart"] == longest]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("order", ["cyclic", "greedy", "powell"])
def test_the_training_measure_never_decreases_and_no_single_weight_improves_it(queries, measure, order):
    ranker = rw.DirectRank(measure=measure, selection=order, start="equal", n_restarts=1, tol=0).fit(queries)
    values = trains(ranker)
    assert len(values) > 2
    assert (np.diff(values) > 0).all()
    landscape = Landscape.of(queries, rw.parse_measure(measure), rw.Serial())
    here = landscape.evaluate(ranker.coef_)
    assert here.value == pytest.approx(ranker.score(queries), abs=1e-12)
    for column in range(queries.n_features):
        best = search_line(landscape, here, column)
        assert best.value <= here.value + 1e-12
        assert landscape.profile(here, column).values[[0, -1]].max() <= here.value + 1e-12


def test_every_record_is_what_its_weights_give(queries):
    """Replaying the steps of the history gives the recorded measures to the bit of 1e-12."""
    ranker = rw.DirectRank(measure="map", n_restarts=1, start="equal", scale=None, n_perturbations=0).fit(queries)
    coef = (queries.X.std(axis=0) > 0).astype(float)
    for record in ranker.history_:
        if "feature" in record:
            coef[record["feature"]] += record["step"]
            assert record["weight"] == coef[record["feature"]]
        assert rw.parse_measure("map").mean(queries, queries.X.astype(float) @ coef) == pytest.approx(
            record["train"], abs=1e-12
        )


def test_the_best_restart_on_validation_is_kept(queries):
    train, valid = queries.take(range(25)), queries.take(range(25, 40))
    ranker = rw.DirectRank(n_restarts=6).fit(train, valid=valid)
    assert {record["restart"] for record in ranker.history_} == set(range(1, 7))
    assert ranker.score(valid) == pytest.approx(max(record["valid"] for record in ranker.history_), abs=1e-12)
    alone = [rw.DirectRank(n_restarts=n).fit(train, valid=valid).score(valid) for n in (1, 3, 6)]
    assert alone == sorted(alone)


def test_seeds_decide(queries):
    fits = [rw.DirectRank(n_restarts=3, random_state=seed).fit(queries) for seed in (1, 1, 2, None)]
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    assert fits[0].coef_.tobytes() != fits[2].coef_.tobytes()


def test_weights_that_must_not_be_negative_are_not(queries):
    free, bounded = rw.DirectRank().fit(queries), rw.DirectRank(nonnegative=True, n_perturbations=2).fit(queries)
    assert free.coef_.min() < 0 <= bounded.coef_.min()
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    here = landscape.evaluate(bounded.coef_)
    for column in range(queries.n_features):
        best = search_line(landscape, here, column, low=-bounded.coef_[column])
        assert best.value <= here.value + 1e-12


@may_be_ineffective
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_pull_brings_weights_to_the_prior(queries, penalty):
    prior = rw.Regression().fit(queries).coef_
    deviation = queries.X.std(axis=0)
    distances = []
    for alpha in (0.0, 0.01, 1e6):
        ranker = rw.DirectRank(alpha=alpha, penalty=penalty, prior=prior, n_restarts=1, max_iter=10).fit(queries)
        distances.append(float(np.abs((ranker.coef_ - prior) * deviation).sum()))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-3 * distances[0]


def test_truncation_trains_on_the_first_ranks(queries):
    ranker = rw.DirectRank(measure="map", k=3, n_restarts=1).fit(queries)
    landscape = Landscape.of(queries, rw.parse_measure("ap@3"), rw.Serial())
    here = landscape.evaluate(ranker.coef_)
    last = [record for record in ranker.history_ if record["train"] == pytest.approx(ranker.score(queries), abs=1e-12)]
    assert any(1 - record["loss"] == pytest.approx(here.value, abs=1e-12) for record in last)
    losses = [record["loss"] for record in ranker.history_]
    assert losses == sorted(losses, reverse=True)
    assert rw.DirectRank(measure="ndcg@3", k=10, n_restarts=1).fit(queries).history_ == (
        rw.DirectRank(measure="ndcg@3", n_restarts=1).fit(queries).history_
    )


def test_kicks_never_lose(queries):
    plain = rw.DirectRank(n_restarts=1, interval_point="middle").fit(queries)
    kicked_ranker = rw.DirectRank(n_restarts=1, interval_point="middle", n_perturbations=8).fit(queries)
    values = trains(kicked_ranker)
    assert values[: len(trains(plain))] == trains(plain)
    assert values == sorted(values)
    assert values[-1] > trains(plain)[-1]


def test_greedy_takes_the_best_weight_first(queries):
    landscape = Landscape.of(queries, rw.parse_measure("map"), rw.Serial())
    start = landscape.evaluate(np.ones(8))
    first = next(climb_greedy(landscape, start, ClimbRules(), np.random.default_rng(0)))[0]
    found = [search_line(landscape, start, column) for column in range(8)]
    assert first.value == pytest.approx(max(each.value for each in found), abs=1e-12)


def test_powell_goes_beyond_a_round(queries):
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    ways = [
        step
        for seed in range(5)
        for steps in climb_powell(landscape, landscape.evaluate(np.random.default_rng(seed).normal(size=8)), ClimbRules(),
                            np.random.default_rng(seed))
        for step in steps
        if not isinstance(step.direction, int)
    ]  # fmt: skip
    assert ways


@pytest.mark.parametrize("climb", [climb_cyclic, climb_powell])
def test_updated_and_new_scores_lead_the_same_way(queries, climb, monkeypatch):
    start = np.random.default_rng(3).normal(size=8) / (queries.X.std(axis=0) + 1e-9)
    exact = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    monkeypatch.setattr(landscapes, "_EXACT_SIZE", 0)
    updated = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    ways = [
        [step for steps in climb(each, each.evaluate(start), ClimbRules(), np.random.default_rng(0)) for step in steps]
        for each in (exact, updated)
    ]
    assert len(ways[0]) == len(ways[1])
    for one, other in zip(*ways, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.coef == pytest.approx(other.coef, rel=1e-9)


def test_a_round_that_rounding_spoils_is_repeated_carefully(queries, monkeypatch):
    """Scores that drift by more than rounding: the round ends with another measure than its last step said."""
    monkeypatch.setattr(landscapes, "_EXACT_SIZE", 0)
    real = landscapes._move

    def drifting(ranked, direction, t):
        noise = np.random.default_rng(len(ranked.scores)).normal(size=len(ranked.scores))
        scores = real(ranked, direction, t).scores + 0.05 * noise
        return landscapes._rank(ranked.shard, scores, np.ones(2), ranked.order.copy())

    monkeypatch.setattr(landscapes, "_move", drifting)
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    start = landscape.evaluate(np.ones(8) / (queries.X.std(axis=0) + 1e-9))
    last = start.value
    for steps in climb_cyclic(landscape, start, ClimbRules(), np.random.default_rng(0)):
        for step in steps:
            true = rw.parse_measure("ndcg@10").mean(queries, Linear(step.coef)(queries.X))
            assert step.value == pytest.approx(true, abs=1e-12)
            assert step.value > last
            last = step.value


@may_not_converge
def test_time_can_run_out(queries):
    start = rw.DirectRank(max_seconds=0, n_restarts=2).fit(queries)
    assert len(start.history_) < 10
    assert rw.CoordinateAscent(max_seconds=0, n_restarts=2).fit(queries).history_


def test_kicks_stay_within_the_rules(queries):
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@10"), rw.Serial())
    rules = ClimbRules(least=0.0, choice=MaximumLikelihoodStep(5))
    perturbation = Perturbation(4, 0.5, queries.X.std(axis=0))
    for steps in climb_with_perturbations(
        landscape, landscape.evaluate(np.ones(8)), rules, np.random.default_rng(0), climb_cyclic, perturbation
    ):
        assert all(step.coef.min() >= 0 for step in steps)


def test_the_best_weights_of_several_starts(queries):
    bound = rw.parse_measure("ndcg@5").prepare(queries)
    starts = np.concatenate([np.eye(8), np.ones((1, 8))])
    options = dict(nonnegative=True, backend=rw.Serial())
    weights, value = find_best_weights(queries.X, bound, queries.query_weight, starts=starts, **options)
    assert value == pytest.approx(
        rw.parse_measure("ndcg@5").mean(queries, queries.X.astype(float) @ weights), abs=1e-12
    )
    for start in starts:
        alone = find_best_weights(queries.X, bound, queries.query_weight, starts=start[None], **options)
        assert alone[1] <= value + 1e-12
        assert alone[1] >= rw.parse_measure("ndcg@5").mean(queries, queries.X.astype(float) @ start) - 1e-12


@pytest.mark.parametrize("measure", ["ndcg@10", "map"])
def test_coordinate_ascent_takes_the_same_way_as_its_twin(measure):
    queries = rw.make_queries(15, n_docs=8, n_features=4, random_state=2)
    ranker = rw.CoordinateAscent(measure=measure, n_restarts=1, random_state=4).fit(queries)
    deviation = queries.X.astype(np.float64).std(axis=0)
    unit = StandardScaling.fit(queries).deviation
    start = np.divide(1.0, unit, out=np.zeros(4), where=unit > 0)
    rng = np.random.default_rng(4)
    rng.normal(size=(0, 4))
    coef, value = coordinate_ascent(
        queries, rw.parse_measure(measure), start / np.abs(start * unit).sum(), unit, rng.spawn(1)[0]
    )
    assert deviation == pytest.approx(unit, rel=1e-6)
    assert ranker.coef_ == pytest.approx(coef, rel=1e-9)
    assert ranker.score(queries) == pytest.approx(value, abs=1e-12)


@may_be_ineffective
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"selection": "random"}, "selection='random'; expected 'cyclic' or 'greedy' or 'powell'"),
        ({"interval_point": "end"}, "interval_point='end'"),
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"start": "best"}, "start='best'"),
        ({"n_restarts": 0}, "n_restarts=0"),
        ({"n_perturbations": -1}, "n_perturbations=-1"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"k": 0}, "k=0"),
        ({"nonnegative": 1}, "nonnegative=1"),
        ({"max_seconds": -1}, "max_seconds=-1"),
        ({"prior": [1.0]}, r"prior has shape \(1,\)"),
        ({"prior": [-1.0] * 8, "nonnegative": True}, "negative weights"),
    ],
)
def test_bad_parameters_are_named(queries, params, message):
    with pytest.raises(rw.InputError, match=message):
        rw.DirectRank(**params).fit(queries)


def test_beats_what_trains_on_something_else():
    train = rw.read_folds(data_folder("MQ2008"))[0].train
    exact = rw.DirectRank(n_restarts=2).fit(train)
    for other in (rw.AdaRank(), rw.Regression()):
        assert exact.score(train) > other.fit(train).score(train)


def test_a_pull_decides_without_validation(queries):
    """The point that is kept is the best of what is maximised, not of the measure alone."""
    prior = -rw.Regression().fit(queries).coef_
    ranker = rw.DirectRank(alpha=100.0, prior=prior, n_restarts=1).fit(queries)
    start = rw.Regression(alpha=1.0).fit(queries).coef_
    deviation = queries.X.std(axis=0)
    assert np.abs((ranker.coef_ - prior) * deviation).sum() < 0.1 * np.abs((start - prior) * deviation).sum()


@pytest.mark.parametrize("seed", [-1, "x", 1.5])
def test_bad_seeds_are_named(queries, seed):
    with pytest.raises(rw.InputError, match="random_state="):
        rw.DirectRank(random_state=seed).fit(queries)
    with pytest.raises(rw.InputError, match="random_state="):
        rw.polish(queries.X, queries, random_state=seed)
    with pytest.raises(rw.InputError, match="random_state="):
        rw.make_queries(3, random_state=seed)


def test_high_grades_do_not_spoil_the_start():
    queries = rw.make_queries(60, random_state=0)
    clicks = rw.Queries(queries.X, queries.y * 2000, queries.indptr, queries.qid)
    for measure in ("ndcg@10(gain=linear)", "map"):
        ranker = rw.DirectRank(measure=measure, n_restarts=1).fit(clicks)
        assert np.isfinite(ranker.coef_).all()
        assert ranker.score(clicks) > 0.6


@pytest.mark.parametrize("outlier", [1e10, 1e15])
def test_one_wild_value_does_not_blind_the_search(outlier):
    queries = rw.make_queries(60, n_features=6, random_state=2)
    X = queries.X.copy()
    plain = rw.DirectRank(n_restarts=1, start="equal").fit(queries).score(queries)
    X[0, 0] = outlier
    wild = queries.with_X(X)
    assert rw.DirectRank(n_restarts=1, start="equal").fit(wild).score(wild) > plain - 0.02


def test_sums_that_are_not_normalised_train_as_well():
    queries = rw.make_queries(40, random_state=0)
    large = rw.Queries(queries.X, queries.y * 1e6, queries.indptr, queries.qid)
    ranker = rw.DirectRank(measure="dcg@10(gain=linear)", n_restarts=1, start="equal").fit(large)
    assert len(ranker.history_) > 5
    assert ranker.history_[-1]["train"] > 1.05 * ranker.history_[0]["train"]


def test_tiny_query_weights(queries):
    tiny = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=np.full(len(queries), 1e-300))
    assert rw.DirectRank(n_restarts=1).fit(tiny).coef_ == pytest.approx(
        rw.DirectRank(n_restarts=1).fit(queries).coef_, rel=1e-6
    )


@may_learn_nothing
def test_coordinate_ascent_ends_and_stays_finite():
    queries = rw.make_queries(10, n_features=2, random_state=0)
    constant = queries.with_X(np.ones_like(queries.X))
    assert rw.CoordinateAscent(tol=0, n_restarts=1).fit(constant).history_
    opposed = queries.with_X(np.column_stack([-queries.y, np.ones(queries.n_docs)]).astype(np.float32))
    ranker = rw.CoordinateAscent(max_iter=3, n_restarts=1).fit(opposed)
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("factor", [1e-170, 1e160])
def test_scores_of_any_scale_can_be_polished(queries, factor):
    scores = queries.X[:, [0, 2, 5]].astype(np.float64)
    plain, scaled = rw.polish(scores, queries), rw.polish(scores * factor, queries)
    assert scaled.after == pytest.approx(plain.after, abs=0.02)


def test_a_pull_without_a_prior_is_to_the_regression(queries):
    for start in ("regression", "equal"):
        ranker = rw.DirectRank(alpha=1e6, n_restarts=1, start=start).fit(queries)
        expected = rw.Regression(alpha=1.0).fit(queries).coef_
        assert np.abs((ranker.coef_ - expected) * queries.X.std(axis=0)).max() < 1e-3
