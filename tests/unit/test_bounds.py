"""Bounds against listing all rankings; on long lists against each other and against what they bound."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference import bounds as reference
from tests.scored import by_query, problems, scores_of

import rankwright as rw
from rankwright.objectives import rankings as searching
from rankwright.objectives.upper_bounds import SURROGATES, Basic, TypeOne, TypeTwo, list_bounds

NAMES = ["map", "ndcg", "ndcg@3", "err", "p@2", "mrr", "wta", "ndcg@3(discount=letor)", "ap@2"]
PHIS = ["pairs", "ranks"]
SMOOTH = ["logistic", "exponential", "hinge", "margin"]


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(problem=problems(many=2))
def test_equal_listing_all(name, phi, problem):
    queries, scores = problem
    measure, parts = rw.parse_measure(name), by_query(queries, scores)
    expected = {Basic(measure): [reference.basic(name, g, s) for _, g, s in parts]}
    for kind in TypeOne.SURROGATES:
        expected[TypeOne(measure, kind)] = [reference.type_one(name, g, s, kind) for _, g, s in parts]
    for kind, over, perfect in product(SURROGATES, TypeTwo.OVER, TypeTwo.PERFECT):
        twin = [reference.type_two(name, g, s, kind, over, phi, perfect) for _, g, s in parts]
        expected[TypeTwo(measure, kind, over, phi, perfect)] = twin
    for bound, values in expected.items():
        found = bound.prepare(queries).at(scores)
        assert found.values == pytest.approx(values, rel=1e-9, abs=1e-9), bound
        assert found.exact.all(), bound


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", ["map", "ndcg@3", "err@3"])
def test_seven_documents(name, phi):
    """The longest lists of which all rankings are listed."""
    rng = np.random.default_rng(0)
    grades, scores = rng.integers(0, 3, 7), rng.normal(size=7) * 2
    queries = rw.Queries.from_arrays(np.zeros((7, 1)), grades, qid=[1] * 7)
    for kind in SURROGATES:
        for over in TypeTwo.OVER:
            found = TypeTwo(rw.parse_measure(name), kind, over, phi).prepare(queries).at(scores)
            assert found.values[0] == pytest.approx(reference.type_two(name, grades, scores, kind, over, phi))
            assert found.exact.all()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("over", TypeTwo.OVER)
@pytest.mark.parametrize("kind", SURROGATES)
@settings(max_examples=15)
@given(problem=problems(most=5), seed=st.integers(0, 9))
def test_gradient_equals_differences(kind, over, phi, problem, seed):
    """Along random directions, where the slopes on both sides agree."""
    queries, scores = problem
    bound = TypeTwo(rw.parse_measure("ndcg@3"), kind, over, phi).prepare(queries)
    way, h = np.random.default_rng(seed).normal(size=len(scores)), 1e-6
    here = bound(scores)
    ahead, behind = bound(scores + h * way).loss, bound(scores - h * way).loss
    size = 1 + abs(here.loss)
    assume(abs(ahead - 2 * here.loss + behind) < 1e-4 * h * size)
    assert here.gradient @ way == pytest.approx((ahead - behind) / (2 * h), abs=1e-3 * size)


@pytest.mark.parametrize("kind", SMOOTH)
def test_gradients_are_there(kind):
    """What the differences above are compared with is not zero all the time."""
    queries = rw.make_queries(5, n_docs=6, random_state=0)
    scores = np.random.default_rng(0).normal(size=queries.n_docs)
    for over in TypeTwo.OVER:
        assert np.abs(TypeTwo(rw.parse_measure("ndcg@3"), kind, over).prepare(queries)(scores).gradient).max() > 1e-3


@pytest.mark.parametrize("most", [6, 12])
@pytest.mark.parametrize("bound", [TypeTwo(rw.parse_measure("map"), k, o) for k in SURROGATES for o in TypeTwo.OVER] + [
    Basic(rw.parse_measure("map")), TypeOne(rw.parse_measure("map"))
], ids=str)  # fmt: skip
def test_queries_add_up_with_their_weights(bound, most):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, most + 1, 9)
    qid, weight = np.repeat(np.arange(9), sizes), rng.uniform(0, 2, 9) * (rng.random(9) < 0.8)
    y, scores = rng.integers(0, 3, len(qid)), rng.normal(size=len(qid))
    queries = rw.Queries.from_arrays(np.zeros((len(qid), 1)), y, qid, weight=weight)
    whole, per_query = bound.prepare(queries)(scores), bound.prepare(queries).at(scores).values
    loss = 0.0
    for q, rows in enumerate(queries):
        own = bound.prepare(rw.Queries.from_arrays(np.zeros((sizes[q], 1)), y[rows], np.zeros(sizes[q])))(scores[rows])
        assert per_query[q] == pytest.approx(own.loss)
        assert whole.gradient[rows] == pytest.approx(weight[q] * own.gradient)
        loss += weight[q] * own.loss
    assert whole.loss == pytest.approx(loss)


def long_queries(seed, m=6):
    """Queries of 30 to 60 documents, some with few relevant ones, with tied, separating and random scores."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(30, 61, m)
    grades = [rng.integers(0, 4, n) * (rng.random(n) < rng.choice([0.1, 0.5, 1.0])) for n in sizes]
    kinds = ["random", "integer", "duplicated", "perfect", "worst", "constant"]
    scores = np.concatenate([2 * scores_of(kinds[i % 6], g, rng) for i, g in enumerate(grades)])
    return rw.Queries.from_arrays(
        np.zeros((len(scores), 1)), np.concatenate(grades), np.repeat(np.arange(m), sizes)
    ), scores


LONG = ["map", "ndcg", "ndcg@10", "err@5", "rr@10", "p@5", "recall@10", "wta", "dcg@10", "rbp"]
SUMS = ["ndcg", "ndcg@10", "dcg@10", "rbp"]  # over ranks: assignments where a lattice is too large


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize(("name", "limit"), [(name, 1 << 20) for name in LONG] + [(name, 0) for name in SUMS])
def test_nothing_is_below_the_basic_loss(name, phi, limit, monkeypatch):
    """The contract of every bound, exact or not, on long lists."""
    monkeypatch.setattr(searching, "MAX_NODES", limit)
    measure, certain = rw.parse_measure(name), []
    queries, scores = long_queries(len(name))
    basic = Basic(measure).prepare(queries).at(scores).values
    assert basic.max() > 0.3
    others = [TypeTwo(measure, *how, effort=3000) for how in product(SURROGATES, TypeTwo.OVER, [phi], TypeTwo.PERFECT)]
    for bound in [*list_bounds(measure, phi), *others]:
        found = bound.prepare(queries).at(scores)
        assert (found.values >= basic - 1e-12).all(), bound
        certain.append(found.exact)
    assert not np.all(certain)


@pytest.mark.parametrize("phi", PHIS)
def test_a_users_measure(phi):
    """Bounds, though not exact ones; but all rankings of short lists are listed here too."""
    own = rw.make_measure(lambda grades: reference.MEASURES["ndcg@3"](grades.tolist()), name="first_three")
    queries, scores = long_queries(1)
    basic = Basic(own).prepare(queries).at(scores).values
    assert basic == pytest.approx(Basic(rw.parse_measure("ndcg@3")).prepare(queries).at(scores).values)
    for how in product(SURROGATES, TypeTwo.OVER, [phi]):
        found = TypeTwo(own, *how).prepare(queries).at(scores)
        assert (found.values >= basic - 1e-12).all()
        assert not found.exact.any()
    short = rw.Queries.from_arrays(np.zeros((5, 1)), [2, 0, 1, 0, 1], qid=[1] * 5)
    found = TypeTwo(own, "hinge", "sum", phi).prepare(short).at(scores[:5])
    assert found.exact.all()
    assert found.values[0] == pytest.approx(reference.type_two("ndcg@3", short.y, scores[:5], "hinge", "sum", phi))


@pytest.mark.parametrize("name", ["ndcg@10", "err@5"])
def test_searching_longer_finds_more(name):
    """A search that gave up says so, and has found at most what a longer one finds."""
    queries, scores = long_queries(0)
    for kind in ("logistic", "exponential", "hinge"):
        long, short = (
            TypeTwo(rw.parse_measure(name), kind, effort=effort).prepare(queries).at(scores) for effort in (10_000, 2)
        )
        assert (short.values <= long.values + 1e-12).all()
        assert (short.values == pytest.approx(long.values, abs=1e-9)) or not short.exact.all()
        assert not short.exact.all()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("seed", range(4))
def test_two_relevant_documents_among_many(phi, seed):
    """Exact at n = 25 as well: all places of the relevant documents, every class in the order of its scores."""
    rng, n = np.random.default_rng(seed), 25
    y = np.zeros(n)
    y[rng.choice(n, 2, replace=False)] = 1
    scores = (rng.normal(size=n) + y) * 4
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), y, qid=[1] * n)
    order = np.argsort(-scores)
    relevant, others = order[y[order] == 1], order[y[order] == 0]
    norm = 2 * (n - 2) if phi == "pairs" else n * (n - 1)

    def F(row):
        s, g = scores[row], y[row]
        return sum(s[i] - s[j] for i, j in combinations(range(n), 2) if phi == "ranks" or g[i] != g[j]) / norm

    hardest = F(np.append(relevant[::-1], others[::-1]))
    lost, x = [], []
    for places in list(combinations(range(n), 2))[1:]:  # the first is the perfect one
        row = np.empty(n, dtype=np.int64)
        row[list(places)] = relevant
        row[np.setdiff1d(np.arange(n), places)] = others
        lost.append(1 - reference.MEASURES["map"](y[row].tolist()))
        x.append(F(row) - hardest)
    for kind in SURROGATES:
        found = TypeTwo(rw.parse_measure("map"), kind, "max", phi).prepare(queries).at(scores)
        assert found.exact.all()
        expected = reference.SURROGATES[kind](np.array(lost), np.array(x)).max()
        assert found.values[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", ["map", "ndcg@10", "ndcg", "err@5", "p@5"])
@pytest.mark.parametrize("seed", range(3))
def test_margin_is_convex_in_the_scores(name, phi, seed):
    """Midpoint inequality, and no line through a point is above: the gradient is a subgradient."""
    queries, one = long_queries(seed)
    other = one + np.random.default_rng(seed).normal(size=len(one)) * [0.1, 1.0, 5.0][seed]
    bound = TypeTwo(rw.parse_measure(name), "margin", "max", phi).prepare(queries)
    ends, middle = (bound.at(one), bound.at(other)), bound.at((one + other) / 2)
    assert middle.exact.all()
    assert (middle.values <= (ends[0].values + ends[1].values) / 2 + 1e-9).all()
    for start, end, way in ((0, 1, other - one), (1, 0, one - other)):
        slope = np.add.reduceat(ends[start].gradient * way, queries.indptr[:-1])
        assert (ends[end].values >= ends[start].values + slope - 1e-9).all()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("over", TypeTwo.OVER)
@pytest.mark.parametrize("kind", SMOOTH)
@settings(max_examples=10)
@given(problem=problems(most=5), seed=st.integers(0, 99))
def test_surrogates_are_convex_in_the_scores(kind, over, phi, problem, seed):
    queries, one = problem
    other = one + np.random.default_rng(seed).normal(size=len(one))
    bound = TypeTwo(rw.parse_measure("err"), kind, over, phi).prepare(queries)
    ends, middle = bound.at(one).values + bound.at(other).values, bound.at((one + other) / 2).values
    assert (middle <= ends / 2 * (1 + 1e-9) + 1e-9).all()


class TestExtremes:
    """Sizes of scores that raw features have."""

    @pytest.mark.parametrize("phi", PHIS)
    @pytest.mark.parametrize("offset", [0.0, 1e6])
    @pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e3, 1e6])
    def test_ties_of_any_size(self, scale, offset, phi):
        """Of equal scores the worst order counts, however F is rounded."""
        rng = np.random.default_rng(0)
        for name in ("ndcg@3", "map") * 6:
            n = rng.integers(2, 6)
            grades, plain = rng.integers(0, 3, n), rng.integers(-1, 2, n).astype(float)
            queries, scores = rw.Queries.from_arrays(np.zeros((n, 1)), grades, qid=[1] * n), plain * scale + offset
            steps = {over: TypeTwo(rw.parse_measure(name), "step", over, phi) for over in TypeTwo.OVER}
            bounds = [*list_bounds(rw.parse_measure(name), phi), steps["sum"]]
            values = {bound: bound.prepare(queries).at(scores).values[0] for bound in bounds}
            assert min(values.values()) >= values[Basic(rw.parse_measure(name))] - 1e-9
            for over, step in steps.items() if offset == 0.0 else ():
                exact = reference.type_two(name, grades, plain, "step", over, phi)
                assert values[step] == pytest.approx(exact)

    @pytest.mark.parametrize("phi", PHIS)
    @pytest.mark.parametrize("kind", SURROGATES)
    @pytest.mark.parametrize("over", TypeTwo.OVER)
    @pytest.mark.parametrize("name", ["p", "map", "p@2", "ndcg@3"])
    def test_no_query_that_does_not_count_spoils_the_sum(self, name, over, kind, phi):
        """Scores so far apart that e^x overflows, in queries where every ranking is perfect."""
        y = [0, 0, 0, 2, 1] + [1, 0] * 6
        queries = rw.Queries.from_arrays(np.zeros((17, 1)), y, qid=[1] * 3 + [2] * 2 + [3] * 12)
        scores = np.array([0, 3e4, -3e4, 0, 1e5, *np.linspace(0, 1, 12)])
        bound = TypeTwo(rw.parse_measure(name), kind, over, phi)
        found, last = bound.prepare(queries).at(scores), bound.prepare(queries.slice(2, 3)).at(scores[-12:])
        assert found.values[0] == 0.0
        assert not np.isnan(found.values).any()
        assert not np.isnan(found.gradient).any()
        assert found.values[2] == pytest.approx(last.values[0])

    @pytest.mark.parametrize("kind", SURROGATES)
    def test_perfect_is_one_thing(self, kind):
        """The last two of many good documents change ERR by 2e-11: both the largest and the sum see it."""
        grades, scores = (5, 5, 5, 5, 5, 1, 0), np.arange(7.0, 0.0, -1.0)
        queries = rw.Queries.from_arrays(np.zeros((7, 1)), grades, qid=[1] * 7)
        for over in TypeTwo.OVER:
            found = TypeTwo(rw.parse_measure("err(max=5)"), kind, over).prepare(queries).at(scores).values[0]
            expected = reference.type_two("err(max=5)", grades, scores, kind, over)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_labels_and_bad_names():
    measure = rw.parse_measure("map")
    assert [bound.label for bound in list_bounds(measure)] == [
        "basic loss", "type one, exponential", "type one, logistic", "type two, step", "type two, logistic",
        "type two, exponential", "type two, hinge", "type two, margin",
    ]  # fmt: skip
    assert TypeTwo(measure, "hinge", "sum").label == "type two, hinge, sum"
    for make, message in (
        (lambda: TypeOne(measure, "hinge"), "surrogate='hinge'; expected one of exponential, logistic"),
        (lambda: TypeTwo(measure, "log"), "surrogate='log'"),
        (lambda: TypeTwo(measure, "hinge", "mean"), "over='mean'; expected one of max, sum"),
        (lambda: TypeTwo(measure, perfect="best"), "perfect='best'; expected one of measure, grades"),
        (lambda: TypeTwo(measure, phi="all"), "phi='all'; expected one of pairs, ranks"),
    ):
        with pytest.raises(rw.InputError, match=message):
            make()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_scores_that_are_no_numbers(value):
    queries = rw.make_queries(2, n_docs=40, random_state=0)
    scores = np.zeros(queries.n_docs)
    scores[3] = value
    with pytest.raises(rw.InputError, match="score 3 is not finite"):
        TypeTwo(rw.parse_measure("ndcg"), "margin").prepare(queries).at(scores)
