"""The rankings that bounds ask for, against listing all rankings of short queries and many of long ones."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment
from tests.reference import bounds as reference
from tests.reference.measures import average_precision, ndcg
from tests.scored import NAMES, by_query, grades_of, problems, scores_of

import rankwright as rw
from rankwright.objectives import rankings as module
from rankwright.objectives.rankings import PlainRankings, TableRankings, prepare_rankings

PHIS = ["pairs", "ranks"]
TRADES = [0.25, 1.0, 4.0]


def near(value, scores):
    """Equal but for rounding at the size of these scores."""
    return pytest.approx(value, rel=1e-9, abs=1e-12 * max(np.abs(scores).max(), 1.0))


def check_violated(listed, found, F, scores, trade, phi):
    """``found`` has the highest trade (1 - E) + F, or is perfect, under the pair Phi, and no other has a loss."""
    worth = trade * (1 - listed.E) + F
    best = worth[~listed.perfect].max()
    if phi == "pairs" and listed.perfect[found]:
        assert best <= F[listed.perfect].min() + 1e-9 * max(np.abs(scores).max(), 1.0)
    else:
        assert not listed.perfect[found]
        assert worth[found] == near(best, scores)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(problem=problems())
def test_equal_listing_all(name, phi, problem):
    check_all(name, phi, *problem)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("kind", ["random", "integer", "perfect"])
@pytest.mark.parametrize("name", ["map", "ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "err@3"])
def test_equal_listing_all_of_seven(name, kind, phi):
    rng = np.random.default_rng(len(name))
    grades = [grades_of(which, 7, rng) for which in ("graded", "binary")]
    scores = np.concatenate([scores_of(kind, y, rng) for y in grades])
    queries = rw.Queries.from_arrays(np.zeros((14, 1)), np.concatenate(grades), qid=np.repeat([0, 1], 7))
    assert len(prepare_rankings(rw.parse_measure(name), queries, phi).live) == 2
    check_all(name, phi, queries, scores)


def check_all(name, phi, queries, scores):
    """What is asked for of every query, against all its rankings."""
    found = prepare_rankings(rw.parse_measure(name), queries, phi)
    assert isinstance(found, TableRankings)
    asked = {
        "hardest": found.find_hardest_perfect(scores),
        "best": found.find_best_imperfect(scores),
        **{trade: found.find_most_violated(scores, trade) for trade in TRADES},
    }
    E = {key: found.E(order) for key, order in asked.items()}
    by_F = {key: found.F(order, scores) for key, order in asked.items()}
    live = set(found.live)
    for q, (rows, grades, s) in enumerate(by_query(queries, scores)):
        listed = reference.listing(name, grades)
        assert (q in live) == listed.live
        F = reference.F(listed, s, phi)
        for key, order in asked.items():
            at = listed.index(order[rows] - rows.start)
            assert E[key][q] == pytest.approx(listed.E[at], abs=1e-12)
            if not listed.live:
                assert E[key][q] == 1.0
                continue
            assert by_F[key][q] == near(F[at], s)
            if key == "hardest":
                assert listed.perfect[at]
                assert F[at] == near(F[listed.perfect].min(), s)
            elif key == "best":
                assert not listed.perfect[at]
                assert F[at] == near(F[~listed.perfect].max(), s)
            else:
                check_violated(listed, at, F, s, key, phi)


SUMS = ["ndcg", "ndcg@1", "ndcg@3", "dcg", "dcg@2", "rbp", "rbp@3", "p@2", "ndcg@3(discount=letor)"]


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", SUMS)
@settings(max_examples=25)
@given(problem=problems())
def test_assignment_equals_listing_all(name, phi, problem):
    """Where a lattice would be too large, sums over ranks are an assignment of documents to ranks.

    It is the best of all rankings. Only where all perfect ones have the same F must an imperfect one with a loss win.
    """
    queries, scores = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_NODES", 0)
        found = prepare_rankings(rw.parse_measure(name), queries, phi)
        asked = {trade: found.find_most_violated(scores, trade) for trade in TRADES}
        certain = found.searches_all
    for q in found.live:
        rows, grades, s = by_query(queries, scores)[q]
        listed = reference.listing(name, grades)
        F = reference.F(listed, s, phi)
        for trade, order in asked.items():
            at, worth = listed.index(order[rows] - rows.start), trade * (1 - listed.E) + F
            assert worth[at] == near(worth.max(), s)
            if certain[q]:
                check_violated(listed, at, F, s, trade, phi)
    if name in ("ndcg", "dcg", "rbp"):
        assert (certain == (phi == "pairs")).all()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("name", ["ndcg", "ndcg@10", "rbp"])
def test_assignment_on_long_lists(name, phi, monkeypatch):
    """Against SciPy, for scores that follow each other: the last solution is where the next search begins."""
    monkeypatch.setattr(module, "MAX_NODES", 0)
    rng = np.random.default_rng(0)
    queries = graded(rng, [30, 45, 60])
    found, scores = prepare_rankings(rw.parse_measure(name), queries, phi), rng.normal(size=queries.n_docs)
    gain, discount = found.arrays.gain, found.arrays.discount
    for step in (0.0, 0.01, 1.0, 30.0, 0.1):
        scores = np.round(scores + step * rng.normal(size=len(scores)), 1)
        order = found.find_most_violated(scores)
        value = 1 - found.E(order) + np.array([plain_F(order[r], gain, scores, phi) for r in queries])
        for q, rows in enumerate(queries):
            n, g, s = rows.stop - rows.start, gain[rows], scores[rows]
            by_rank = np.append(discount[:n], np.zeros(n))[:n]
            pairs = (g[:, None] != g).sum() / 2 if phi == "pairs" else n * (n - 1)
            worth = np.outer(s, n - 1 - 2 * np.arange(n)) / pairs - np.outer(g, by_rank / (np.sort(g)[::-1] @ by_rank))
            best = rows.start + np.argsort(linear_sum_assignment(worth, maximize=True)[1])
            expected = 1 + worth[best - rows.start, np.arange(n)].sum()
            if phi == "pairs":  # pairs of one class, in the order of their scores, do not count
                expected -= sum(np.abs(s[g == c][:, None] - s[g == c]).sum() / 2 for c in set(g)) / pairs
            assert value[q] == pytest.approx(expected, abs=1e-9)


def test_what_was_asked_before_does_not_matter(monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", 0)
    rng = np.random.default_rng(0)
    queries = graded(rng, [40])
    used, fresh = (prepare_rankings(rw.parse_measure("ndcg"), queries) for _ in range(2))
    for scores in rng.normal(size=(9, queries.n_docs)) * 1e15:
        used.find_most_violated(scores)
    for scores in rng.normal(size=(9, queries.n_docs)):
        found = [(r, r.find_most_violated(scores)) for r in (used, fresh)]
        values = [1 - r.E(order) + r.F(order, scores) for r, order in found]
        assert values[0] == pytest.approx(values[1], abs=1e-9)


@pytest.mark.parametrize(("name", "phi"), [("err", "pairs"), ("mrr", "pairs"), ("map", "ranks"), ("ap@2", "pairs")])
def test_a_lattice_too_large(name, phi, monkeypatch):
    """Only sums over ranks are assignments; the message says what to do."""
    monkeypatch.setattr(module, "MAX_NODES", 3)
    queries = rw.Queries.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], qid=[1] * 4)
    with pytest.raises(rw.InputError, match="cut-off, like @10"):
        prepare_rankings(rw.parse_measure(name), queries, phi).find_most_violated(np.arange(4.0))


def test_average_precision_needs_no_lattice(monkeypatch):
    rng = np.random.default_rng(0)
    queries, scores = graded(rng, [12, 20]), rng.normal(size=32)
    monkeypatch.setattr(module, "MAX_NODES", 0)
    found = prepare_rankings(rw.parse_measure("map"), queries)
    assert (found.E(found.find_most_violated(scores)) < 1).all()
    assert found.searches_all.all()


@pytest.mark.parametrize("name", ["map", "mrr", "err@3", "p@2", "wta"])
@pytest.mark.parametrize("grades", [[0, 0, 0], [2, 2], [1]], ids=["none relevant", "all equal", "one document"])
def test_flat_queries_are_perfect(name, grades):
    queries = rw.Queries.from_arrays(np.zeros((len(grades), 1)), grades, qid=[1] * len(grades))
    found = prepare_rankings(rw.parse_measure(name), queries)
    assert len(found.live) == 0
    assert found.E(np.arange(len(grades))) == pytest.approx([1.0])


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tied", [False, True])
def test_two_relevant_documents_among_many(phi, seed, tied):
    """Average precision at n = 40: all places of the two relevant documents, every class in the order of its scores."""
    rng, n = np.random.default_rng(seed), 40
    y = np.zeros(n)
    y[rng.choice(n, 2, replace=False)] = 1
    scores = np.round(rng.normal(size=n), 1 if tied else 9) + y * rng.choice([0.0, 1.0, 3.0])
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), y, qid=[1] * n)
    found = prepare_rankings(rw.parse_measure("map"), queries, phi)
    order = np.argsort(-scores, kind="stable")
    ranked = []
    for places in combinations(range(n), 2):
        row = np.empty(n, dtype=np.int64)
        row[list(places)] = order[y[order] == 1]
        row[np.setdiff1d(np.arange(n), places)] = order[y[order] == 0]
        ranked.append(row)
    E = np.array([average_precision(y[row].tolist()) for row in ranked])
    F = np.array([plain_F(row, y, scores, phi) for row in ranked])
    for trade in TRADES:
        most = found.find_most_violated(scores, trade)
        value = trade * (1 - average_precision(y[most].tolist())) + plain_F(most, y, scores, phi)
        imperfect = (trade * (1 - E) + F)[E < 1 - 1e-12].max()
        nothing = plain_F(found.find_hardest_perfect(scores), y, scores, phi) if phi == "pairs" else -np.inf
        assert value == pytest.approx(max(imperfect, nothing), abs=1e-12)
    best = found.find_best_imperfect(scores)
    assert plain_F(best, y, scores, phi) == pytest.approx(F[E < 1 - 1e-12].max(), abs=1e-12)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [0, 1 << 20], ids=["assignment", "lattice"])
def test_two_ranks_that_count(phi, seed, limit, monkeypatch):
    """NDCG@2 at n = 30 with four grades: any two documents first, the rest by score."""
    monkeypatch.setattr(module, "MAX_NODES", limit)
    rng, n = np.random.default_rng(seed), 30
    y, scores = rng.integers(0, 4, n).astype(float), rng.normal(size=n) * 3
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), y, qid=[1] * n)
    found = prepare_rankings(rw.parse_measure("ndcg@2"), queries, phi)
    order = np.argsort(-scores)
    ranked = [np.append(head, order[~np.isin(order, head)]) for head in permutations(range(n), 2)]
    E = np.array([ndcg(y[row].tolist(), 2) for row in ranked])
    F = np.array([plain_F(row, y, scores, phi) for row in ranked])
    for trade in TRADES:
        most = found.find_most_violated(scores, trade)
        value = trade * (1 - ndcg(y[most].tolist(), 2)) + plain_F(most, y, scores, phi)
        assert value == pytest.approx((trade * (1 - E) + F)[E < 1 - 1e-12].max(), abs=1e-12)
    best = found.find_best_imperfect(scores)
    assert plain_F(best, y, scores, phi) == pytest.approx(F[E < 1 - 1e-12].max(), abs=1e-12)


def graded(rng, sizes):
    """Queries of these sizes, with grades from 0 to 4."""
    qid = np.repeat(np.arange(len(sizes)), sizes)
    return rw.Queries.from_arrays(np.zeros((len(qid), 1)), rng.integers(0, 5, len(qid)), qid)


def plain_F(order, y, scores, phi):
    """F with every pair written out."""
    n = len(order)
    s, g = scores[order], y[order]
    i, j = np.triu_indices(n, 1)
    counted = g[i] != g[j] if phi == "pairs" else np.ones(len(i), dtype=bool)
    return (s[i] - s[j])[counted].sum() / (counted.sum() if phi == "pairs" else n * (n - 1))


class TestPlain:
    """A measure of which only values are known."""

    same = rw.make_measure(lambda grades: reference.MEASURES["ndcg"](grades.tolist()), name="ndcg_by_hand")

    @pytest.mark.parametrize("phi", PHIS)
    @settings(max_examples=40)
    @given(problem=problems(most=5))
    def test_a_users_measure(self, phi, problem):
        """The perfect ranking is the hardest, the imperfect one the best: neighbours suffice where all ranks count."""
        queries, scores = problem
        found, table = (
            prepare_rankings(self.same, queries, phi),
            prepare_rankings(rw.parse_measure("ndcg"), queries, phi),
        )
        assert isinstance(found, PlainRankings)
        assert found.live.tolist() == table.live.tolist()
        assert not found.searches_all.any()
        pairs = [
            (found.find_hardest_perfect(scores), table.find_hardest_perfect(scores)),
            (found.find_best_imperfect(scores), table.find_best_imperfect(scores)),
        ]
        for own, other in pairs:
            live = found.live
            assert (found.E(own) >= 1 - 1e-12)[live].tolist() == (table.E(other) >= 1 - 1e-12)[live].tolist()
            assert found.F(own, scores)[live] == near(table.F(other, scores)[live], scores)
        assert (found.find_most_violated(scores) == found.find_best_imperfect(scores)).all()

    def test_swaps_that_lower_nothing_are_passed_over(self):
        """Only the first document counts: the cheap swap of ranks 2 and 3 leaves the ranking perfect."""
        first = rw.make_measure(lambda grades: float(grades[0] == grades.max()), name="first_is_best")
        queries = rw.Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1] * 3)
        found = prepare_rankings(first, queries)
        assert found.find_best_imperfect(np.array([9.0, 1.1, 1.0])).tolist() == [1, 0, 2]
        assert found.find_best_imperfect(np.array([1.0, 1.1, 0.0])).tolist() == [1, 0, 2]


@pytest.mark.parametrize(("name", "grades"), [("rbp(p=0.5)", [1] * 60 + [0] * 20), ("err", [4] * 20 + [0] * 3)])
def test_the_best_imperfect_ranking_loses_what_can_be_seen(name, grades):
    """Strict on paper, a measure may lose nothing by a swap of late ranks: such a ranking counts as perfect."""
    queries = rw.Queries.from_arrays(np.zeros((len(grades), 1)), grades, qid=[1] * len(grades))
    scores = -np.arange(len(grades), dtype=float)  # perfect
    found = prepare_rankings(rw.parse_measure(name), queries, "pairs")
    order = found.find_best_imperfect(scores)
    assert found.E(order)[0] < 1 - 1e-12
    first = int(np.flatnonzero(order != np.arange(len(grades)))[0])
    assert first < grades.count(max(grades))


@pytest.mark.parametrize("name", ["mrr", "rbp(p=0.5)", "ndcg", "ndcg@10", "map", "err@10", "p@5", "wta"])
def test_long_lists_need_no_cut_off(name):
    queries = rw.make_queries(1, n_docs=3000, grades=2, random_state=0)
    found, scores = prepare_rankings(rw.parse_measure(name), queries, "pairs"), queries.X[:, 0].astype(float)
    assert found.E(found.find_hardest_perfect(scores))[0] == pytest.approx(1.0)
    assert found.E(found.find_best_imperfect(scores))[0] < 1.0


def test_the_first_document_is_all_that_counts_for_reciprocal_rank():
    queries = rw.Queries.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0], qid=[1] * 4)
    found, scores = prepare_rankings(rw.parse_measure("mrr"), queries, "pairs"), np.array([3.0, 2.0, 1.0, 0.0])
    assert found.find_hardest_perfect(scores).tolist() == [2, 3, 1, 0]
    assert found.find_best_imperfect(scores).tolist() == [1, 0, 2, 3]
