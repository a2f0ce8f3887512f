"""Queries: grouping, conversion, validation."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import rankwright as rw
from rankwright.data.grouping import query_ranges
from rankwright.data.mixed_queries import make_relevance


@given(st.lists(st.sampled_from(["a", "b", "c", "dd"]), min_size=1, max_size=20))
def test_grouping_is_stable_and_can_be_undone(qid):
    rows = np.arange(len(qid), dtype=float)
    queries = rw.Queries.from_arrays(rows[:, None], rows, qid)
    assert queries.qid.tolist() == list(dict.fromkeys(qid))
    grouped = queries.grouped()
    for name, part in zip(grouped.qid, grouped, strict=True):
        assert grouped.y[part].tolist() == [i for i, q in enumerate(qid) if q == name]
    assert queries.restore(grouped.y).tolist() == queries.y.tolist() == rows.tolist()
    assert queries.restore(grouped.X[:, 0]).tolist() == queries.X[:, 0].tolist() == rows.tolist()
    assert queries.group(rows).tolist() == grouped.y.tolist()
    assert queries.row_qid.tolist() == qid


@pytest.mark.parametrize("qid", [[3, 3, 1], ["x", "x", "a"], [2.0, 2.0, 1.0], np.array(["x", "x", 1], dtype=object)])
def test_query_ids_of_any_kind(qid):
    queries = rw.Queries.from_arrays(np.zeros((3, 1)), [0, 1, 2], qid)
    assert queries.sizes.tolist() == [2, 1]
    assert queries.grouped() is queries


def test_every_kind_of_table_gives_the_same_queries():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    y, qid = [0, 1, 2], [7, 7, 8]
    tables = [
        X,
        X.tolist(),
        X.astype(np.float32),
        np.asfortranarray(X),
        pd.DataFrame(X, columns=["a", "b"]),
        pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
        sp.csr_matrix(X),
        sp.coo_array(X),
    ]
    for table in tables:
        queries = rw.Queries.from_arrays(table, y, qid)
        assert queries.X.dtype == np.float32
        assert queries.X.flags.c_contiguous
        assert queries.X.tolist() == X.tolist()
    assert rw.Queries.from_arrays(tables[4], pd.Series(y), pd.Series(qid)).features == ("a", "b")
    assert rw.Queries.from_arrays(tables[5], pl.Series(y), pl.Series(qid)).features == ("a", "b")


@pytest.mark.parametrize("frames", [pd.DataFrame, pl.DataFrame])
def test_from_frame(frames):
    frame = frames({"q": ["b", "a", "b"], "l": [1, 0, 2], "x": [1.0, 2.0, 3.0], "id": ["i", "j", "k"], "z": [4, 5, 6]})
    queries = rw.Queries.from_frame(frame, label="l", qid="q", docid="id")
    assert queries.features == ("x", "z")
    assert queries.qid.tolist() == ["b", "a"]
    assert queries.docid.tolist() == ["i", "j", "k"]
    assert queries.X.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert queries.grouped().docid.tolist() == ["i", "k", "j"]
    with pytest.raises(rw.InputError, match=r"no column 'nope' for label= .*there are 'q', 'l'"):
        rw.Queries.from_frame(frame, label="nope", qid="q")


def test_from_frame_with_columns_that_are_not_text():
    frame = pd.DataFrame([[1, 0, 2.5], [1, 1, 3.5]])
    queries = rw.Queries.from_frame(frame, label=1, qid=0)
    assert queries.features == ("2",)
    assert queries.X.ravel().tolist() == [2.5, 3.5]


def test_group_sizes():
    queries = rw.Queries.from_arrays(np.zeros((5, 1)), np.arange(5), group=[2, 3])
    assert queries.indptr.tolist() == [0, 2, 5]


def test_take_and_slice():
    queries = rw.make_queries(6, random_state=0)
    taken = queries.take([4, 1])
    assert taken.qid.tolist() == queries.qid[[4, 1]].tolist()
    rows = list(queries)
    assert taken.X.tolist() == np.vstack([queries.X[rows[4]], queries.X[rows[1]]]).tolist()
    assert taken.docid.tolist() == [*queries.docid[rows[4]], *queries.docid[rows[1]]]
    part = queries.slice(1, 3)
    assert np.shares_memory(part.X, queries.X)
    assert part.y.tolist() == queries.y[queries.indptr[1] : queries.indptr[3]].tolist()
    assert queries.take(np.array([True, False, False, False, False, True])).qid.tolist() == queries.qid[[0, 5]].tolist()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 12))
def test_ranges_cover_every_query_once(sizes, n):
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    ranges = query_ranges(indptr, n)
    assert [q for a, b in ranges for q in range(a, b)] == list(range(len(sizes)))
    assert len(ranges) <= n


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(X=[[1.0], [2.0]], y=[0], qid=[1, 1]), "y has shape"),
        (dict(X=[[1.0]], y=[np.nan], qid=[1]), r"y\[0\] is NaN"),
        (dict(X=[[np.inf]], y=[0], qid=[1]), "infinite"),
        (dict(X=[[1e300]], y=[0], qid=[1]), "too large for float32"),
        (dict(X=[1.0], y=[0], qid=[1]), "1 dimension"),
        (dict(X=np.zeros((0, 2)), y=[], qid=[]), "0 documents"),
        (dict(X=[["a"]], y=[0], qid=[1]), "not a table of numbers"),
        (dict(X=[[1.0]], y=["a"], qid=[1]), "not numeric"),
        (dict(X=[[1.0]], y=[0]), "either qid"),
        (dict(X=[[1.0]], y=[0], qid=[1], group=[1]), "either qid"),
        (dict(X=[[1.0]], y=[0], qid=[1, 2]), "qid has shape"),
        (dict(X=[[1.0]], y=[0], qid=[np.nan]), r"qid\[0\] is missing"),
        (dict(X=[[1.0]] * 2, y=[0, 0], qid=np.array(["a", None], dtype=object)), r"qid\[1\] is missing"),
        (dict(X=[[1.0]] * 2, y=[0, 0], qid=pd.Series(["a", np.nan])), r"qid\[1\] is missing"),
        (dict(X=[[1.0]], y=[0], group=[2]), "add up to 2; expected the 1 rows"),
        (dict(X=[[1.0]], y=[0], group=[1.0]), "size of each query"),
        (dict(X=[[1.0]], y=[0], qid=[1], weight=[-1]), "not negative"),
        (dict(X=[[1.0]], y=[0], qid=[1], weight=[1, 2]), "there are 1 queries"),
        (dict(X=[[1.0]], y=[0], qid=[1], features=["a", "b"]), "2 feature names"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(rw.InputError, match=message):
        rw.Queries.from_arrays(**arguments)


def test_the_callers_arrays_are_not_changed():
    X, y = np.ones((2, 1), np.float32), np.array([1.0, 0.0])
    queries = rw.Queries.from_arrays(X, y, [2, 1])
    queries.y[:] = 9
    assert y.tolist() == [1.0, 0.0]


class TestSynthetic:
    def test_looks_like_letor(self):
        queries = rw.make_queries(300, n_features=20, random_state=0)
        assert set(queries.y) == {0.0, 1.0, 2.0}
        assert len(set(queries.sizes)) > 10
        empty = [not queries.y[rows].any() for rows in queries]
        assert 0 < sum(empty) < 150
        X = queries.X
        assert (np.ptp(X, axis=0) == 0).any()
        assert (np.round(X) == X).all(axis=0).sum() > 3
        correlation = np.corrcoef(X[:, np.ptp(X, axis=0) > 0].T)
        assert (np.abs(correlation - np.eye(len(correlation))) > 0.9).any()

    def test_is_seeded(self):
        one, two, other = (rw.make_queries(5, random_state=s) for s in (3, 3, 4))
        assert one.X.tobytes() == two.X.tobytes()
        assert one.X.tobytes() != other.X.tobytes()

    def test_a_ranker_can_learn_it(self):
        queries = rw.make_queries(160, random_state=0)
        train, test = queries.take(range(80)), queries.take(range(80, 160))
        assert rw.Regression().fit(train).score(test) > rw.SingleFeature(feature=4).fit(train).score(test) + 0.1

    def test_the_linear_kind_is_the_default_and_keeps_its_values(self):
        for named in ({}, {"kind": "linear", "missing": 0.0}):
            queries = rw.make_queries(4, n_docs=5, n_features=10, random_state=3, **named)
            assert queries.sizes.tolist() == [14, 9, 1, 2]
            assert queries.y.tolist() == [
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                1.0,
                0.0,
                0.0,
                1.0,
                0.0,
                0.0,
                0.0,
                0.0,
            ]
            last = [0.2754657, 2.0, 54.33469, 1.881617, 0.05764304, -0.0184468, 2.0, 1.2, 0.0, -3.057057]
            np.testing.assert_allclose(queries.X[-1], last, rtol=1e-6)

    def test_missing_values_only_replace_others(self):
        for kind in ("linear", "mixed"):
            whole, holes = (rw.make_queries(80, kind=kind, missing=m, random_state=2) for m in (0.0, 0.2))
            missing = np.isnan(holes.X)
            assert not np.isnan(whole.X).any()
            np.testing.assert_array_equal(holes.X[~missing], whole.X[~missing])
            np.testing.assert_array_equal(holes.y, whole.y)
            assert abs(missing.mean() - 0.2) < 0.03
            # A document lacks a field: features 5 apart are missing together, and no others.
            np.testing.assert_array_equal(missing[:, 0], missing[:, 5])
            assert abs(np.corrcoef(missing[:, 0], missing[:, 1])[0, 1]) < 0.1

    @pytest.mark.parametrize("wrong", [{"kind": "trees"}, {"missing": 1.0}, {"missing": -0.1}, {"missing": np.nan}])
    def test_a_wrong_kind_or_share_is_refused(self, wrong):
        with pytest.raises(rw.InputError, match=next(iter(wrong))):
            rw.make_queries(3, **wrong)


class TestMixed:
    def test_looks_like_web_search(self):
        queries = rw.make_queries(300, n_features=30, kind="mixed", random_state=0)
        assert queries.X.dtype == np.float32
        assert set(queries.y) == {0.0, 1.0, 2.0}
        empty = [not queries.y[rows].any() for rows in queries]
        assert 0 < sum(empty) < 150
        X = queries.X.astype(np.float64)
        varying = np.ptp(X, axis=0) > 0
        assert 0 < (~varying).sum() < 5
        assert (np.round(X) == X).all(axis=0).sum() > 3  # counts and bits
        assert (X[:, varying].max(axis=0) > 8 * X[:, varying].std(axis=0)).any()  # heavy tails
        sizes = np.abs(X[:, varying]).mean(axis=0)
        assert sizes.max() > 1_000 * sizes.min()
        correlation = np.corrcoef(X[:, varying].T)
        assert (np.abs(correlation - np.eye(len(correlation))) > 0.9).any()  # copies
        within = [np.ptp(X[rows], axis=0) == 0 for rows in queries]
        assert (np.all(within, axis=0) & varying).any()  # features of the query alone

    def test_is_seeded(self):
        one, two, other = (rw.make_queries(5, kind="mixed", missing=0.1, random_state=s) for s in (3, 3, 4))
        assert one.X.tobytes() == two.X.tobytes()
        assert one.y.tobytes() == two.y.tobytes()
        assert one.X.tobytes() != other.X.tobytes()

    @pytest.mark.parametrize("n_features", [1, 2, 7, 140])
    def test_any_number_of_features_and_single_documents(self, n_features):
        queries = rw.make_queries(3, n_docs=1, n_features=n_features, kind="mixed", noise=1e4, random_state=0)
        assert queries.X.shape[1] == n_features
        assert np.isfinite(queries.X).all()
        assert rw.make_queries(1, n_docs=1, kind="mixed", grades=1, random_state=1).y.tolist() == [0.0]

    def test_relevance_has_parts_that_are_not_linear(self):
        sizes = np.full(400, 50)
        relevance, aspects, query = make_relevance(sizes, np.random.default_rng(0))
        correlation = [np.corrcoef(relevance, aspect)[0, 1] for aspect in aspects]
        assert min(correlation[0], correlation[1], correlation[2], correlation[3]) > 0.1
        assert max(abs(correlation[6]), abs(correlation[7])) < 0.03  # best in the middle, and up to the query
        assert np.corrcoef(relevance, np.abs(aspects[6]))[0, 1] < -0.1
        assert np.corrcoef(relevance, aspects[7] * np.repeat(query, sizes))[0, 1] > 0.15
        assert np.corrcoef(relevance, aspects[4] * aspects[5])[0, 1] > 0.1

    def test_trees_are_better_than_a_line_and_a_blend_is_better_than_trees(self):
        values = np.mean([compare_families(seed) for seed in (0, 1, 2)], axis=0)
        by_line, by_trees, by_both = values
        assert by_line + 0.01 < by_trees < by_both


def compare_families(seed):
    """Return the mean NDCG@10 on unseen mixed queries of a line, of trees and of their blend, two parts trees."""
    queries = rw.make_queries(900, n_docs=30, n_features=30, kind="mixed", random_state=seed)
    train, test = queries.take(range(300)), queries.take(range(300, 900))
    line = rw.Regression(measure="ndcg@10").fit(train)
    trees = rw.LambdaMART(measure="ndcg@10", n_estimators=60, learning_rate=0.1, num_leaves=15).fit(train)
    scores = [ranker.predict(test) for ranker in (line, trees)]
    parts = [s / np.mean([s[rows].std() for rows in test]) for s in scores]
    return [rw.parse_measure("ndcg@10").mean(test, s) for s in (*scores, parts[0] + 2 * parts[1])]


class TestScaling:
    def test_standard(self):
        queries = rw.make_queries(20, random_state=0)
        scaled = rw.scale_features(queries, "standard").X
        varies = np.ptp(queries.X, axis=0) > 0
        assert scaled[:, varies].mean(axis=0) == pytest.approx(0, abs=1e-4)
        assert scaled[:, varies].std(axis=0) == pytest.approx(1, abs=1e-4)
        assert (scaled[:, ~varies] == 0).all()

    def test_standard_of_a_large_offset(self):
        X = (1.6e9 + np.arange(0, 128 * 100, 128.0))[:, None]
        queries = rw.Queries.from_arrays(X, np.zeros(100), np.zeros(100, int))
        assert rw.scale_features(queries, "standard").X.std() == pytest.approx(1, rel=1e-3)

    def test_a_feature_that_varies_little_is_not_constant(self):
        X = (1.6e9 + np.arange(-1500.0, 1500.0))[:, None]
        queries = rw.Queries.from_arrays(X, np.arange(3000) % 3, np.zeros(3000, int))
        assert len(np.unique(queries.X)) > 10
        assert rw.scale_features(queries, "standard").X.std() == pytest.approx(1, rel=1e-3)

    def test_a_constant_is_one_however_its_mean_is_rounded(self):
        queries = rw.Queries.from_arrays(np.full((999, 1), 0.1), np.zeros(999), np.zeros(999, int))
        assert (rw.scale_features(queries, "standard").X == 0).all()

    def test_per_query_does_not_overflow(self):
        queries = rw.Queries.from_arrays([[-3e38], [3e38]], [0, 1], [1, 1])
        assert rw.scale_features(queries, "query").X.ravel().tolist() == [0, 1]

    def test_per_query(self):
        queries = rw.make_queries(20, random_state=0)
        scaled = rw.scale_features(queries, "query")
        for rows in queries:
            low, high = queries.X[rows].min(axis=0), queries.X[rows].max(axis=0)
            spread = np.where(high > low, high - low, 1)
            assert scaled.X[rows] == pytest.approx((queries.X[rows] - low) / spread, abs=1e-5)

    def test_missing_values_stay_missing(self):
        queries = rw.Queries.from_arrays([[np.nan], [1.0], [3.0]], [0, 1, 0], [1, 1, 1])
        for kind in ("standard", "query"):
            scaled = rw.scale_features(queries, kind).X.ravel()
            assert np.isnan(scaled[0])
            assert np.isfinite(scaled[1:]).all()

    def test_unknown_kind(self):
        with pytest.raises(rw.InputError, match="expected one of standard, query"):
            rw.scale_features(rw.make_queries(2, random_state=0), "log")


class TestIds:
    def make(self, qid, **options) -> rw.Queries:
        return rw.Queries.from_arrays(np.zeros((len(qid), 1)), np.zeros(len(qid)), qid, **options)

    @pytest.mark.parametrize(
        "qid",
        [
            [1, None, 2],
            ["a", None, "b"],
            ["a", float("nan"), "b"],
            pd.Series(["a", pd.NA, "b"], dtype="string"),
            pd.Series([1, pd.NA, 2], dtype="Int64"),
            pd.Series([1.0, np.nan, 2.0]),
            np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"),
        ],
        ids=str,
    )
    def test_a_missing_id_is_named(self, qid):
        with pytest.raises(rw.InputError, match=r"qid\[1\] is missing; expected an id in every row"):
            self.make(qid)
        with pytest.raises(rw.InputError, match=r"docid\[1\] is missing"):
            self.make([1, 1, 1], docid=qid)

    @pytest.mark.parametrize("qid", [[1, "1"], ["1", 1], np.array([1, "1"], dtype=object), pd.Series(["1.5", 1.5])])
    def test_a_number_and_the_same_text_are_not_one_query(self, qid):
        with pytest.raises(rw.InputError, match="which are one text; expected ids of one kind"):
            self.make(qid)

    @pytest.mark.parametrize("qid", [["a", "a\0"], np.array(["a", "a\0"], dtype=object), ["x\0y", "x"]])
    def test_nul_is_refused(self, qid):
        with pytest.raises(rw.InputError, match="without a NUL character"):
            self.make(qid)

    def test_one_long_id_does_not_set_the_width_of_all(self):
        names = [f"q{i}" for i in range(400)]
        names[7] = "x" * 100_000
        queries = self.make(names, docid=names)
        assert queries.qid.tolist() == queries.docid.tolist() == queries.row_qid.tolist() == names
        assert queries.qid.nbytes < 100_000
        scores = rw.evaluate(np.zeros(400), queries, "map(dialect=trec_eval)")
        assert scores.values.shape == (1, 400)
        results = rw.compare_scores({"a": np.zeros(400)}, queries)
        assert sum(column.nbytes for table in results.tables.values() for column in table.values()) < 1_000_000

    def test_interleaved_long_ids_group(self):
        long, short = "x" * 100, "y"
        queries = self.make([long, short, long])
        assert queries.qid.tolist() == [long, short]
        assert queries.sizes.tolist() == [2, 1]


@pytest.mark.parametrize("nothing", [[], np.array([], dtype=int), np.zeros(3, dtype=bool)])
def test_taking_no_query_is_refused(nothing):
    with pytest.raises(rw.InputError, match="no query is left; expected the positions of at least one"):
        rw.make_queries(3, random_state=0).take(nothing)


def test_taking_a_query_that_is_not_there_is_refused():
    with pytest.raises(rw.InputError, match="there are 3 queries"):
        rw.make_queries(3, random_state=0).take([3])


def test_rank_refuses_two_queries_of_one_id():
    queries = rw.make_queries(3, random_state=0)
    model = rw.Regression().fit(queries)
    with pytest.raises(rw.InputError, match="occurs twice"):
        model.rank(queries.take([0, 1, 0]))


def test_a_queries_cannot_be_changed_and_can_be_pickled():
    queries = rw.Queries.from_arrays(np.eye(3), [0, 1, 2], ["b", "a", "b"], docid=["x", "y", "z"], weight=[1, 2])
    with pytest.raises(AttributeError, match="cannot be changed"):
        queries.qid = np.zeros(2)
    again = pickle.loads(pickle.dumps(queries))
    assert again.X.tolist() == queries.X.tolist()
    assert again.docid.tolist() == ["x", "y", "z"]
    assert again.grouped().indptr.tolist() == [0, 2, 3]
