"""The exact line search: every interval, every measure, against trying everything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.reference.line_search import crossings, inner_points, log_likelihood, values_along

import rankwright as rw
from rankwright.measures import table_measure as table
from rankwright.optimisers import landscape as landscapes
from rankwright.optimisers.columns import MatrixColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import MaximumLikelihoodStep, MidpointStep, find_likeliest, search_line
from rankwright.optimisers.prior_penalty import PriorPenalty

rw.make_measure(
    lambda grades: float((grades[:3] * np.array([0.5, 0.3, 0.2])[: len(grades)]).sum() / 3), name="three_first"
)
MEASURES = [
    "ndcg@1", "ndcg@3", "ndcg@10", "ndcg", "ndcg@5(gain=pow2)", "ndcg@2(discount=letor)", "ndcg@4(short=zero)", "dcg@3", "dcg",
    "map", "ap@3", "map(rel=2)", "ap@5(norm=min)", "p@2", "p@5", "recall@4", "mrr", "rr@3", "err", "err@5", "wta", "rbp", "rbp@4",
    "three_first",
]  # fmt: skip


def columns(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Two features of n documents."""
    if kind == "random":
        return rng.normal(size=(n, 2))
    if kind == "integer":
        return rng.integers(-2, 4, (n, 2)).astype(float)
    if kind == "duplicated":
        return rng.normal(size=(max(n // 3, 1), 2))[rng.integers(0, max(n // 3, 1), n)]
    if kind == "constant":
        return np.column_stack([rng.normal(size=n), np.full(n, 2.5)])
    return rng.integers(0, 2, (n, 2)).astype(float)  # tied


@st.composite
def problems(draw):
    """Queries of 1 to 12 documents, weights and a direction."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    blocks, grades, qid = [], [], []
    for q in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 12))
        blocks.append(columns(draw(st.sampled_from(["random", "integer", "duplicated", "constant", "tied"])), n, rng))
        grades.append(rng.integers(0, draw(st.integers(1, 4)), n))
        qid += [q] * n
    weight = rng.integers(1, 4, len(blocks)) * 0.5
    queries = rw.Queries.from_arrays(np.vstack(blocks), np.concatenate(grades), qid, weight=weight)
    coef = draw(st.sampled_from(["round", "any", "zero"]))
    start = {"round": rng.integers(-2, 3, 2).astype(float), "any": rng.normal(size=2), "zero": np.zeros(2)}[coef]
    return queries, start, draw(st.sampled_from([0, 1, np.array([1.0, -2.0])]))


def lines(queries, start, direction):
    X = queries.X.astype(np.float64)
    return X @ start, X[:, direction] if isinstance(direction, int) else X @ direction


@pytest.mark.parametrize("shallow", [0, 32], ids=["by gains", "by the first k"])
@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_the_sweep_equals_trying_every_interval(problem, measure, shallow):
    queries, start, direction = problem
    wanted = rw.parse_measure(measure).for_training()
    scores, slopes = lines(*problem)
    points = inner_points(crossings(queries, scores, slopes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MAX_TOP_DEPTH", shallow)
        landscape = Landscape.of(queries, wanted, rw.Serial())
        here = landscape.evaluate(start)
        profile = landscape.profile(here, direction)
        found = search_line(landscape, here, direction)
    expected = values_along(queries, wanted, scores, slopes, points)
    assert profile(np.array(points)) == pytest.approx(expected, abs=1e-12)
    assert here.value == pytest.approx(wanted.mean(queries, scores), abs=1e-12)
    assert found.value == pytest.approx(expected.max(), abs=1e-12)
    assert found.value == pytest.approx(wanted.mean(queries, scores + slopes * found.t), abs=1e-12)
    assert found.value == found.point.value
    assert found.low < found.t < found.high


@settings(max_examples=150, deadline=None)
@given(problem=problems(), low=st.sampled_from([-np.inf, -1.5, -0.3, 0.0]), high=st.sampled_from([np.inf, 2.0, 0.4]))
@pytest.mark.parametrize("measure", ["ndcg@3", "map", "err", "three_first"])
def test_within_a_range(problem, low, high, measure):
    queries, start, direction = problem
    wanted = rw.parse_measure(measure)
    scores, slopes = lines(*problem)
    points = inner_points(crossings(queries, scores, slopes), low, high)
    landscape = Landscape.of(queries, wanted, rw.Serial())
    here = landscape.evaluate(start)
    found = search_line(landscape, here, direction, low=low, high=high)
    expected = values_along(queries, wanted, scores, slopes, points)
    assert found.value == pytest.approx(expected.max(), abs=1e-12)
    assert low <= found.low < found.t < found.high <= high
    better = search_line(landscape, here, direction, low=low, high=high, beat=here.value + 1e-12)
    assert (better is not None) == (expected.max() > here.value + 1e-12)


@settings(max_examples=100, deadline=None)
@given(
    problem=problems(), power=st.sampled_from([1, 2]), strength=st.sampled_from([0.01, 0.3]), seed=st.integers(0, 99)
)
def test_with_a_pull(problem, power, strength, seed):
    queries, start, direction = problem
    rng = np.random.default_rng(seed)
    wanted, penalty = (
        rw.parse_measure("ndcg@3"),
        PriorPenalty(strength, power, rng.normal(size=2), rng.uniform(0.5, 2, 2)),
    )
    scores, slopes = lines(*problem)
    step = np.eye(2)[direction] if isinstance(direction, int) else direction

    def paid(t):
        return strength * (np.abs((start + t * step - penalty.prior) * penalty.unit) ** power).sum()

    cuts = crossings(queries, scores, slopes)
    ends = [min([-9.0, *cuts]) - 9, *cuts, max([9.0, *cuts]) + 9]
    best = -np.inf
    for left, right in pairwise(ends):
        if right - left > 1e-6:
            least = minimize_scalar(paid, bounds=(left, right), method="bounded", options={"xatol": 1e-10}).fun
            best = max(best, wanted.mean(queries, scores + slopes * (left + right) / 2) - least)
    landscape = Landscape.of(queries, wanted, rw.Serial())
    here = landscape.evaluate(start)
    found = search_line(landscape, here, direction, penalty=penalty)
    width = min(found.high, 1e3) - max(found.low, -1e3)
    inside = np.clip(penalty.along(start, direction).argmin, found.low, found.high)
    assert found.value - paid(inside) == pytest.approx(best, abs=1e-5)
    assert abs(found.t - inside) <= 0.05 * width + 1e-9  # as near as the margin allows


def test_lines_through_one_point_leave_no_interval():
    """All cross at t = 1: there is no best ranking between, however good one would be."""
    queries = rw.Queries.from_arrays([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0]], [0, 2, 1, 0], qid=[1] * 4)
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@2"), rw.Serial())
    here = landscape.evaluate(np.array([1.0, 0.0]))
    assert landscape.profile(here, 1).times == pytest.approx(np.ones(landscape.profile(here, 1).times.shape))
    found = search_line(landscape, here, 1)
    assert found.low == -np.inf or found.high == np.inf


def test_an_interval_of_rounding_is_never_chosen():
    """The middle document of three lines that cross at about 1/3, but for rounding, is first nowhere."""
    b, a = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.6, 0.3]) / 3 * 1.0
    queries = rw.Queries.from_arrays(np.column_stack([b, a]).astype(np.float32), [0, 1, 0], qid=[1] * 3)
    landscape = Landscape.of(queries, rw.parse_measure("p@1"), rw.Serial())
    here = landscape.evaluate(np.array([1.0, 0.0]))
    found = search_line(landscape, here, 1)
    assert found.high - found.low > 1e-6
    assert found.value == rw.parse_measure("p@1").mean(queries, queries.X.astype(float) @ np.array([1.0, found.t]))


def test_a_middle_that_is_a_tie_is_not_taken():
    """Two crossings at t = 3 cancel, so the interval goes on, but at 3 itself documents tie."""
    X = [[1, 1], [2, 1], [0, 1], [2, 0], [3, 0], [1, 0]]
    queries = rw.Queries.from_arrays(X, [1, 1, 1, 0, 2, 1], qid=[1] * 6)
    wanted = rw.parse_measure("three_first")
    landscape = Landscape.of(queries, wanted, rw.Serial())
    found = search_line(landscape, landscape.evaluate(np.array([2.0, -1.0])), 1)
    assert (found.low, found.high) == (1.0, 5.0)
    assert found.t != 3.0
    assert wanted.mean(queries, queries.X.astype(float) @ found.point.coef) == found.value


@pytest.fixture(scope="module")
def many():
    return rw.make_queries(700, n_docs=40, n_features=8, random_state=3)


@pytest.mark.parametrize("measure", ["ndcg@10", "map", "err@10", "dcg@10"])
def test_parts_and_threads_change_nothing(many, measure):
    start, wanted = np.full(8, 0.1), rw.parse_measure(measure)
    found = []
    for backend in (rw.Serial(), rw.Threads(2), rw.Threads(3)):
        landscape = Landscape.of(many, wanted, backend)
        assert len(landscape.shards) > 3
        found.append(search_line(landscape, landscape.evaluate(start), 2))
    whole = Landscape.of_prepared(MatrixColumns(many.X), wanted.prepare(many), many.query_weight, rw.Serial())
    found.append(search_line(whole, whole.evaluate(start), 2))
    for other in found[1:]:
        assert (other.low, other.high, other.t) == (found[0].low, found[0].high, found[0].t)
        assert other.point.coef.tobytes() == found[0].point.coef.tobytes()
        assert other.value == found[0].value


@pytest.mark.parametrize("measure", ["ndcg@10", "map", "rr@5"])
@pytest.mark.parametrize("column", [0, 1, 3, 7, 8])
def test_only_near_the_best_is_sorted_and_nothing_is_lost(many, measure, column):
    """The search looks at few buckets; the whole profile has no better interval."""
    landscape = Landscape.of(many, rw.parse_measure(measure), rw.Serial())
    here = landscape.evaluate(np.random.default_rng(column).normal(size=8) / (1e-9 + many.X.std(axis=0)))
    direction = column if column < 8 else np.random.default_rng(0).normal(size=8)
    profile = landscape.profile(here, direction)
    if len(profile.times) == 0:  # a constant feature
        assert search_line(landscape, here, direction, beat=here.value) is None
        return
    wide = np.diff(profile.times) > 1e-6 * (np.abs(profile.times[:-1]) + landscape.find_jumps(here, direction).unit)
    best = max(profile.values[1:-1][wide].max(), profile.values[0], profile.values[-1])
    assert search_line(landscape, here, direction).value == pytest.approx(best, abs=1e-12)
    t = np.random.default_rng(1).normal(size=20) * landscape.find_jumps(here, direction).unit
    exact = [landscape.step(here, direction, each).value for each in t.tolist()]
    assert profile(t) == pytest.approx(exact, abs=1e-12)


def test_steps_on_large_data_are_updates(many, monkeypatch):
    exact = Landscape.of(many, rw.parse_measure("ndcg@10"), rw.Serial())
    monkeypatch.setattr(landscapes, "_EXACT_SIZE", 0)
    updated = Landscape.of(many, rw.parse_measure("ndcg@10"), rw.Serial())
    assert exact.exact_steps
    assert not updated.exact_steps
    one, other = exact.evaluate(np.ones(8)), updated.evaluate(np.ones(8))
    for column, t in ((2, 0.5), (5, -1.25), (0, 3.0)):
        one, other = exact.step(one, column, t), updated.step(other, column, t)
        assert other.value == pytest.approx(one.value, abs=1e-12)
        assert other.coef.tobytes() == one.coef.tobytes()
    way = np.arange(8.0)
    assert updated.step(other, way, 0.1).value == pytest.approx(exact.step(one, way, 0.1).value, abs=1e-12)
    assert updated.rescore(other).value == one.value
    assert updated.with_exact_steps().exact_steps


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_likeliest_point(k):
    queries = rw.make_queries(12, n_docs=8, n_features=4, random_state=k)
    queries = queries.with_X(((queries.X - queries.X.mean(0)) / (queries.X.std(0) + 1e-9)).astype(np.float32))
    landscape = Landscape.of(queries, rw.parse_measure("ndcg@5"), rw.Serial())
    start = np.array([0.5, 0.2, -0.1, 0.3])
    here = landscape.evaluate(start)
    for column in range(3):
        scores, slopes = lines(queries, start, column)
        exact = minimize_scalar(
            lambda t, b=scores, a=slopes: -log_likelihood(queries, b + a * t, k), bounds=(-2, 2), method="bounded"
        ).x
        assert find_likeliest(landscape, here, column, -2.0, 2.0, k) == pytest.approx(exact, abs=2e-3)
        found = search_line(landscape, here, column, choice=MaximumLikelihoodStep(k))
        middle = search_line(landscape, here, column, choice=MidpointStep())
        assert (found.low, found.high, found.value) == (middle.low, middle.high, middle.value)
        assert found.low < found.t < found.high


def test_the_likelihood_does_not_depend_on_the_order_of_rows():
    queries = rw.make_queries(20, n_docs=9, n_features=3, grades=2, random_state=1)
    rows = np.random.default_rng(0).permutation(queries.n_docs)
    shuffled = rw.Queries.from_arrays(queries.X[rows], queries.y[rows], queries.row_qid[rows]).grouped()
    found = []
    for each in (queries, shuffled):
        landscape = Landscape.of(each, rw.parse_measure("ndcg@3"), rw.Serial())
        found.append(find_likeliest(landscape, landscape.evaluate(np.array([0.01, 0.2, 0.0])), 2, -1.0, 1.0, 3))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_huge_scores_do_not_overflow_the_likelihood():
    queries = rw.Queries.from_arrays([[1e4, 0.0], [-1e4, 1.0], [0.0, 2.0]], [0, 1, 2], qid=[1] * 3)
    landscape = Landscape.of(queries, rw.parse_measure("ndcg"), rw.Serial())
    assert np.isfinite(find_likeliest(landscape, landscape.evaluate(np.array([1.0, 0.0])), 1, -1e4, 1e4, 3))


def test_documents_that_were_not_found_count_in_the_ideal():
    """A document that cannot be ranked counts in the ideal, as in trec_eval."""
    queries = rw.Queries.from_arrays([[3.0], [2.0], [1.0]], [0, 1, 2], qid=[7, 7, 7])
    keep = np.array([True, True, False])
    for name, expected in (
        ("map", (1 / 2) / 2),
        ("recall@2", 1 / 2),
        ("ndcg", (1 / np.log2(3)) / (3 + 1 / np.log2(3))),
    ):
        bound = rw.parse_measure(name).prepare(queries.keep_retrieved(keep))
        assert bound.values(np.array([3.0, 2.0]))[0] == pytest.approx(expected, abs=1e-12)
        landscape = Landscape.of_prepared(MatrixColumns(queries.X[keep]), bound, queries.query_weight, rw.Serial())
        assert landscape.evaluate(np.ones(1)).value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(rw.InputError, match="without a document"):
        queries.keep_retrieved(np.zeros(3, dtype=bool))
