"""Weights of blends, against slow twins."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.conftest import random_queries
from tests.reference import blending as twin

import rankwright as rw
from rankwright.optimisers import blend_weights
from rankwright.optimisers.blend_weights import WEIGHT_RULES, OutOfFoldScores
from rankwright.optimisers.reachable_documents import find_reachable_documents

MEASURES = ("ndcg@3", "map", "err@2", "mrr(empty=skip)")


def make(seed: int, n_members: int, measure: str, *, tied: bool = False, m: int = 15):
    """Queries and the scores of members: the grades with noise of different sizes; ties if they are rounded."""
    rng = np.random.default_rng(seed)
    queries = random_queries(rng, m=m)
    noise = np.linspace(0.8, 2.0, n_members)
    X = queries.y[:, None] + rng.normal(size=(queries.n_docs, n_members)) * noise
    X = np.round(X) if tied else X
    prepared = rw.parse_measure(measure).for_training().prepare(queries)
    weight = np.where(prepared.is_counted, queries.query_weight, 0.0)
    fold = rng.permutation(np.arange(len(queries)) % 3)
    scores = OutOfFoldScores(np.ascontiguousarray(X), np.exp2(queries.y) - 1, prepared, weight, fold, rw.Serial())
    return queries, scores


def value_of(scores, coef) -> float:
    return scores.compute_mean(scores.compute_values(np.asarray(coef, dtype=float)))


def is_simplex(coef) -> bool:
    return bool((coef >= 0).all()) and coef.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tied", [False, True])
def test_exact_weights_of_two_members_are_the_best_of_all(measure, seed, tied):
    queries, scores = make(seed, 2, measure, tied=tied)
    coef = blend_weights.fit_unpenalised(scores)
    assert is_simplex(coef)
    best = twin.find_best_on_grid(queries, measure, scores.X, 200, 0.0, [0.5, 0.5])
    assert value_of(scores, coef) >= best - 2e-5  # gains below a limit are not worth a step


@pytest.mark.parametrize("measure", MEASURES)
def test_exact_weights_of_three_members_are_near_the_best_of_a_grid(measure):
    reached = []
    for seed in range(4):
        queries, scores = make(seed, 3, measure)
        best = twin.find_best_on_grid(queries, measure, scores.X, 16, 0.0, [1 / 3] * 3)
        reached.append(value_of(scores, blend_weights.fit_unpenalised(scores)) - best)
    assert min(reached) > -0.03
    assert np.mean(reached) > -0.01


@pytest.mark.parametrize("seed", range(6))
def test_no_pull_ends_below_where_it_started(seed):
    _, scores = make(seed, 4, "ndcg@3", m=25)
    prior = blend_weights.fit_equal_best(scores)
    strengths = blend_weights.STRENGTHS
    for shrinkage, coef in zip(strengths, blend_weights.fit_shrinkage_path(scores, strengths), strict=True):
        assert is_simplex(coef)
        greedy = blend_weights.fit_greedy(scores)
        start = max(value_of(scores, each) - twin.penalise(each, shrinkage, prior) for each in (prior, greedy))
        # dropping members that bring nothing keeps the measure, not the distance from equal weights
        assert value_of(scores, coef) >= start


def test_a_strong_pull_keeps_equal_weights_and_none_does_not():
    _, scores = make(1, 3, "map", m=40)
    prior = blend_weights.fit_equal_best(scores)
    strong, none = blend_weights.fit_shrinkage_path(scores, (1e6, 0.0))
    strong_kept = strong > 0
    assert strong[strong_kept] == pytest.approx(np.full(strong_kept.sum(), 1 / strong_kept.sum()), abs=1e-3)
    assert set(np.flatnonzero(strong)) <= set(np.flatnonzero(prior))
    assert value_of(scores, none) >= value_of(scores, strong)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("tied", [False, True])
def test_greedy_selection_is_that_of_the_twin(measure, tied):
    queries, scores = make(3, 3, measure, tied=tied)
    expected = twin.select_greedily(queries, measure, scores.X, blend_weights._GREEDY_STEPS)
    found = blend_weights.fit_greedy(scores)
    if tied:  # equal means of different members may be rounded otherwise, and the steps after them differ
        assert value_of(scores, found) == pytest.approx(value_of(scores, expected), abs=0.02)
    else:
        assert found.tolist() == pytest.approx(expected)


def test_regression_is_a_bounded_least_squares_of_gains_within_queries():
    queries, scores = make(4, 3, "ndcg@3")
    rows, target = [], []
    for part in queries:
        for i in range(part.start, part.stop):
            rows.append(scores.X[i] - scores.X[part].mean(axis=0))
            target.append(scores.target[i] - scores.target[part].mean())
    expected = lsq_linear(np.array(rows), np.array(target), bounds=(0, np.inf), tol=1e-14).x
    assert blend_weights.fit_stacking(scores) == pytest.approx(expected / expected.sum(), abs=1e-6)


def test_regression_of_members_that_are_all_wrong_is_equal_weights():
    _, scores = make(4, 2, "ndcg@3")
    wrong = OutOfFoldScores(
        -np.column_stack([scores.target, scores.target]), scores.target, scores.measure, scores.weight, scores.fold,
        rw.Serial(),
    )  # fmt: skip
    assert blend_weights.fit_stacking(wrong).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("rule", WEIGHT_RULES)
def test_the_weights_for_a_fold_do_not_depend_on_its_queries(rule):
    _, scores = make(5, 3, "ndcg@3", m=30)
    found = WEIGHT_RULES[rule](scores)
    assert is_simplex(found.coef)
    assert sorted(found.fold_coefs) == scores.folds == [0, 1, 2]
    own = np.repeat(scores.fold == 1, np.diff(scores.measure.indptr))
    X = scores.X.copy()
    X[own] = np.random.default_rng(0).normal(size=(own.sum(), 3))
    other = WEIGHT_RULES[rule](
        OutOfFoldScores(X, scores.target, scores.measure, scores.weight, scores.fold, scores.backend)
    )
    if rule == "exact":  # the strength is chosen on the other folds; the paths are those of the twin fits
        parts = [each.leave_out(1) for each in (scores, other_scores(scores, X))]
        paths = [blend_weights.fit_shrinkage_path(part, blend_weights.STRENGTHS) for part in parts]
        assert np.array_equal(*paths)
    else:
        assert other.fold_coefs[1].tolist() == found.fold_coefs[1].tolist()


def other_scores(scores, X):
    return OutOfFoldScores(X, scores.target, scores.measure, scores.weight, scores.fold, scores.backend)


def test_only_members_that_bring_something_are_kept():
    _, scores = make(6, 2, "ndcg@3", m=30)
    X = np.column_stack([scores.X, np.zeros(len(scores.X))])
    scores = other_scores(scores, X)
    coef = blend_weights.drop_useless_members(scores, np.array([0.4, 0.3, 0.3]))
    assert coef[2] == 0.0
    assert is_simplex(coef)
    assert value_of(scores, coef) >= value_of(scores, [0.4, 0.3, 0.3])
    twice = other_scores(scores, scores.X[:, [0, 0]].copy())
    assert sorted(blend_weights.drop_useless_members(twice, np.array([0.5, 0.5])).tolist()) == [0.0, 1.0]
    assert blend_weights.drop_useless_members(scores, np.array([0.0, 1.0, 0.0])).tolist() == [0.0, 1.0, 0.0]
    kept = blend_weights.drop_useless_members(scores, np.array([0.4, 0.6, 0.0]), tol=1.0)
    assert sorted(kept.tolist()) == [0.0, 0.0, 1.0]


def test_members_that_are_significantly_worse_do_not_count_in_equal_weights():
    queries, scores = make(7, 2, "ndcg@3", m=60)
    X = np.column_stack([queries.y, queries.y + 1e-3 * scores.X[:, 0], -queries.y.astype(float)])
    assert blend_weights.fit_equal_best(other_scores(scores, X)).tolist() == [0.5, 0.5, 0.0]
    assert blend_weights.fit_equal(other_scores(scores, X)).tolist() == [1 / 3] * 3


@pytest.mark.parametrize("seed", range(20))
def test_the_rule_of_one_standard_error(seed):
    rng = np.random.default_rng(seed)
    values = rng.random((5, 12)) + np.linspace(0.0, 0.4, 5)[rng.permutation(5), None]
    weight = rng.random(12)
    assert blend_weights._choose_strength(values, weight, 1.0) == twin.choose_by_one_error(values, weight)
    holed = np.column_stack([values, np.full(5, np.nan)])
    assert blend_weights._choose_strength(holed, np.append(weight, 3.0), 1.0) == twin.choose_by_one_error(
        values, weight
    )
    means = values @ weight
    assert blend_weights._choose_strength(values, weight, 0.0) == int(np.argmax(means))


def test_queries_of_no_weight_change_nothing():
    _, scores = make(8, 3, "map", m=30)
    weight = scores.weight.copy()
    weight[::4] = 0.0
    own = np.repeat(weight == 0, np.diff(scores.measure.indptr))
    X = scores.X.copy()
    X[own] = -X[own]
    parts = [
        OutOfFoldScores(each, scores.target, scores.measure, weight, scores.fold, rw.Serial()) for each in (scores.X, X)
    ]
    for rule in WEIGHT_RULES.values():
        one, other = map(rule, parts)
        assert one.coef.tolist() == other.coef.tolist()
        assert one.shrinkage == other.shrinkage


@pytest.mark.parametrize("rule", [*WEIGHT_RULES.values(), partial(blend_weights.fit_with_strength, shrinkage=0.02)])
def test_one_member_and_one_fold(rule):
    _, scores = make(9, 1, "ndcg@3")
    assert rule(scores).coef.tolist() == [1.0]
    _, scores = make(9, 2, "ndcg@3")
    one_fold = OutOfFoldScores(
        scores.X, scores.target, scores.measure, scores.weight, np.zeros_like(scores.fold), rw.Serial()
    )
    assert is_simplex(blend_weights.fit_with_shrinkage(one_fold).coef)


def test_weights_have_the_same_bits_on_every_backend():
    _, scores = make(10, 4, "ndcg@5", m=40)
    other = OutOfFoldScores(scores.X, scores.target, scores.measure, scores.weight, scores.fold, rw.Threads(3))
    for rule in WEIGHT_RULES.values():
        one, two = rule(scores), rule(other)
        assert one.coef.tobytes() == two.coef.tobytes()
        assert [each.tobytes() for each in one.fold_coefs.values()] == [
            each.tobytes() for each in two.fold_coefs.values()
        ]


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("tied", [False, True])
def test_documents_that_weights_can_bring_to_the_top_are_kept(k, tied):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        queries = random_queries(rng, m=8)
        X = rng.normal(size=(queries.n_docs, 2 + seed % 2))
        X = np.ascontiguousarray(np.round(X) if tied else X)
        kept = find_reachable_documents(X, queries.y, queries.indptr, k, rw.Threads(2))
        for part in queries:
            needed = twin.find_first_of_weights(X[part], queries.y[part], k, 12)
            assert kept[part].sum() >= min(k, part.stop - part.start)
            if not tied:
                assert needed <= set(np.flatnonzero(kept[part]).tolist())


@pytest.mark.parametrize("measure", ["ndcg@2", "err@3", "mrr@2", "p@3"])
@pytest.mark.parametrize("tied", [False, True])
def test_leaving_out_the_other_documents_changes_no_value(measure, tied):
    rng = np.random.default_rng(0)
    queries = random_queries(rng, m=20)
    X = rng.normal(size=(queries.n_docs, 3))
    X = np.ascontiguousarray(np.round(X) if tied else X)
    parsed = rw.parse_measure(measure).for_training()
    kept = find_reachable_documents(X, queries.y, queries.indptr, parsed.cut_off, rw.Serial())
    assert not kept.all()
    fewer = queries.keep_retrieved(kept)
    for weights in twin.list_simplex(3, 5):
        scores = X @ np.array(weights)
        assert parsed.values(fewer, scores[kept]) == pytest.approx(
            parsed.values(queries, scores), abs=1e-12, nan_ok=True
        )
