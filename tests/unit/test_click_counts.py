"""Clicks and positions follow their rows wherever these go, and wrong ones are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rankwright as rw
from rankwright.data.joined_queries import join_queries
from rankwright.data.row_hashes import sort_by_content
from rankwright.runtime.backends import Serial


def make_counts(rng, n_docs: int, n_queries: int) -> rw.ClickCounts:
    """Return random counts of at most three positions per document; some documents have none."""
    cells = [np.sort(rng.permutation(5)[: rng.integers(0, 4)]) + 1 for _ in range(n_docs)]
    shown = rng.integers(1, 50, sum(map(len, cells)))
    indptr = np.cumsum([0, *map(len, cells)])
    clicked = rng.binomial(shown, 0.3)
    examination = 1.0 / np.arange(1.0, 6.0)
    return rw.ClickCounts(indptr, np.concatenate(cells), shown, clicked, rng.integers(1, 90, n_queries), examination)


@pytest.fixture
def queries() -> rw.Queries:
    rng, n = np.random.default_rng(0), 60
    qid = rng.permutation(np.repeat(np.arange(12), 5))
    clicks = make_counts(rng, n, 12)
    X = np.column_stack([np.arange(n), rng.random(n)])
    return rw.Queries.from_arrays(X, rng.integers(0, 3, n), qid, position=rng.integers(1, 9, n), clicks=clicks)


def list_documents(queries: rw.Queries) -> dict[int, tuple]:
    """Return by the first feature, which names a document: its position and its cells."""
    clicks, found = queries.clicks, {}
    for row, name in enumerate(queries.X[:, 0].astype(int).tolist()):
        own = slice(clicks.indptr[row], clicks.indptr[row + 1])
        cells = (clicks.position[own].tolist(), clicks.n_shown[own].tolist(), clicks.n_clicked[own].tolist())
        found[name] = (int(queries.position[row]), *map(tuple, cells))
    return found


def list_lists(queries: rw.Queries) -> dict:
    return dict(zip(queries.qid.tolist(), queries.clicks.n_lists.tolist(), strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda q: q,
        lambda q: q.grouped(),
        lambda q: q.take([3, 1, 7]),
        lambda q: q.take(np.arange(12) % 2 == 0),
        lambda q: q.grouped().slice(2, 9),
        lambda q: q.grouped().shards(3)[1],
        lambda q: sort_by_content(q.grouped(), Serial()),
        lambda q: pickle.loads(pickle.dumps(q)),
        lambda q: q.with_X(q.X.copy()),
        lambda q: q.replace(y=np.zeros(60)),
        lambda q: q.replace(clicks=q.clicks, position=q.position),
        lambda q: rw.split_folds(q, 3, random_state=0)[1].test,
    ],
)
def test_clicks_follow_their_rows(queries, change):
    changed = change(queries)
    before = list_documents(queries)
    assert list_documents(changed) == {name: before[name] for name in list_documents(changed)}
    assert list_lists(changed) == {q: list_lists(queries)[q] for q in changed.qid.tolist()}
    assert changed.clicks.examination.tolist() == queries.clicks.examination.tolist()


def test_clicks_are_in_the_callers_order(queries):
    counts = make_counts(np.random.default_rng(1), 60, 12)
    for each in (
        queries.replace(clicks=counts).clicks,
        pickle.loads(pickle.dumps(queries.replace(clicks=counts))).clicks,
    ):
        assert each.indptr.tolist() == counts.indptr.tolist()
        assert each.n_clicked.tolist() == counts.n_clicked.tolist()
    assert queries.replace(clicks=None, position=None).clicks is None


def test_clicks_are_saved(queries, tmp_path):
    rw.write_queries(queries, tmp_path / "a.rwq")
    found = rw.read(tmp_path / "a.rwq")
    assert list_documents(found) == list_documents(queries)
    assert found.position.tolist() == queries.position.tolist()
    rw.convert(tmp_path / "a.rwq", out=tmp_path / "b.rwq")
    assert list_documents(rw.read(tmp_path / "b.rwq")) == list_documents(queries)
    with pytest.raises(rw.InputError, match="has clicks of its documents; expected it to be read alone"):
        rw.read(tmp_path / "a.rwq", tmp_path / "b.rwq")
    with pytest.raises(rw.InputError, match="the documents have positions"):
        rw.write_letor(queries, tmp_path / "a.txt")


def test_joined_queries_have_the_clicks_of_all_parts(queries):
    parts = [queries.take([0, 1, 2]), queries.take([3, 4])]
    joined = join_queries(parts)
    assert list_documents(joined) == list_documents(parts[0]) | list_documents(parts[1])
    assert joined.clicks.n_lists.tolist() == queries.clicks.n_lists[:5].tolist()
    with pytest.raises(rw.InputError, match="others have none"):
        join_queries([parts[0], parts[1].replace(clicks=None)])
    with pytest.raises(rw.InputError, match="different examination"):
        join_queries([parts[0], parts[1].replace(clicks=parts[1].clicks.with_examination([1.0] * 5))])


def test_equal_documents_with_other_clicks_are_sorted_the_same_whatever_their_order():
    """Training rows are sorted by content: clicks are part of it."""
    counts = rw.ClickCounts([0, 1, 2, 3], [1, 2, 3], [9, 9, 9], [1, 2, 3], [9], [1.0, 1.0, 1.0])
    found = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        clicks = counts.take(order, [0])
        queries = rw.Queries.from_arrays(np.zeros((3, 1)), np.zeros(3), [1, 1, 1], clicks=clicks)
        found.append(sort_by_content(queries, Serial()).clicks.n_clicked.tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"indptr": [0, 2, 1]}, "indptr does not rise"),
        ({"indptr": [0, 1, 4]}, "3 values of position; indptr has 4 cells"),
        ({"position": [1, 0, 2]}, "positions count from 1"),
        ({"position": [1, 1.5, 2]}, "whole numbers"),
        ({"n_clicked": [1, 2, 11]}, "11 clicks in 10 impressions"),
        ({"n_shown": [10, np.nan, 10]}, "n_shown has a wrong value"),
        ({"examination": [1.0, -0.5]}, "examination has a wrong value"),
    ],
)
def test_wrong_counts_are_refused(wrong, message):
    right = {"indptr": [0, 1, 3], "position": [1, 1, 2], "n_shown": [10, 10, 10], "n_clicked": [1, 2, 3]}
    right |= {"n_lists": [10], "examination": [1.0, 0.5]}
    rw.ClickCounts(**right)
    with pytest.raises(rw.InputError, match=message):
        rw.ClickCounts(**right | wrong)


def test_counts_of_other_sizes_are_refused():
    counts = rw.ClickCounts([0, 1, 3], [1, 1, 2], [9, 9, 9], [1, 2, 3], [9], [1.0, 0.5])
    rows = [[1.0], [2.0]], [0, 1]
    assert rw.Queries.from_arrays(*rows, [5, 5], clicks=counts).clicks.n_docs == 2
    with pytest.raises(rw.InputError, match="clicks are of 2 documents; X has 1 rows"):
        rw.Queries.from_arrays([[1.0]], [0], [5], clicks=counts)
    with pytest.raises(rw.InputError, match="n_lists of 1 queries; there are 2"):
        rw.Queries.from_arrays(*rows, [5, 6], clicks=counts)
    with pytest.raises(rw.InputError, match=r"position has shape \(1,\); X has 2 rows"):
        rw.Queries.from_arrays(*rows, [5, 5], position=[1])
    with pytest.raises(rw.InputError, match=r"position\[1\] is 0"):
        rw.Queries.from_arrays(*rows, [5, 5], position=[1, 0])
