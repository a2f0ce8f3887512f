"""Data frames: the roles, the defaults and the errors of files."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankwright as rw

DATA = {"qid": [1, 1, 2], "label": [0, 1, 2], "a": [1.5, None, 3.0], "b": [True, False, True]}
FRAMES = {
    "pandas": pd.DataFrame(DATA),
    "pandas nullable": pd.DataFrame(DATA).convert_dtypes(),
    "pandas arrow": pd.DataFrame(DATA).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": pd.DataFrame(DATA, index=[7, 8, 9]),
    "polars": pl.DataFrame(DATA),
    "arrow": pa.table(DATA),
    "arrow batch": pa.record_batch(DATA),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_same_queries(name):
    queries = rw.Queries.from_frame(FRAMES[name])
    assert queries.features == ("a", "b")
    np.testing.assert_array_equal(queries.X, np.array([[1.5, 1], [np.nan, 0], [3, 1]], np.float32))
    assert queries.y.tolist() == [0, 1, 2]
    assert queries.row_qid.tolist() == [1, 1, 2]


def test_what_exports_arrow_data_is_taken():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select range // 2 as qid, range % 2 as label, range / 4 as x from range(6)")
    for frame in (relation, relation.df(), relation.pl()):
        assert rw.Queries.from_frame(frame).X[:, 0].tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None], dtype="category"),
        pd.Series(pd.Categorical(["b", "a", None], categories=["z", "b", "a"], ordered=True)),
        pl.Series(["b", "a", None], dtype=pl.Categorical),
        pl.Series(["b", "a", None], dtype=pl.Enum(["z", "b", "a"])),
        pa.array(["b", "a", None]).dictionary_encode(),
    ],
    ids=["pandas", "ordered", "polars", "enum", "arrow"],
)
def test_categories_are_those_that_occur_in_order(column):
    frames = {"Series": pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame}
    make = frames.get(type(column).__name__, pa.table)
    queries = rw.Queries.from_frame(make({"qid": [1, 1, 1], "label": [0, 0, 1], "x": column}))
    assert queries.categories == (("a", "b"),)
    np.testing.assert_array_equal(queries.X[:, 0], np.array([1, 0, np.nan], np.float32))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["x", "y"], "'x' \\((large_)?string"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "timestamp"),
        (pd.to_timedelta([1, 2], unit="s"), "duration"),
        ([datetime.date(2024, 1, 1)] * 2, "date32"),
        ([[1.0], [2.0]], "list"),
        ([{"a": 1}, {"a": 2}], "struct"),
        ([b"x", b"y"], "binary"),
        ([1, "1"], "object"),
        ([1 + 2j, 0j], "complex"),
    ],
)
def test_columns_that_are_no_numbers_are_refused_by_name(column, kind):
    frame = pd.DataFrame({"qid": [1, 1], "label": [0, 1], "a": [1.0, 2.0], "x": column})
    with pytest.raises(rw.InputError, match=rf"the frame: no numbers, and no role: .*{kind}.*--ignore"):
        rw.Queries.from_frame(frame)
    assert rw.Queries.from_frame(frame, ignore=["x"]).features == ("a",)


def test_numbers_of_any_type_are_features():
    frame = pa.table(
        {
            "qid": [1, 1],
            "decimal": pa.array([decimal.Decimal("1.25"), None]),
            "nullable": pa.array([2**24 + 1, None]),
            "half": pa.array(np.array([0.5, 1], np.float16)),
            "truth": pa.array([True, None]),
            "none": pa.nulls(2),
            "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
        }
    )
    queries = rw.Queries.from_frame(frame)
    assert not queries.has_grades
    expected = [[1.25, 2**24, 0.5, 1, np.nan, 2**64], [np.nan, np.nan, 1, np.nan, np.nan, 0]]
    np.testing.assert_array_equal(queries.X, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": [0, None, 1]}, r"the frame, row 1 \(from 0\): the column 'label' has no value"),
        ({"qid": [1, None, 2]}, r"the frame, row 1 \(from 0\): no 'qid'; expected an id in every row"),
        ({"qid": [1.0, 1.5, 2.0]}, r"row 1 .*1.5; expected whole numbers or text"),
        ({"a": [1.0, 2.0, np.inf]}, r"row 2 \(from 0\): the column 'a' is infinite"),
        ({"a": [1.0, 1e300, 0.0]}, r"row 1 \(from 0\): the column 'a' is infinite or too large"),
        ({"query": [1, 2, 3]}, r"the columns 'qid', 'query' may each be the query id; choose with qid= \(--qid\)"),
        ({"rating": [1, 2, 3]}, "the columns 'label', 'rating' may each be the grade"),
        ({"qid": [1, "1", 2]}, "'qid' is object.*expected whole numbers or text"),
    ],
)
def test_bad_values_are_named(change, message):
    frame = pd.DataFrame(DATA | change)
    with pytest.raises(rw.InputError, match=message):
        rw.Queries.from_frame(frame)


def test_whole_floats_are_integer_ids():
    queries = rw.Queries.from_frame(pd.DataFrame(DATA | {"qid": [1.0, 1.0, 2.0]}))
    assert queries.qid.tolist() == [1, 2]
    assert queries.qid.dtype.kind == "i"


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 0, 2.0, 3.0]], columns=["qid", "label", "x", "x"])
    with pytest.raises(rw.InputError, match="two columns are called 'x'; rename one"):
        rw.Queries.from_frame(frame)


@pytest.mark.parametrize("frames", [pd.DataFrame, pl.DataFrame])
def test_frames_of_numbers_need_no_pyarrow(frames, monkeypatch):
    whole = rw.Queries.from_frame(frames(DATA | {"a": [1.5, np.nan, 3.0], "docid": ["x", "y", "z"]}))
    monkeypatch.setattr("rankwright.data.frames.find_spec", lambda name: None)
    queries = rw.Queries.from_frame(frames(DATA | {"a": [1.5, np.nan, 3.0], "docid": ["x", "y", "z"]}))
    np.testing.assert_array_equal(queries.X, whole.X)
    assert queries.features == whole.features
    assert queries.docid.tolist() == ["x", "y", "z"]
    assert queries.y.tolist() == whole.y.tolist()
    with pytest.raises(rw.InputError, match="no numbers, and no role: 't'"):
        rw.Queries.from_frame(frames(DATA | {"a": [1.5, np.nan, 3.0], "t": ["x", "y", "z"]}))


def test_weights():
    frame = pd.DataFrame(DATA | {"w": [2, 2, 1], "d": [1, 0.5, 1]})
    queries = rw.Queries.from_frame(frame, weight="w", doc_weight="d")
    assert queries.weight.tolist() == [2, 1]
    assert queries.doc_weight.tolist() == [1, 0.5, 1]
    assert queries.features == ("a", "b")
    with pytest.raises(rw.InputError, match=r"query 1 has the weights 1 and 0\.5.*doc_weight="):
        rw.Queries.from_frame(frame, weight="d")
    with pytest.raises(rw.InputError, match=r"row 2 .*the weight 'd' is -1\.0; expected at least 0"):
        rw.Queries.from_frame(frame.assign(d=[1, 1, -1]), doc_weight="d")
