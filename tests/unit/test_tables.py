"""Tables: every format gives the same queries, at once and in blocks."""

from __future__ import annotations

import gzip
import logging
import os
import threading
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

import rankwright as rw
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.reading import open_source


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "docid": [f"d{i}" for i in range(n)],
            "query_id": np.repeat(np.arange(60), 10),
            "relevance": rng.integers(0, 3, n),
            "bm25": rng.normal(size=n).astype("float32"),
            "clicks": rng.integers(0, 9, n),
            "dept": pd.Categorical(rng.choice(["toys", "books", "audio"], n)),
            "in_stock": rng.random(n) < 0.5,
        }
    )
    frame.loc[3, "bm25"] = np.nan
    frame.loc[4, "dept"] = None
    return frame


def _write_csv_gz(frame: pd.DataFrame, path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(frame.to_csv(index=False, sep="\t").encode())


WRITERS = {
    "pandas.csv": lambda frame, path: frame.to_csv(path, index=False),
    "pandas.tsv.gz": _write_csv_gz,
    "pandas.csv.zst": lambda frame, path: _write_csv_zst(frame, path),
    "pandas.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=70),
    "pandas.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "pyarrow.feather": lambda frame, path: feather.write_feather(frame, path),
    "duckdb.parquet": lambda frame, path: _write_duckdb(frame, path, "FORMAT parquet"),
    "duckdb.csv": lambda frame, path: _write_duckdb(frame, path, "FORMAT csv, HEADER"),
    "duckdb.jsonl": lambda frame, path: _write_duckdb(frame, path, "FORMAT json"),
    "polars.csv": lambda frame, path: pl.from_pandas(frame).write_csv(path),
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "polars.arrow": lambda frame, path: pl.from_pandas(frame).write_ipc(path),
    "polars.arrows": lambda frame, path: pl.from_pandas(frame).write_ipc_stream(path),
    "polars.ndjson": lambda frame, path: pl.from_pandas(frame).write_ndjson(path),
}


def _write_duckdb(frame: pd.DataFrame, path: Path, options: str) -> None:
    table = pa.Table.from_pandas(frame.assign(dept=frame["dept"].astype(object)), preserve_index=False)
    with duckdb.connect() as connection:
        connection.register("documents", table)
        connection.execute(f"COPY documents TO '{path}' ({options})")


def _write_csv_zst(frame: pd.DataFrame, path: Path) -> None:
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(frame.to_csv(index=False).encode())


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_queries(frame, name, tmp_path):
    path = tmp_path / name
    WRITERS[name](frame, path)
    queries = rw.read(path, categorical=["dept"])
    assert queries.features == ("bm25", "clicks", "dept", "in_stock")
    assert queries.categories == (None, None, ("audio", "books", "toys"), None)
    assert queries.X.flags.c_contiguous
    assert queries.X.dtype == np.float32
    expected = frame[["bm25", "clicks"]].to_numpy(np.float32)
    np.testing.assert_array_equal(queries.X[:, :2], expected)
    numbers = frame["dept"].map({"audio": 0, "books": 1, "toys": 2}).to_numpy(np.float32)
    np.testing.assert_array_equal(queries.X[:, 2], numbers)
    np.testing.assert_array_equal(queries.X[:, 3], frame["in_stock"])
    np.testing.assert_array_equal(queries.y, frame["relevance"])
    np.testing.assert_array_equal(queries.row_qid, frame["query_id"])
    np.testing.assert_array_equal(queries.docid, frame["docid"])


@pytest.mark.parametrize("name", WRITERS)
def test_blocks_are_what_is_read_at_once(frame, name, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwright.data.table_files.BLOCK_CELLS", 400)
    path = tmp_path / name
    WRITERS[name](frame, path)
    queries = rw.read(path, categorical=["dept"])
    source = open_source([path], ColumnRoles(categorical=("dept",)))
    blocks = list(source.read_blocks())
    assert len(blocks) > 5
    assert source.features == queries.features
    assert source.categories == queries.categories
    np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), queries.X)
    for name in ("y", "docid"):
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in blocks]), getattr(queries, name))
    np.testing.assert_array_equal(np.concatenate([block.qid for block in blocks]), queries.row_qid)


@pytest.mark.parametrize("role", [None, "qid"])
def test_columns_in_names_of_folders_are_left_out_and_said_so(tmp_path, caplog, role):
    """Spark and pandas write some columns into the names of folders."""
    frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 2], "a": [1.0, 2.0, 3.0], "fold": [1, 1, 2]})
    frame.to_parquet(tmp_path / "t", partition_cols=["fold"] if role is None else ["qid"])
    with caplog.at_level(logging.INFO, "rankwright"):
        if role is None:
            queries = rw.read(tmp_path / "t")
            assert (queries.features, queries.n_docs) == (("a",), 3)
        else:
            with pytest.raises(rw.InputError, match="no column of query ids"):
                rw.read(tmp_path / "t")
    assert f"{tmp_path / 't'}: columns that the names of folders have, such as fold=1, are left out" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("how", ["at once", "in blocks"])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"qid,label,a\n1,0,1\n1,1,2\n", "CSV"),
        (gzip.compress(b"qid\tlabel\ta\n1\t0\t1\n", mtime=0), "CSV"),
        (b'{"qid": 1, "label": 1, "a": 1}\n', "JSON lines"),
        (b"PAR1 and so on", "Parquet"),
        (b"ARROW1 and so on", "Arrow"),
        (b"PK\x03\x04 and so on", "a zip archive or an Excel workbook"),
    ],
)
def test_a_table_from_a_pipe_is_refused(tmp_path, content, found, how):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    source = open_source([tmp_path / "pipe"], ColumnRoles())
    with pytest.raises(rw.InputError, match=rf"pipe: {found}; .*[sS]ave (a|the) table"):
        source.read() if how == "at once" else list(source.read_blocks())
    writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "text", [b"1 qid:1 1:2\n0 qid:1 1:3\n", b"1 qid:1 # a,b\n0 qid:1 1:1 # c\n", b"#,\n\n1 qid:1 1:0\n"]
)
def test_letor_text_from_a_pipe(tmp_path, text):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(text)
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(text,))
    writer.start()
    found, expected = rw.read(tmp_path / "pipe"), rw.read(tmp_path / "file")
    writer.join()
    assert found.X.tolist() == expected.X.tolist()
    assert found.row_qid.tolist() == expected.row_qid.tolist()
