"""Fusion: normalised scores, missing documents, what may be given, and what is written."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import fusion as reference

import rankwright as rw
from rankwright.data.document_pools import pool_documents
from rankwright.data.run_fusion import (
    NORMALISATIONS,
    fuse,
    make_equal_weights,
    name_runs,
    normalise_scores,
    open_qrels,
    open_runs,
    sum_reciprocal_ranks,
    write_fused,
)
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.optimisers.dominance import mark_top_candidates

EVERY = list(NORMALISATIONS)
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([-2.0, 0.0, 0.1, 3.0, 1e4]), min_size=1),
    min_size=1,
)


def one_query(*answers: dict[str, float]):
    return pool_documents(["q"], [{"q": answer} if answer else {} for answer in answers], {})


class TestNormalisation:
    @given(st.lists(RUNS, min_size=1, max_size=3), st.sampled_from(EVERY), st.data())
    def test_as_the_slow_twin(self, runs, how, data):
        weights = data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, -0.5]), min_size=len(runs), max_size=len(runs)))
        found = dict(fuse(runs, np.array(weights), how))
        expected = reference.fused(runs, weights, how)
        assert found.keys() == expected.keys()
        for query, documents in found.items():
            assert documents == pytest.approx(expected[query], rel=1e-5, abs=1e-5)  # features are float32

    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            ("min-max", [1.0, 0.25, 0.0, 0.0]),
            ("z", [(4 - 5 / 3) / math.sqrt(26 / 9), (1 - 5 / 3) / math.sqrt(26 / 9), *[-(5 / 3) / math.sqrt(26 / 9)] * 2]),
            ("rank", [1.0, 2 / 3, 1 / 3, 0.0]),
            ("rrf", [1 / 61, 1 / 62, 1 / 63, 0.0]),
            ("none", [4.0, 1.0, 0.0, 0.0]),
        ],
    )  # fmt: skip
    def test_by_formula(self, how, expected):
        """The last document is one that only the other run found."""
        pool = one_query({"a": 4.0, "b": 1.0, "c": 0.0}, {"d": 7.0})
        assert normalise_scores(pool, how)[:, 0].tolist() == pytest.approx(expected, abs=1e-15)

    @pytest.mark.parametrize(
        ("how", "constant", "missing"),
        [("min-max", 1.0, 0.0), ("z", 0.0, 0.0), ("rank", 0.75, 0.0), ("rrf", 1 / 61.5, 0.0), ("none", 0.1, 0.1)],
    )
    def test_equal_scores(self, how, constant, missing):
        pool = one_query({"a": 0.1, "b": 0.1}, {"c": 1.0})
        assert normalise_scores(pool, how)[:, 0].tolist() == [constant, constant, missing]

    @pytest.mark.parametrize(("how", "value"), [("min-max", 1), ("z", 0), ("rank", 1), ("rrf", 1 / 61), ("none", -7)])
    def test_one_document(self, how, value):
        assert normalise_scores(one_query({"a": -7.0}), how).tolist() == [[value]]

    @pytest.mark.parametrize("how", EVERY)
    def test_a_run_without_an_answer_is_0(self, how):
        pool = one_query({"a": -3.0, "b": -5.0}, {})
        assert normalise_scores(pool, how)[:, 1].tolist() == [0.0, 0.0]

    def test_a_constant_does_not_vary_by_rounding(self):
        pool = one_query(dict.fromkeys("abc", 0.1 + 1e6))  # whose mean rounds
        assert normalise_scores(pool, "z").ravel().tolist() == [0.0, 0.0, 0.0]

    def test_large_offsets_keep_their_differences(self):
        """They would be equal as float32."""
        pool = one_query({"a": 1e8, "b": 1e8 + 1, "c": 1e8 + 2})
        assert normalise_scores(pool, "min-max").ravel().tolist() == [0.0, 0.5, 1.0]


class TestReciprocalRankFusion:
    def test_by_formula(self):
        pool = one_query({"a": 9.0, "b": 5.0, "c": 5.0}, {"c": 0.3, "d": 0.1})
        expected = [1 / 61, 1 / 62.5, 1 / 62.5 + 1 / 61, 1 / 62]
        assert sum_reciprocal_ranks(pool).tolist() == pytest.approx(expected, rel=1e-10)

    def test_the_earlier_run_breaks_ties(self):
        pool = one_query({"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0})
        a, b = sum_reciprocal_ranks(pool)
        assert b < a < b * (1 + 1e-10)

    def test_equal_weights_add_up_to_1(self):
        for n in (2, 3, 7):
            assert make_equal_weights(n).sum() == pytest.approx(1.0, abs=1e-10)


class TestDominance:
    @given(
        st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3, st.integers(0, 2)), min_size=1, max_size=12),
        st.integers(1, 3),
        st.integers(0, 2**32 - 1),
    )
    def test_as_the_slow_twin_and_exact(self, rows, k, seed):
        X, y = np.array([row[:3] for row in rows], dtype=np.float32), np.array([row[3] for row in rows], dtype=float)
        n = len(y)
        order, keep, indptr = np.arange(n), np.zeros(n, dtype=bool), np.array([0, n])
        sort_rows(X.astype(float).sum(axis=1), y, indptr, 0, 1, order)
        mark_top_candidates(X, y, order, indptr, k, 0, 1, keep)
        assert keep.tolist() == reference.can_be_first(X.tolist(), y.tolist(), k)
        queries = rw.Queries.from_arrays(X, y, np.zeros(n, int))
        bound = rw.parse_measure(f"ap@{k}").prepare(queries)
        kept = rw.parse_measure(f"ap@{k}").prepare(queries.keep_retrieved(keep))
        rng = np.random.default_rng(seed)
        for weights in (*np.eye(3), np.ones(3), *rng.integers(0, 3, (5, 3)), *rng.random((5, 3))):
            scores = X.astype(float) @ weights
            if weights.any():
                assert kept.values(scores[keep]) == pytest.approx(bound.values(scores), abs=1e-12)

    def test_it_drops_most_of_a_long_list(self):
        rng = np.random.default_rng(0)
        X, y = rng.random((1000, 2)).astype(np.float32), np.zeros(1000)
        order, keep, indptr = np.arange(1000), np.zeros(1000, dtype=bool), np.array([0, 1000])
        sort_rows(X.astype(float).sum(axis=1), y, indptr, 0, 1, order)
        mark_top_candidates(X, y, order, indptr, 5, 0, 1, keep)
        assert 5 <= keep.sum() < 100


class TestFusing:
    RUNS = ({"q1": {"a": 1.0, "b": 3.0, "ü": 3.0}, "q2": {"x": 1.0}}, {"q1": {"c": 2.0}, "q3": {"y": 1.0}})

    def test_best_first_and_ties_as_trec_eval_has_them(self):
        found = dict(fuse(self.RUNS, np.array([0.5, 0.5]), "min-max"))
        assert list(found) == ["q1", "q2", "q3"]
        assert list(found["q1"].items()) == [("ü", 0.5), ("c", 0.5), ("b", 0.5), ("a", 0.0)]

    def test_depth(self):
        found = dict(fuse(self.RUNS, np.array([1.0, 0.0]), "min-max", 2))
        assert [list(documents) for documents in found.values()] == [["ü", "b"], ["x"], ["y"]]

    def test_many_queries_in_parts(self):
        run = {f"q{i}": {"a": float(i), "b": i + 1.0} for i in range(2500)}
        found = dict(fuse([run, run], np.array([0.5, 0.5]), "rank"))
        assert list(found) == list(run)
        assert found["q2499"] == {"b": 1.0, "a": 0.5}

    def test_written_and_read_again(self, tmp_path):
        found = dict(fuse(self.RUNS, np.array([0.3, 0.7]), "z"))
        write_fused(found.items(), tmp_path / "f.run.gz", "tag")
        assert rw.read_run(tmp_path / "f.run.gz") == found
        first = gzip.decompress((tmp_path / "f.run.gz").read_bytes()).decode().splitlines()[0].split()
        assert (first[0], first[1], first[3], first[5]) == ("q1", "Q0", "1", "tag")

    @pytest.mark.parametrize("documents", [{"a b": 1.0}, {"": 1.0}, {"a\n": 1.0}])
    def test_an_id_with_spaces_cannot_be_written(self, tmp_path, documents):
        with pytest.raises(rw.InputError, match="cannot be written"):
            write_fused([("q", {"good": 2.0}), ("q2", documents)], tmp_path / "f.run", "tag")
        assert not list(tmp_path.iterdir())


class Ranx:
    """An object as ranx has them."""

    def __init__(self, table, name=None):
        self.table, self.name = table, name

    def to_dict(self):
        return self.table


TABLE = {"q1": {"a": 1.0, "b": 0.5}}


class TestInputs:
    def test_qrels(self, tmp_path):
        (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b -1\n")
        expected = {"q1": {"a": 2.0, "b": 0.0}}
        for given_ in (
            tmp_path / "qrels",
            str(tmp_path / "qrels"),
            {"q1": {"a": 2, "b": -1}},
            Ranx({"q1": {"a": 2, "b": -1}}),
        ):
            assert open_qrels(given_) == expected
        assert open_qrels({1: {7: 2}, 2: {}}) == {"1": {"7": 2.0}}

    def test_runs_and_their_names(self, tmp_path):
        for place in ("x", "y"):
            (tmp_path / place).mkdir()
            (tmp_path / place / "bm25.run").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2 0.5 t\n")
        x, y = str(tmp_path / "x" / "bm25.run"), tmp_path / "y" / "bm25.run"
        assert list(name_runs([x, TABLE])) == ["bm25", "run2"]
        assert list(name_runs([x, y])) == [x, str(y)]
        assert list(name_runs([TABLE, Ranx(TABLE, "dense"), Ranx(TABLE)])) == ["run1", "dense", "run3"]
        assert list(name_runs({"mine": x, 2: y})) == ["mine", "2"]
        runs = {
            "a": x,
            "b": y,
            "c": TABLE,
            "d": Ranx(TABLE),
            "e": {"q1": {"a": 1, "b": np.float32(0.5)}, "q2": {}},
        }
        assert all(table == TABLE for table in open_runs(name_runs(runs)).values())
        assert open_runs({"ints": {1: {2: 3}}}) == {"ints": {"1": {"2": 3}}}

    @pytest.mark.parametrize(
        ("runs", "message"),
        [
            ("bm25.run", "expected a list of runs"),
            (7, "expected a list of runs"),
            (["a.run", "a.run"], "a.run: given twice"),
            ([Ranx({}, "x"), Ranx({}, "x")], "x: given twice"),
            ({"q1": {"a": 1.0}, "q2": {"b": 1.0}}, "run q1: 1.0 for 'a'; expected values by query and document"),
            ([{"q1": 3}], "run run1: 3 for 'q1'"),
            ([{}], "run run1: empty"),
            ([{"q": {}}], "run run1: empty"),
            ([None], "run run1 is None; expected a file"),
        ],
    )
    def test_what_is_no_run(self, runs, message):
        with pytest.raises(rw.InputError, match=message):
            open_runs(name_runs(runs))

    @pytest.mark.parametrize("value", [math.nan, math.inf, 1e300, "high", None])
    def test_what_is_no_score(self, value):
        with pytest.raises(rw.InputError, match=r"query q1: .*expected a (finite )?number"):
            pool_documents(["q1"], [{"q1": {"a": 1.0, "b": value}}], {})


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({1: {"a": 1.0}, "1": {"b": 1.0}}, "'1' and its text are two queries"),
        ({"q": {1: 1.0, "1": 2.0}}, "two documents of query q have one id as text"),
    ],
)
def test_ids_that_become_one_text_are_refused(run, message):
    with pytest.raises(rw.InputError, match=message):
        rw.tune_fusion({"q": {"a": 1}}, {"a": run, "b": {"q": {"a": 1.0}}})
