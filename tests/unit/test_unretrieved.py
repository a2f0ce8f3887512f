"""Judged documents that no run found: they count in ideals and in numbers of relevant documents, and are never ranked."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from tests.contracts.test_rankers import name_of, quick
from tests.reference import measures as reference

import rankwright as rw
from rankwright.data.folds import Fold
from rankwright.data.unretrieved import Unretrieved
from rankwright.experiments.fold_cache import digest_fold
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.objectives.swap_lambdas import Lambdas
from rankwright.optimisers.columns import MatrixColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.rankers import RANKERS
from rankwright.scorers.linear import QueryScaling, StandardScaling


def make(n_queries: int = 40, seed: int = 0, grades: int = 4) -> rw.Queries:
    """Queries with weights, ids, interleaved rows and documents that were not found; some without anything relevant."""
    rng = np.random.default_rng(seed)
    sizes, missed = rng.integers(1, 9, n_queries), rng.integers(0, 5, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries), sizes + missed))
    y = rng.integers(0, grades, len(qid)) * (rng.random(n_queries) < 0.85)[qid]
    X = rng.random((len(qid), 3)) + 0.2 * y[:, None]
    everything = rw.Queries.from_arrays(
        X, y, qid, docid=[f"d{i}" for i in rng.permutation(len(qid))], weight=rng.random(n_queries) + 0.5
    )
    found = np.zeros(len(qid), dtype=bool)
    for query in range(n_queries):
        rows = np.flatnonzero(qid == query)
        found[rows[: max(1, sizes[query])]] = True
    return everything.keep_retrieved(found)


def others(queries: rw.Queries) -> list[list[float]]:
    assert queries.unretrieved is not None
    y, indptr = queries.unretrieved
    return [y[a:b].tolist() for a, b in pairwise(indptr.tolist())]


def ndcg(k=None, gains="exp", discounts="log2"):
    def value(found, missed):
        everything = sorted(found + missed, reverse=True)
        ideal = reference.dcg(everything, k, gains, discounts)
        return reference.dcg(found, k, gains, discounts) / ideal if everything[0] > 0 else 0.0

    return value


def share(function, k=None, rel=1, norm="all"):
    """A sum over the found documents, divided by the number of relevant ones."""

    def value(found, missed):
        n = sum(grade >= rel for grade in found + missed)
        own = sum(grade >= rel for grade in found)
        n, own = (min(n, k), min(own, k)) if norm == "min" else (n, own)
        return function(found) * own / n if n else 0.0

    return value


def of_found(function):
    return lambda found, missed: function(found)


BY_NAME = {name: of_found(value) for name, value in reference.BY_NAME.items()}
BY_NAME |= {
    "ndcg": ndcg(),
    "ndcg@1": ndcg(1),
    "ndcg@3": ndcg(3),
    "ndcg@10": ndcg(10),
    "ndcg@3(gain=linear)": ndcg(3, "linear"),
    "ndcg@3(gain=pow2)": ndcg(3, "pow2"),
    "ndcg@3(discount=letor)": ndcg(3, "exp", "letor"),
    "ndcg@3(discount=reciprocal)": ndcg(3, "exp", "reciprocal"),
    "map": share(reference.average_precision),
    "map(rel=2)": share(reference.BY_NAME["map(rel=2)"], rel=2),
    "ap@2": share(reference.BY_NAME["ap@2"], k=2),
    "ap@2(norm=min)": share(reference.BY_NAME["ap@2(norm=min)"], k=2, norm="min"),
    "recall@2": share(reference.BY_NAME["recall@2"], k=2),
    "wta": lambda found, missed: float(found[0] == max(found + missed) and found[0] > 0),
}


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("ties", ["pessimistic", "docid"])
def test_every_measure_divides_by_all_judged_documents(name, ties):
    queries = make(60)
    scores = np.random.default_rng(1).integers(0, 4, queries.n_docs) / 3
    option = f"{name[:-1]},ties={ties})" if name.endswith(")") else f"{name}(ties={ties})"
    measure, missed = rw.parse_measure(option), others(queries)
    values = measure.values(queries, scores)
    grouped, of_row = queries.grouped(), queries.group(scores)
    for q, rows in enumerate(grouped):
        y, s = grouped.y[rows].tolist(), of_row[rows].tolist()
        order = reference.rank(y, s, ties, grouped.docid[rows].tolist())
        assert values[q] == pytest.approx(BY_NAME[name]([y[i] for i in order], missed[q]), abs=1e-12)


@pytest.mark.parametrize(("empty", "value"), [("0", 0.0), ("1", 1.0), ("skip", np.nan)])
@pytest.mark.parametrize("name", ["ndcg@3", "map", "mrr", "err", "p@2", "recall@2", "wta", "rbp", "dcg"])
def test_a_query_is_empty_only_if_nothing_judged_is_relevant(name, empty, value):
    queries = rw.Queries.from_arrays(np.zeros((3, 1)), [0, 0, 1], [1, 2, 3]).replace(
        unretrieved=Unretrieved(np.array([2.0, 0.0]), np.array([0, 1, 2, 2]))
    )
    bound = rw.parse_measure(f"{name}(empty={empty})").prepare(queries)
    np.testing.assert_array_equal(bound.values(np.zeros(3))[:2], [0.0, value])
    assert bound.is_constant.tolist() == [True, True, False]
    assert bound.is_counted.tolist() == [True, empty != "skip", True]


def test_highest_grades_are_of_all_judged_documents():
    queries = rw.Queries.from_arrays(np.zeros((2, 1)), [1, 0], [1, 1])
    queries = queries.replace(unretrieved=Unretrieved(np.array([3.0]), np.array([0, 1])))
    assert queries.max_grade == 3.0
    assert rw.parse_measure("err(max=data)").values(queries, np.array([1.0, 0.0]))[0] == 1 / 8
    with pytest.raises(rw.InputError, match="grade 3 found"):
        rw.parse_measure("err(max=2)").prepare(queries)


def test_it_travels_with_its_queries(tmp_path):
    queries, rng = make(), np.random.default_rng(0)
    expected, at = others(queries), rng.permutation(len(queries))[:17]
    assert others(queries.take(at)) == [expected[i] for i in at]
    assert others(queries.grouped()) == expected
    assert [part for shard in queries.grouped().shards(5) for part in others(shard)] == expected
    assert others(queries.grouped().slice(3, 9)) == expected[3:9]
    assert others(pickle.loads(pickle.dumps(queries))) == expected
    assert others(QueryScaling()(queries)) == others(StandardScaling.fit(queries)(queries)) == expected
    assert others(queries.replace(weight=None)) == expected
    assert sum(len(others(fold.test)) for fold in rw.split_folds(queries, 5, 0)) == len(expected)
    back = load_queries(save_queries(queries, tmp_path))
    assert others(back) == expected
    assert digest_fold(Fold(back, back, back)) == digest_fold(Fold(queries, queries, queries))
    plain = queries.replace(unretrieved=None)
    assert digest_fold(Fold(plain, plain, plain)) != digest_fold(Fold(queries, queries, queries))


def test_documents_are_left_out_step_by_step():
    queries, rng = make(), np.random.default_rng(0)
    scores, keep = rng.random(queries.n_docs), rng.random(queries.n_docs) < 0.5
    for rows in queries.ranked(scores):
        keep[rows[0]] = True
    part = queries.keep_retrieved(keep)
    assert part.n_docs == keep.sum()
    before, after = (np.sort(each.with_unretrieved()[0].y) for each in (queries, part))
    np.testing.assert_array_equal(before, after)
    with pytest.raises(rw.InputError, match="without a document"):
        queries.keep_retrieved(np.zeros(queries.n_docs, bool))


def test_training_on_swaps_and_line_searches_sees_the_same_norms():
    queries = make().grouped()
    measure = rw.parse_measure("ndcg@5")
    scores = queries.X @ np.array([1.0, 0.5, 0.0])
    landscape = Landscape.of(queries, measure, rw.Serial())
    assert landscape.evaluate(np.array([1.0, 0.5, 0.0])).value == pytest.approx(measure.mean(queries, scores), abs=1e-9)
    bound = measure.for_training().prepare(queries)
    other = Landscape.of_prepared(MatrixColumns(queries.X), bound, queries.query_weight, rw.Serial())
    assert other.evaluate(np.array([1.0, 0.5, 0.0])).value == pytest.approx(measure.mean(queries, scores), abs=1e-9)
    plain = queries.replace(unretrieved=None)
    lost, kept = (Lambdas(measure).prepare(each)(scores).gradient for each in (queries, plain))
    factor = np.divide(
        measure.prepare(queries).arrays.scale, plain_scale := measure.prepare(plain).arrays.scale, where=plain_scale > 0,
        out=np.zeros(len(queries)),
    )  # fmt: skip
    np.testing.assert_allclose(lost, kept * np.repeat(factor, queries.sizes), atol=1e-12)


@pytest.mark.parametrize("ranker", RANKERS, ids=name_of)
def test_rankers_train_on_what_can_be_ranked_and_are_judged_by_all(ranker):
    queries = make(30, grades=2)
    measure = "map(dialect=trec_eval)"
    fitted = quick(ranker, measure=measure).fit(queries, valid=queries)
    scores = fitted.predict(queries)
    assert scores.shape == (queries.n_docs,)
    expected = rw.evaluate(scores, queries, measure)[measure]
    assert fitted.score(queries) == expected
    assert rw.evaluate(fitted, queries, measure)[measure] == expected
    assert expected < rw.evaluate(scores, queries.replace(unretrieved=None), measure)[measure]
    kept = [record["valid"] for record in fitted.history_ if isinstance(record.get("valid"), float)]
    assert not kept or max(kept) <= rw.parse_measure(measure).for_training().mean(queries, queries.y) + 1e-12


def test_measures_of_ones_own_may_look_at_them():
    queries = make()
    seen = []

    def found_share(grades, unretrieved):
        seen.append(unretrieved.tolist())
        relevant = (grades > 0).sum() + (unretrieved > 0).sum()
        return float((grades > 0).sum() / relevant) if relevant else 0.0

    measure = rw.make_measure(found_share, "found_share")
    values = measure.values(queries, np.zeros(queries.n_docs), rw.Serial())
    assert seen == others(queries)
    np.testing.assert_allclose(values, rw.parse_measure("recall").values(queries, np.zeros(queries.n_docs)))
    part = measure.truncate(1).prepare(queries.grouped()).slice(3, 9)
    part.values(np.zeros(int(part.indptr[-1])), rw.Serial())
    assert seen[-6:] == others(queries)[3:9]
    plain = rw.make_measure(lambda grades: float(grades[0] > 0), "plain")
    assert plain.values(queries, np.zeros(queries.n_docs)).shape == (len(queries),)


def test_letor_text_cannot_hold_them(tmp_path):
    queries = make().replace(weight=None, features=None)
    with pytest.raises(rw.InputError, match=r"documents that no run found; .* queries.replace\(unretrieved=None\)"):
        rw.write_letor(queries, tmp_path / "x.txt")
    rw.write_letor(queries.replace(unretrieved=None), tmp_path / "x.txt")
