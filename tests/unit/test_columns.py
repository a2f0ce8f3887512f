"""Landscapes over the leaves of trees, beside the same values in a matrix; scores that grow by columns; polishing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import random_queries
from tests.reference.line_search import crossings, inner_points, values_along

import rankwright as rw
from rankwright.optimisers import landscape as landscapes
from rankwright.optimisers.ascent import ClimbRules, climb_cyclic
from rankwright.optimisers.boosting_loop import AdditiveScores
from rankwright.optimisers.columns import MatrixColumns, TreeColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import MaximumLikelihoodStep, MidpointStep, search_line
from rankwright.optimisers.polishing import polish_weights
from rankwright.scorers import Trees

MEASURES = ("ndcg@3", "ndcg", "map", "err", "mrr", "p@2", "dcg@5")
KINDS = (np.uint8, np.uint16, np.uint32)


def made(rng, n_docs, n_trees, kind="any", dtype=np.uint8):
    """Trees with random leaves, and their values as a matrix. `exact`: sums of a few values have no rounding."""
    sizes = rng.integers(1, 6, n_trees)
    leaves = np.array([rng.integers(0, size, n_docs) for size in sizes], dtype=dtype).reshape(n_trees, n_docs)
    values = rng.normal(size=sizes.sum())
    if kind == "exact":
        values = np.rint(4 * values) / 8
    first = np.concatenate([[0], np.cumsum(sizes)])
    matrix = np.column_stack([values[first[t] + leaves[t].astype(int)] for t in range(n_trees)])
    return TreeColumns(leaves, first, values), MatrixColumns(matrix)


def exact_weights(rng, n):
    return rng.integers(-4, 5, n) / 2


@st.composite
def problems(draw, kind="any"):
    """Queries, trees and the same as a matrix, and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    queries = random_queries(rng, m=draw(st.integers(1, 6)))
    if not queries.y.any():
        queries.y[0] = 1.0
    leaves, dense = made(rng, queries.n_docs, draw(st.integers(1, 7)), kind, draw(st.sampled_from(KINDS)))
    weights = exact_weights(rng, leaves.shape[1]) if kind == "exact" else rng.normal(size=leaves.shape[1])
    return queries, leaves, dense, weights


def both(queries, leaves, dense, measure):
    """The landscape over trees, and that over the matrix."""
    bound = rw.parse_measure(measure).with_max_grade(4.0).for_training().prepare(queries)
    return [Landscape.of_prepared(each, bound, queries.query_weight, rw.Serial()) for each in (leaves, dense)]


class TestLeaves:
    @given(problems())
    def test_values(self, problem):
        queries, leaves, dense, weights = problem
        assert leaves.shape == dense.shape == dense.X.shape
        np.testing.assert_allclose(leaves.scores(weights), dense.X @ weights, atol=1e-12)
        for t in range(leaves.shape[1]):
            matrix, column = leaves.line(t)
            assert matrix[:, column].tobytes() == np.ascontiguousarray(dense.X[:, t]).tobytes()
        for columns in (leaves, dense):
            matrix, column = columns.line(weights)
            np.testing.assert_allclose(matrix[:, column], dense.X @ weights, atol=1e-12)
        np.testing.assert_array_equal(leaves.spreads(queries.indptr), dense.spreads(queries.indptr))

    @given(problems("exact"))
    def test_the_same_bits_without_rounding(self, problem):
        _, leaves, dense, weights = problem
        np.testing.assert_array_equal(leaves.scores(weights), dense.scores(weights))
        np.testing.assert_array_equal(leaves.line(weights)[0], dense.line(weights)[0])

    @given(problems())
    def test_rows_score_alike_wherever_they_are(self, problem):
        queries, leaves, dense, weights = problem
        for start, stop in pairwise(queries.indptr.tolist()):
            part = leaves.rows(start, stop)
            assert part.shape == dense.rows(start, stop).shape
            assert part.scores(weights).tobytes() == leaves.scores(weights)[start:stop].tobytes()
            assert np.shares_memory(part.leaves, leaves.leaves)

    def test_scores_are_predictions(self):
        """Of the model with these weights, to the bit: so what polishing promises is what is predicted."""
        queries = rw.make_queries(25, n_features=6, random_state=0)
        trees = rw.MART(n_estimators=12, num_leaves=6, min_child_samples=3).fit(queries).scorer_
        nodes = trees.forest.nodes
        columns = TreeColumns(trees.leaves(queries.X), nodes.first_leaf, nodes.value)
        weights = np.random.default_rng(0).normal(size=12)
        assert columns.scores(weights).tobytes() == Trees(trees.forest.with_weights(weights))(queries.X).tobytes()
        assert columns.scores(np.ones(12)).tobytes() == trees(queries.X).tobytes()


class TestLandscapes:
    @given(problems(), st.sampled_from(MEASURES))
    def test_the_same_points(self, problem, measure):
        queries, *columns, weights = problem
        found = [landscape.evaluate(weights) for landscape in both(queries, *columns, measure)]
        assert found[0].value == pytest.approx(found[1].value, abs=1e-12)
        assert found[0].spread == pytest.approx(found[1].spread, rel=1e-9)

    @pytest.mark.parametrize("exact", [True, False])
    @given(problems("exact"), st.sampled_from(MEASURES), st.integers(-6, 6))
    def test_the_same_steps(self, exact, problem, measure, t):
        queries, *columns, weights = problem
        n = len(weights)
        for direction in (0, n - 1, np.arange(n) / 2 - 1):
            found = []
            for landscape in both(queries, *columns, measure):
                landscape.exact_steps = exact
                found.append(landscape.step(landscape.evaluate(weights), direction, t / 4))
            assert found[0].value == found[1].value
            assert found[0].coef.tolist() == found[1].coef.tolist()
            scores = [np.concatenate([placed.scores for placed in point.shards.handles]) for point in found]
            assert scores[0].tolist() == scores[1].tolist()

    @given(problems("exact"), st.sampled_from(MEASURES))
    def test_the_same_lines(self, problem, measure):
        queries, *columns, weights = problem
        for direction in (0, len(weights) - 1, np.ones(len(weights))):
            profiles, jumps, steps = [], [], []
            for landscape in both(queries, *columns, measure):
                landscape.exact_steps = (
                    False  # or else scores are summed up anew at a t with rounding, in either's own order
                )
                point = landscape.evaluate(weights)
                profiles.append(landscape.profile(point, direction))
                jumps.append(landscape.find_jumps(point, direction))
                steps.append(
                    [
                        search_line(landscape, point, direction, choice=c)
                        for c in (MidpointStep(), MaximumLikelihoodStep(3))
                    ]
                )
            assert profiles[0].times.tolist() == profiles[1].times.tolist()
            assert profiles[0].values.tolist() == profiles[1].values.tolist()
            assert (jumps[0] is None) == (jumps[1] is None)
            if jumps[0] is not None:
                assert jumps[0].totals.sums.tolist() == jumps[1].totals.sums.tolist()
            for own, other in zip(*steps, strict=True):
                assert (own is None) == (other is None)
                if own is not None:
                    assert (own.low, own.high, own.t, own.value) == (other.low, other.high, other.t, other.value)

    @given(problems(), st.sampled_from(MEASURES))
    def test_the_best_of_a_line(self, problem, measure):
        queries, leaves, dense, weights = problem
        landscape = both(queries, leaves, dense, measure)[0]
        wanted = rw.parse_measure(measure).with_max_grade(4.0).for_training()
        scores, slopes = leaves.scores(weights), dense.X[:, 0]
        points = inner_points(crossings(queries, scores, slopes))
        best = values_along(queries, wanted, scores, slopes, points).max()
        found = search_line(landscape, landscape.evaluate(weights), 0)
        reached = landscape.evaluate(weights).value if found is None else found.value
        assert reached >= best - 1e-9

    @pytest.mark.parametrize("least", [-np.inf, 0.0])
    @pytest.mark.parametrize("measure", MEASURES)
    def test_the_same_climbs(self, measure, least):
        """Step by step, though the two round their sums differently."""
        for seed in range(4):
            rng = np.random.default_rng(seed)
            queries = random_queries(rng, m=15)
            columns = made(rng, queries.n_docs, 6)
            paths = []
            for landscape in both(queries, *columns, measure):
                climb = climb_cyclic(
                    landscape, landscape.evaluate(np.ones(6)), ClimbRules(least=least), np.random.default_rng(seed)
                )
                paths.append([step for steps in climb for step in steps])
            assert [step.direction for step in paths[0]] == [step.direction for step in paths[1]]
            values = [[step.value for step in path] for path in paths]
            np.testing.assert_allclose(*values, atol=1e-12)
            assert values[0] == sorted(values[0])
            if paths[0]:
                np.testing.assert_allclose(paths[0][-1].coef, paths[1][-1].coef, rtol=1e-9)
                assert paths[0][-1].coef.min() >= least

    @pytest.mark.parametrize("exact", [True, False])
    def test_parts_and_threads_change_nothing(self, monkeypatch, exact):
        monkeypatch.setattr(landscapes, "count_shards", lambda n: 5)
        rng = np.random.default_rng(3)
        queries = random_queries(rng, m=40)
        leaves, dense = made(rng, queries.n_docs, 6)
        bound = rw.parse_measure("ndcg@5").for_training().prepare(queries)
        found = []
        for columns, backend in ((leaves, rw.Serial()), (leaves, rw.Threads(3)), (dense, rw.Serial())):
            landscape = Landscape.of_prepared(columns, bound, queries.query_weight, backend)
            landscape.exact_steps = exact
            assert len(landscape.shards) == 5
            climb = climb_cyclic(landscape, landscape.evaluate(np.ones(6)), ClimbRules(), np.random.default_rng(0))
            found.append([step for steps in climb for step in steps][-1])
        assert found[0].coef.tobytes() == found[1].coef.tobytes()
        assert found[0].value == found[1].value == pytest.approx(found[2].value, abs=1e-12)

    def test_a_tree_that_cannot_change_a_ranking(self):
        queries = random_queries(np.random.default_rng(0))
        leaves = TreeColumns(np.zeros((2, queries.n_docs), np.uint8), np.array([0, 1, 3]), np.array([0.7, -1.0, 2.0]))
        landscape = both(queries, leaves, MatrixColumns(np.ones((queries.n_docs, 2))), "map")[0]
        point = landscape.evaluate(np.ones(2))
        for tree in (0, 1):  # one leaf; two, of which one is empty
            assert landscape.find_jumps(point, tree) is None
            assert search_line(landscape, point, tree, beat=point.value) is None
            assert search_line(landscape, point, tree).t == 0.0
            assert landscape.profile(point, tree).values.tolist() == [point.value]


@pytest.fixture
def in_parts(monkeypatch):
    """Landscapes of three parts, whatever the number of documents."""
    monkeypatch.setattr(landscapes, "count_shards", lambda n: 3)


@pytest.mark.usefixtures("in_parts")
class TestOtherColumns:
    @pytest.mark.parametrize("measure", MEASURES)
    def test_with_columns(self, measure):
        rng = np.random.default_rng(5)
        queries = random_queries(rng, m=20)
        wanted = rw.parse_measure(measure).with_max_grade(4.0).for_training()
        leaves, dense = made(rng, queries.n_docs, 4)
        landscape, _ = both(queries, leaves, dense, measure)
        weights = rng.normal(size=4)
        start = landscape.evaluate(weights)
        landscape.find_jumps(start, 0)  # knows the spreads of its columns from now on
        other = rng.normal(size=(queries.n_docs, 2)) * [1.0, 100.0]
        changed, point = landscape.with_columns(start, MatrixColumns(other))
        assert point.coef.tolist() == [0.0, 0.0]
        assert (point.value, point.spread, changed.n_columns) == (start.value, start.spread, 2)
        scores = leaves.scores(weights)
        for column, t in ((0, 0.5), (1, -0.25), (1, 0.0)):
            stepped = changed.step(point, column, t)
            expected = wanted.mean(queries, scores + t * other[:, column])
            assert stepped.value == pytest.approx(expected, abs=1e-12)
            assert stepped.coef[column] == t
            fresh = Landscape.of_prepared(
                MatrixColumns(np.c_[scores, other]), wanted.prepare(queries), queries.query_weight, rw.Serial()
            )
            along = fresh.profile(fresh.evaluate(np.array([1.0, 0.0, 0.0])), column + 1)
            found = changed.profile(point, column)
            np.testing.assert_allclose(found.times, along.times, rtol=1e-12)
            np.testing.assert_allclose(found.values, along.values, atol=1e-12)
        assert (landscape.n_columns, landscape.evaluate(weights).value) == (4, start.value)
        assert landscape.profile(start, 3).times.size > 0

    def test_with_columns_from_a_column_that_moves_nothing(self):
        """What is known of the old columns is not taken for the new ones."""
        rng = np.random.default_rng(9)
        queries = random_queries(rng, m=12)
        landscape = landscape_of(MatrixColumns(np.zeros((queries.n_docs, 1))), queries)
        point = landscape.evaluate(np.ones(1))
        assert landscape.find_jumps(point, 0) is None
        changed, point = landscape.with_columns(point, MatrixColumns(queries.y[:, None]))
        assert search_line(changed, point, 0).value == rw.parse_measure("ndcg@5").mean(queries, queries.y)
        assert landscape.find_jumps(landscape.evaluate(np.ones(1)), 0) is None

    @pytest.mark.parametrize("measure", MEASURES)
    def test_with_scores(self, measure):
        rng = np.random.default_rng(6)
        queries = random_queries(rng, m=20)
        wanted = rw.parse_measure(measure).with_max_grade(4.0).for_training()
        landscape = both(queries, *made(rng, queries.n_docs, 4), measure)[0]
        point = landscape.evaluate(rng.normal(size=4))
        for scores in (
            rng.normal(size=queries.n_docs),
            rng.integers(0, 3, queries.n_docs).astype(float),  # ties: of equal scores the lower grade comes first
            np.zeros(queries.n_docs),
            1e-300 * rng.normal(size=queries.n_docs),
        ):
            point = landscape.with_scores(point, scores)
            assert point.value == pytest.approx(wanted.mean(queries, scores), abs=1e-12)
            assert np.concatenate([placed.scores for placed in point.shards.handles]).tolist() == scores.tolist()
            for placed in point.shards.handles:
                for rows in pairwise(placed.shard.measure.indptr.tolist()):
                    ranked = placed.scores[placed.order[slice(*rows)]]
                    assert (np.diff(ranked) <= 0).all()


@pytest.mark.usefixtures("in_parts")
class TestAdditive:
    @pytest.mark.parametrize("measure", [*MEASURES, "own"])
    def test_against_ranking_anew(self, measure):
        wanted = own_measure() if measure == "own" else rw.parse_measure(measure).with_max_grade(4.0)
        rng = np.random.default_rng(7)
        queries = random_queries(rng, m=20)
        scored = AdditiveScores(queries, wanted.for_training(), rw.Serial())
        total = np.zeros(queries.n_docs)
        assert scored.value == pytest.approx(wanted.for_training().mean(queries, total), abs=1e-12)
        for t in range(6):
            column = rng.integers(-2, 3, queries.n_docs).astype(float) if t % 2 else rng.normal(size=queries.n_docs)
            scored.add(column)
            total += column
            assert scored.scores.tobytes() == total.tobytes()
            assert scored.value == pytest.approx(wanted.for_training().mean(queries, total), abs=1e-12)
        scored.set_scores(-total)
        assert scored.scores.tobytes() == (-total).tobytes()
        assert scored.value == pytest.approx(wanted.for_training().mean(queries, -total), abs=1e-12)
        scored.add(2 * total)
        assert scored.value == pytest.approx(wanted.for_training().mean(queries, total), abs=1e-12)

    @given(
        st.integers(0, 2**32), st.sampled_from(MEASURES), st.sampled_from([MidpointStep(), MaximumLikelihoodStep(2)])
    )
    def test_the_best_weight(self, seed, measure, choice):
        rng = np.random.default_rng(seed)
        queries = random_queries(rng, m=4)
        if not queries.y.any():
            queries.y[0] = 1.0
        wanted = rw.parse_measure(measure).with_max_grade(4.0).for_training()
        scored = AdditiveScores(queries, wanted, rw.Serial())
        scored.add(rng.normal(size=queries.n_docs))
        before, scores = scored.value, scored.scores
        column = rng.normal(size=queries.n_docs)
        points = inner_points(crossings(queries, scores, column))
        best = values_along(queries, wanted, scores, column, points).max()
        found = scored.search(column, choice)
        if found is None:
            assert before >= best - 1e-12
            return
        assert found.value >= best - 1e-9
        assert wanted.mean(queries, scores + found.t * column) == pytest.approx(found.value, abs=1e-12)
        assert scored.value == before  # to search is not to add
        scored.add(found.t * column)
        assert scored.value == pytest.approx(found.value, abs=1e-12)

    def test_query_weights(self):
        rng = np.random.default_rng(8)
        queries = random_queries(rng, m=10)
        weights = rng.integers(1, 5, 10)
        weighted = rw.Queries.from_arrays(queries.X, queries.y, group=queries.sizes, weight=weights)
        repeated = queries.take(np.repeat(np.arange(10), weights)) if weights.any() else queries
        column = rng.normal(size=queries.n_docs)
        rows = np.concatenate(
            [np.arange(s.start, s.stop) for s, w in zip(queries, weights, strict=True) for _ in range(w)]
        )
        found = []
        for each, values in ((weighted, column), (repeated, column[rows])):
            scored = AdditiveScores(each, rw.parse_measure("map").for_training(), rw.Serial())
            scored.add(values)
            found.append(scored.value)
        assert found[0] == pytest.approx(found[1], abs=1e-12)


def own_measure():
    return rw.make_measure(lambda grades: float((grades[:3] / 2).sum() / 3), name="three_first_of_columns")


def landscape_of(columns, queries, measure="ndcg@5"):
    return Landscape.of_prepared(
        columns, rw.parse_measure(measure).for_training().prepare(queries), queries.query_weight, rw.Serial()
    )


@pytest.fixture(scope="module")
def grown():
    """Trees that have learned something, by documents: of training and of validation queries."""
    queries = rw.make_queries(70, n_docs=14, n_features=8, noise=1.2, random_state=4)
    train, valid = queries.take(range(40)), queries.take(range(40, 70))
    trees = rw.MART(n_estimators=10, num_leaves=6, min_child_samples=4).fit(train).scorer_
    nodes = trees.forest.nodes
    sides = [TreeColumns(trees.leaves(each.X), nodes.first_leaf, nodes.value) for each in (train, valid)]
    return [landscape_of(*side) for side in zip(sides, (train, valid), strict=True)]


class Judge:
    """In place of validation queries: a value for every number of steps, and one for what is scored anew."""

    def __init__(self, after, anew, n=0):
        self.after, self.anew, self.n, self.value = after, anew, n, after(n)

    def evaluate(self, coef):
        found = Judge(self.after, self.anew)
        found.value = self.after(0) if (coef == 1.0).all() else self.anew
        return found

    def step(self, point, direction, t):
        return Judge(self.after, self.anew, point.n + 1)


class TestPolishWeights:
    def polished(self, train, held_out, seed=0, **rules):
        start = np.ones(train.n_columns)
        return polish_weights(train, held_out, start, ClimbRules(**rules), np.random.default_rng(seed))

    @pytest.mark.parametrize("seed", range(5))
    def test_without_validation(self, grown, seed):
        train, _ = grown
        found = self.polished(train, None, seed)
        values = [row["train"] for row in found.history]
        assert values == sorted(values)
        assert found.before == values[0] == train.evaluate(np.ones(10)).value
        assert found.after == values[-1] == train.evaluate(found.weights).value > found.before
        assert (found.valid_before, found.valid_after) == (None, None)
        assert ["kept" in row for row in found.history] == [False] * (len(values) - 1) + [True]
        assert "valid" not in found.history[0]
        weights = np.ones(10)
        for row in found.history[1:]:
            weights[row["column"]] = row["weight"]
            assert train.evaluate(weights).value == pytest.approx(row["train"], abs=1e-12)
        assert weights.tolist() == found.weights.tolist()

    @pytest.mark.parametrize("seed", range(5))
    def test_with_validation(self, grown, seed):
        """The best step on validation queries, the first of equals."""
        train, held_out = grown
        found = self.polished(train, held_out, seed)
        values = [row["valid"] for row in found.history]
        [kept] = [i for i, row in enumerate(found.history) if row.get("kept")]
        assert kept == int(np.argmax(values))
        assert found.valid_after == max(values) == held_out.evaluate(found.weights).value
        assert found.valid_before == values[0] == held_out.evaluate(np.ones(10)).value
        assert found.after == found.history[kept]["train"] == train.evaluate(found.weights).value
        trained = [row["train"] for row in found.history]
        assert trained == sorted(trained)  # before the guard
        weights = np.ones(10)
        for row in found.history[1 : kept + 1]:
            weights[row["column"]] = row["weight"]
        assert weights.tolist() == found.weights.tolist()

    def test_the_guard(self, grown):
        """Where validation queries say that the beginning was best, so it stays."""
        found = self.polished(grown[0], Judge(lambda n: 1.0 - n / 100, anew=0.5))
        assert found.weights.tolist() == [1.0] * 10
        assert [i for i, row in enumerate(found.history) if "kept" in row] == [0]
        assert found.before == found.after
        assert len(found.history) > 1

    def test_of_equals_the_first_is_kept(self, grown):
        found = self.polished(grown[0], Judge(lambda n: 0.6 if n < 2 else 0.7, anew=0.7))
        assert [i for i, row in enumerate(found.history) if "kept" in row] == [2]
        assert len(found.history) > 3

    def test_what_scores_anew_do_not_confirm(self, grown):
        """A step that was better by rounding alone, as updated scores have it, is not kept."""
        found = self.polished(grown[0], Judge(lambda n: 0.7 if n else 0.6, anew=0.59))
        assert found.weights.tolist() == [1.0] * 10
        assert (found.valid_before, found.valid_after) == (0.6, 0.6)
        assert [i for i, row in enumerate(found.history) if "kept" in row] == [0]

    def test_rules(self, grown):
        train, held_out = grown
        assert self.polished(train, held_out, least=0.0).weights.min() >= 0.0
        one = self.polished(train, None, max_rounds=1)
        assert {row["round"] for row in one.history[1:]} == {1}
        assert one.after <= self.polished(train, None).after
        assert len(self.polished(train, None, stop=lambda: True).history) == 1

    def test_large_data_are_updated_step_by_step(self, grown):
        train, held_out = (landscape.with_exact_steps() for landscape in grown)
        expected = self.polished(train, held_out)
        train.exact_steps = held_out.exact_steps = False
        found = self.polished(train, held_out)
        assert found.valid_after == pytest.approx(expected.valid_after, abs=1e-12)
        assert found.valid_after == held_out.evaluate(found.weights).value
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)

    def test_a_level_that_changes_no_ranking(self, grown):
        train, _ = grown
        found = self.polished(train, None)
        factor = found.level / found.weights
        assert len(set(factor.tolist())) == 1
        assert np.log2(factor[0]) == round(np.log2(factor[0]))
        start, end = train.evaluate(np.ones(10)), train.evaluate(found.level)
        assert 0.5 < end.spread / start.spread < 2.0
        assert end.value == found.after
