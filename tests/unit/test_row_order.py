"""The order of rows by their content: what it keeps, and what it does not depend on."""

from __future__ import annotations

import numpy as np

import rankwright as rw
from rankwright.data import row_hashes as row_order
from rankwright.data.row_hashes import sort_by_content
from rankwright.kernels.data.row_keys import compute_row_keys


def bits(queries):
    return [queries.X.tobytes(), queries.y.tobytes(), queries.indptr.tobytes(), queries.query_weight.tobytes()]


def test_documents_keep_their_queries_weights_and_ids():
    data = rw.make_queries(50, n_docs=9, n_features=7, random_state=0)
    data = rw.Queries.from_arrays(
        data.X, data.y, data.row_qid, docid=np.arange(data.n_docs), weight=np.arange(1.0, 51.0)
    )
    found = sort_by_content(data.grouped(), rw.Serial())
    assert sorted(found.docid.tolist()) == list(range(data.n_docs))
    assert found.X.tobytes() == data.X[found.docid].tobytes()
    assert found.y.tolist() == data.y[found.docid].tolist()
    assert found.row_qid.tolist() == data.row_qid[found.docid].tolist()
    weight = dict(zip(data.qid.tolist(), data.weight.tolist(), strict=True))
    assert found.weight.tolist() == [weight[qid] for qid in found.qid.tolist()]


def test_any_order_and_any_ids_give_one_order_on_every_backend():
    rng = np.random.default_rng(0)
    data = rw.make_queries(900, n_docs=12, n_features=5, random_state=0)  # of several parts
    X = np.where(rng.random(data.X.shape) < 0.3, np.nan, np.round(data.X) + 0.0)  # missing values, and equal documents
    first = rw.Queries.from_arrays(X, data.y, data.row_qid)
    expected = bits(sort_by_content(first.grouped(), rw.Serial()))
    for backend in (rw.Serial(), rw.Threads(3)):
        rows = rng.permutation(len(X))
        other = rw.Queries.from_arrays(X[rows], data.y[rows], [f"id {qid}" for qid in data.row_qid[rows]])
        assert bits(sort_by_content(other.grouped(), backend)) == expected


def test_what_is_in_order_is_not_copied():
    data = sort_by_content(rw.make_queries(30, random_state=0).grouped(), rw.Serial())
    assert sort_by_content(data, rw.Serial()) is data


def test_keys_tell_rows_apart_but_for_the_sign_of_zero_and_kinds_of_nan():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [np.nan, 1.0], [-np.nan, 1.0], [0.0, 1.0]], dtype=np.float32)
    keys = compute_row_keys(X.view(np.uint32), np.array([0, 0, 0, 0, 0, 1], np.uint64)).tolist()
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert len(set(keys)) == 4
    many = np.random.default_rng(0).integers(0, 3, (5000, 9)).astype(np.float32)
    different = {row.tobytes() for row in many}
    assert len(set(compute_row_keys(many.view(np.uint32), np.zeros(5000, np.uint64)).tolist())) == len(different)


def test_large_features_are_not_copied(monkeypatch):
    queries = rw.make_queries(20, random_state=0)
    assert sort_by_content(queries, rw.Serial()) is not queries
    monkeypatch.setattr(row_order, "LARGEST", queries.X.nbytes - 1)
    assert sort_by_content(queries, rw.Serial()) is queries


def test_scores_and_rows_are_in_the_callers_order():
    X = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    for qid in ([1, 1, 2, 2, 2], [1, 2, 1, 2, 2]):
        queries = rw.Queries.from_arrays(X, np.zeros(5), qid)
        assert queries.compute_scores(lambda rows: rows[:, 1].astype(float)).tolist() == X[:, 1].tolist()
        assert queries.read_rows([4, 0, 2, -2]).tolist() == X[[4, 0, 2, -2]].tolist()
