"""Bad tables: one line that names the file, the row and the column, and the way out."""

from __future__ import annotations

import datetime
import gzip
import logging

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import rankwright as rw
from rankwright.cli import run
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.reading import open_source

HEAD = "qid,label,a\n"
CSV_ERRORS = {
    "empty": ("", "t.csv: empty"),
    "header only": (HEAD, "t.csv: no rows; expected at least one document"),
    "no header": ("1,0,2\n1,1,3\n", "t.csv:1: numbers; expected the names of the columns"),
    "ragged": (HEAD + "1,0,2\n\n1,1\n", "t.csv:4: 2 cells; expected 3, as in the header"),
    "text": (HEAD + "1,0,x\n", r"no numbers, and no role: 'a' \(text such as 'x'\).*--ignore.*--docid.*--categorical"),
    "missing qid": (HEAD + "1,0,2\n,1,3\n", "t.csv:3: no 'qid'; expected an id in every row"),
    "missing label": (HEAD + "1,0,2\n1,NA,3\n", "t.csv:3: the column 'label' has no value"),
    "infinite": (HEAD + "1,0,2\n1,1,inf\n", "t.csv:3: the column 'a' is infinite or too large"),
    "too large": (HEAD + "1,0,2\n1,1,1e39\n", "t.csv:3: the column 'a' is infinite or too large"),
    "lines in cells": ('qid,label,docid,a\n1,0,"x\ny",2\n1,1,z,inf\n', "t.csv:4: the column 'a' is infinite"),
    "twice": ("qid,label,a,a\n1,0,1,2\n", "t.csv: two columns are called 'a'; rename one"),
    "no name": ("qid,,a\n1,0,1\n", "t.csv:1: column 2 has no name"),
    "no qid": ("id,label,a\n1,0,1\n", r"no column of query ids.*there are 'id', 'label', 'a'.*qid= \(--qid\)"),
    "two qids": ("qid,Query_ID,a\n1,0,1\n", "the columns 'qid', 'Query_ID' may each be the query id; choose with"),
    "no feature": ("qid,label\n1,0\n", "t.csv: no feature"),
    "decimal comma": ("qid;label;a\n1;0;1,5\n", r"'a' \(text such as '1,5'\)"),
    "label": ("qid,label,a\n1,good,1\n", "the column 'label' is text such as 'good'; expected numbers"),
}


@pytest.mark.parametrize("name", CSV_ERRORS)
def test_bad_csv(name, tmp_path):
    text, message = CSV_ERRORS[name]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(rw.InputError, match=message) as caught:
        rw.read(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)
    with pytest.raises(rw.InputError, match=message):
        list(open_source([tmp_path / "t.csv"], ColumnRoles()).read_blocks())


@pytest.mark.parametrize("read", [lambda p: rw.read(p), lambda p: list(open_source([p], ColumnRoles()).read_blocks())])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7,1,abc", "t.csv:200002: the column 'a' has 'abc'; expected a number$"),
        ('7,1,"1,5"', "t.csv:200002: the column 'a' has '1,5'; expected a number with a decimal point"),
        ("7,1", "t.csv:200002: 2 cells; expected 3"),
        ("7,x,1", "t.csv:200002: the column 'label' has 'x'; expected a number"),
    ],
)
def test_bad_rows_far_from_the_first(read, line, message, tmp_path):
    (tmp_path / "t.csv").write_text(HEAD + "1,0,2.5\n" * 200_000 + line + "\n" + "2,1,2.5\n" * 9)
    with pytest.raises(rw.InputError, match=message):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("options", [{}, {"features": ["a"]}])
def test_a_text_among_the_first_numbers_is_named_with_its_line(options, tmp_path):
    cells = [*"12345", "cheap", "", "NA", *"6789", "dear"]
    (tmp_path / "t.csv").write_text("qid,label,a\n\n" + "".join(f"1,0,{cell}\n" for cell in cells))
    said = r"t.csv:8: the column 'a' has 'cheap'; expected a number, as 9 of the first 13 rows have. .*leave the column"
    with pytest.raises(rw.InputError, match=said):
        rw.read(tmp_path / "t.csv", **options)
    assert rw.read(tmp_path / "t.csv", categorical=["a"]).categories == (tuple(sorted({*cells} - {""})),)
    (tmp_path / "t.csv").write_text("qid,label,a\n" + "1,0,x\n1,0,3\n" * 4)
    with pytest.raises(rw.InputError, match=r"no numbers, and no role: 'a' \(text such as 'x'\)"):
        rw.read(tmp_path / "t.csv", **options)


def test_encodings(tmp_path):
    path = tmp_path / "t.csv"
    text = "qid,label,docid,a\n1,0,é,2\n"
    path.write_bytes(text.encode("utf-8-sig"))
    assert rw.read(path).docid.tolist() == ["é"]
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(rw.InputError, match=r"t.csv:2: not UTF-8"):
        rw.read(path)
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(rw.InputError, match=r"t.csv: text in UTF-16; save it as UTF-8"):
        rw.read(path)
    path.write_bytes(gzip.compress(text.encode() * 1000)[:-20])
    with pytest.raises(rw.InputError, match=r"t.csv: the compressed file is damaged or cut off"):
        rw.read(path)


@pytest.mark.parametrize(
    ("cells", "ids"),
    [
        (["7", "12"], [7, 12]),
        (["007", "7"], ["007", "7"]),
        (['"7"', "12"], [7, 12]),
        (["NA", "null"], ["NA", "null"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["9" * 30, "2"], ["9" * 30, "2"]),
    ],
)
def test_ids_in_csv_are_integers_only_if_each_is_written_as_one(cells, ids, tmp_path):
    (tmp_path / "t.csv").write_text("qid,label,a\n" + "".join(f"{cell},0,1\n" for cell in cells))
    assert rw.read(tmp_path / "t.csv").qid.tolist() == ids


def test_ids_of_blocks_join_to_those_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("rankwright.data.table_files.BLOCK_CELLS", 6)
    (tmp_path / "t.csv").write_text("qid,label,a\n1,0,1\n1,0,1\n2,0,1\nx,0,1\n")
    blocks = list(open_source([tmp_path / "t.csv"], ColumnRoles()).read_blocks())
    assert len(blocks) == 2
    assert rw.data.row_sources.join_blocks(blocks).qid.tolist() == ["1", "2", "x"]
    assert rw.read(tmp_path / "t.csv").qid.tolist() == ["1", "2", "x"]


JSON_ERRORS = {
    "empty": ("\n", "t.jsonl: empty|no documents"),
    "broken": ('{"qid":1,"label":0,"a":1}\n\n{"qid":1,\n', "t.jsonl:3: no JSON"),
    "ids of two kinds": ('{"qid":1,"a":1}\n{"qid":"1","a":1}\n', "t.jsonl:2: the key 'qid' has '1'; expected a number"),
    "no object": ('{"qid":1,"a":1}\n[1]\n', r"t.jsonl:2: \[1\]; expected a JSON object"),
    "infinite": ('{"qid":1,"a":1}\n\n{"qid":1,"a":1e39}\n', "t.jsonl:3: the column 'a' is infinite"),
    "missing": ('{"qid":1,"a":1}\n{"a":1}\n', "t.jsonl:2: no 'qid'"),
    "nested": ('{"qid":1,"a":{"b":1}}\n', "no numbers, and no role: 'a' .struct"),
    "array": ('[{"qid":1,"a":1}]\n', "t.jsonl"),
}


@pytest.mark.parametrize("name", JSON_ERRORS)
def test_bad_json_lines(name, tmp_path):
    text, message = JSON_ERRORS[name]
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(rw.InputError, match=message) as caught:
        rw.read(tmp_path / "t.jsonl")
    assert "\n" not in str(caught.value)


def test_json_lines_of_which_later_ones_differ(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = '{"qid":1,"label":0,"a":1}\n' * 60_000
    path.write_text(rows + '{"qid":1,"label":0.5,"a":2.5}\n')
    assert rw.read(path).y[-1] == 0.5
    path.write_text(rows + '{"qid":1,"label":0,"b":1}\n')
    with pytest.raises(rw.InputError, match="the first rows lack the key 'b'"):
        rw.read(path)
    assert np.isnan(rw.read(path, features=["a"]).X[-1, 0])
    path.write_text(rows + '{"qid":"x","label":0,"a":1}\n')
    with pytest.raises(rw.InputError, match=r"t.jsonl:60001: the key 'qid' has 'x'; expected a number"):
        rw.read(path)


def write(path, **columns):
    parquet.write_table(pa.table(columns), path)


def test_bad_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, qid=[1, None], label=[0, 1], a=[1.0, 2.0])
    with pytest.raises(rw.InputError, match=r"t.parquet: row 2: no 'qid'"):
        rw.read(path)
    write(path, qid=[1, 1], label=[0, 1], day=[datetime.date(2024, 1, 1)] * 2, url=["x", "y"], tags=[[1], [2]])
    with pytest.raises(rw.InputError, match=r"'day' \(date32\[day\]\), 'url' \(string\), 'tags' \(list<"):
        rw.read(path)
    write(path, qid=pa.array([], pa.int64()), a=pa.array([], pa.float32()))
    with pytest.raises(rw.InputError, match=r"t.parquet: no rows"):
        rw.read(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(rw.InputError, match=r"t.parquet: .*damaged"):
        rw.read(path)
    path.write_text("qid,label,a\n1,0,1\n")
    with pytest.raises(rw.InputError, match=r"t.parquet: not Parquet, which its name says"):
        rw.read(path)


def test_several_files(tmp_path):
    write(tmp_path / "1.parquet", qid=[1, 1], label=[0, 1], a=[1.0, 2.0], b=[3, 4])
    write(tmp_path / "2.parquet", b=[5], a=[6.0], qid=[1], label=[2])
    queries = rw.read(tmp_path / "1.parquet", tmp_path / "2.parquet")
    assert queries.X.tolist() == [[1, 3], [2, 4], [6, 5]]
    assert len(queries) == 1
    for way in (tmp_path, tmp_path / "*.parquet", tmp_path / "[12].parquet"):
        np.testing.assert_array_equal(rw.read(way).X, queries.X)
    for columns, message in [
        (dict(qid=["1"], label=[1], a=[1.0], b=[1]), "3.parquet: the column 'qid' is string, and int64 in .*1.parquet"),
        (dict(qid=[1], label=[1], a=[1.0]), r"3.parquet: no column 'b', unlike .*1.parquet; expected the same columns"),
        (dict(qid=[1], label=[1], a=[1.0], b=[1], c=[1]), r"3.parquet: the column 'c', unlike .*--ignore"),
        (dict(qid=[1], a=[1.0], b=[1]), "3.parquet: no grade; expected 'label' as in .*1.parquet"),
    ]:
        write(tmp_path / "3.parquet", **columns)
        with pytest.raises(rw.InputError, match=message):
            rw.read(tmp_path)
    (tmp_path / "3.parquet").unlink()
    (tmp_path / "3.csv").write_text("qid,label,a,b\n1,0,1,1\n")
    with pytest.raises(rw.InputError, match=r"is Parquet, .*3.csv is CSV; expected files of one format"):
        rw.read(tmp_path / "1.parquet", tmp_path / "3.csv")


def test_patterns(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, qid=[1], label=[1], bm25_title=[1.0], bm25_body=[2.0], clicks=[3], title=["x"])
    assert rw.read(path, features=["clicks", "bm25_*"]).features == ("clicks", "bm25_title", "bm25_body")
    assert rw.read(path, ignore=["title", "clicks"]).features == ("bm25_title", "bm25_body")
    for options, message in [
        (dict(ignore=["tilte"]), "no column 'tilte' for ignore= .*did you mean title"),
        (dict(features=["bm26_*"]), "no pattern 'bm26_\\*' for features="),
        (dict(label="lable"), "no column 'lable' for label= .*did you mean label"),
        (dict(features=["label"], label="label"), "the column 'label' is named by features= .* and by label="),
        (dict(qid="label", label="label"), "the column 'label' is named by label= .* and by qid="),
    ]:
        with pytest.raises(rw.InputError, match=message):
            rw.read(path, **options)
    with pytest.raises(rw.InputError, match=r"no file matches this pattern; there are t.parquet"):
        rw.read(tmp_path / "*.csv")


def test_content_counts_more_than_names(tmp_path):
    path = tmp_path / "t.csv"
    rw.write_letor(rw.make_queries(3, random_state=0), path)
    assert len(rw.read(path)) == 3
    path = tmp_path / "t.txt"
    path.write_text("qid\tlabel\ta\n1\t0\t2.5\n")
    assert rw.read(path).X.tolist() == [[2.5]]
    pd.DataFrame({"qid": [1], "a": [1.5]}).to_parquet(tmp_path / "data")
    assert rw.read(tmp_path / "data").X.tolist() == [[1.5]]
    for start, message in [(b"PK\x03\x04", "Excel"), (b"SQLite format 3\0", "SQLite"), (b"\x93NUMPY", "NumPy")]:
        path.write_bytes(start + b"\0" * 50)
        with pytest.raises(rw.InputError, match=message):
            rw.read(path)


def test_an_index_is_no_feature(tmp_path, caplog):
    frame = pd.DataFrame({"qid": [1, 1], "label": [0, 1], "a": [1.0, 2.0]}, index=[5, 9])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    with caplog.at_level(logging.INFO, "rankwright"):
        assert rw.read(tmp_path / "t.csv").features == ("a",)
        assert rw.read(tmp_path / "t.parquet").features == ("a",)
    assert "left out the first column, which has no name" in caplog.text
    assert "left out __index_level_0__" in caplog.text


def test_the_log_says_what_was_chosen(tmp_path, caplog):
    write(tmp_path / "t.parquet", Query_ID=[1], Relevance=[1], a=[1.0], weight=[1])
    with caplog.at_level(logging.INFO, "rankwright"):
        rw.read(tmp_path / "t.parquet")
    said = "query id 'Query_ID', grade 'Relevance', 2 features, among them 'weight' (for a weight say weight="
    assert said in caplog.text


def test_categories_of_a_model(tmp_path):
    (tmp_path / "t.csv").write_text("qid,a,c\n1,1,x\n1,2,new\n1,3,\n")
    source = open_source([tmp_path / "t.csv"], ColumnRoles(), features=["c", "a"], categories=(("w", "x"), None))
    np.testing.assert_array_equal(source.read().X, np.array([[1, 1], [np.nan, 2], [np.nan, 3]], np.float32))
    with pytest.raises(rw.InputError, match="no column 'd', a feature of the model"):
        open_source([tmp_path / "t.csv"], ColumnRoles(), features=["d"])
    rw.convert(tmp_path / "t.csv", out=tmp_path / "t.rwq", ignore=["c"])
    for name, found in (("t.csv", "no column 'd', a feature"), ("t.rwq", "no feature 'd'; expected all 1 features")):
        with pytest.raises(rw.InputError, match=f"{found} of the training data"):
            open_source([tmp_path / name], ColumnRoles(), features=["d"], owner="the training data")


def test_the_error_says_whose_feature_is_missing(tmp_path, capsys):
    (tmp_path / "train.csv").write_text("qid,label,a,b\n1,0,1,2\n1,1,2,3\n")
    (tmp_path / "valid.csv").write_text("qid,label,a\n1,0,1\n1,1,2\n")
    files = ["--train", str(tmp_path / "train.csv"), "--valid", str(tmp_path / "valid.csv")]
    assert run(["fit", "singlefeature", *files, "--model", str(tmp_path / "m.json")]) == 2
    assert "valid.csv: no column 'b', a feature of the training data; there are" in capsys.readouterr().err
    assert run(["fit", "singlefeature", *files[:2], "--model", str(tmp_path / "m.json")]) == 0
    assert run(["predict", "--model", str(tmp_path / "m.json"), "--data", files[3], "--out", str(tmp_path / "s")]) == 2
    assert "valid.csv: no column 'b', a feature of the model; there are" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["null\n", '{"qid": 1, "a": 1}\nnull\n', '{"qid": 1, "a": 1} null {"qid": 1, "a": 1}\n']
)
def test_null_in_place_of_an_object(tmp_path, text):
    """pyarrow would end the process."""
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(rw.InputError, match=r"t.jsonl:\d: "):
        rw.read(tmp_path / "t.jsonl")
