"""Agreement with other tools where the definitions coincide, on random lists with ties.

Conditions of equality with trec_eval (pytrec_eval, ir_measures): linear gain; ties by document id, descending; scores
compared as 32-bit floats; every judged document is in the run, so that its R and its ideal are the list's; ids sort as
bytes. With scikit-learn's ndcg_score: linear gain, ties averaged, at least two documents.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import dcg_score, ndcg_score

import rankwright as rw

ir_measures = pytest.importorskip("ir_measures")
pytrec_eval = pytest.importorskip("pytrec_eval")


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 150)
    n = int(sizes.sum())
    y = rng.integers(0, 4, n) * np.repeat(rng.random(150) < 0.9, sizes)
    docid = [f"d{i}" for i in rng.permutation(n)]
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), y, np.repeat(np.arange(150), sizes), docid=docid)
    return queries, rng.integers(0, 8, n) / 7


def as_trec(queries, scores):
    qrels, run = {}, {}
    for query, rows in zip(queries.qid, queries, strict=True):
        ids = queries.docid[rows].tolist()
        qrels[str(query)] = dict(zip(ids, map(int, queries.y[rows]), strict=True))
        run[str(query)] = dict(zip(ids, map(float, scores[rows]), strict=True))
    return qrels, run


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ndcg(dialect=trec_eval)", "ndcg"),
        ("ndcg@5(dialect=trec_eval)", "ndcg_cut_5"),
        ("ndcg@20(dialect=trec_eval)", "ndcg_cut_20"),
        ("map(dialect=trec_eval)", "map"),
        ("ap@5(dialect=trec_eval)", "map_cut_5"),
        ("p@5(dialect=trec_eval)", "P_5"),
        ("recall@5(dialect=trec_eval)", "recall_5"),
        ("mrr(dialect=trec_eval)", "recip_rank"),
    ],
)
def test_pytrec_eval(case, ours, theirs):
    queries, scores = case
    qrels, run = as_trec(queries, scores)
    names = {"ndcg_cut": "ndcg_cut.5,20", "P": "P.5", "recall": "recall.5", "map_cut": "map_cut.5"}
    base = theirs.rsplit("_", 1)[0] if theirs[-1].isdigit() else theirs
    result = pytrec_eval.RelevanceEvaluator(qrels, {names.get(base, base)}).evaluate(run)
    expected = np.array([result[str(query)][theirs] for query in queries.qid])
    assert rw.parse(ours).values(queries, scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ndcg@10(dialect=trec_eval)", "nDCG@10"),
        ("ap@100(dialect=trec_eval,rel=2)", "AP(rel=2)@100"),
        ("map(dialect=trec_eval)", "AP"),
        ("p@5(dialect=trec_eval,rel=2)", "P(rel=2)@5"),
        ("mrr(dialect=trec_eval)", "RR"),
        ("recall@5(dialect=trec_eval)", "R@5"),
    ],
)
def test_ir_measures(case, ours, theirs):
    queries, scores = case
    qrels, run = as_trec(queries, scores)
    measure = ir_measures.parse_measure(theirs)
    found = {row.query_id: row.value for row in ir_measures.iter_calc([measure], qrels, run)}
    expected = np.array([found[str(query)] for query in queries.qid])
    assert rw.parse(ours).values(queries, scores) == pytest.approx(expected, abs=1e-12)
    assert rw.parse(theirs).name == rw.parse(ours).name  # their names parse


@pytest.mark.parametrize("k", [1, 5, None])
def test_scikit_learn(case, k):
    queries, scores = case
    suffix = "" if k is None else f"@{k}"
    ours = rw.parse(f"ndcg{suffix}(dialect=sklearn)").values(queries, scores)
    ours_dcg = rw.parse(f"dcg{suffix}(dialect=sklearn)").values(queries, scores)
    for q, rows in enumerate(queries):
        if rows.stop - rows.start > 1:
            y, s = queries.y[rows][None], scores[rows][None]
            assert ours[q] == pytest.approx(ndcg_score(y, s, k=k), abs=1e-12)
            assert ours_dcg[q] == pytest.approx(dcg_score(y, s, k=k), abs=1e-12)
