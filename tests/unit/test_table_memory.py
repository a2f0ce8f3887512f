"""The memory of tables: too large ones are refused before they are read, and blocks of rows take little."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import rankwright as rw
from rankwright.cli import run
from rankwright.data import json_lines, table_sizes, tables
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.reading import open_source


def make_table(n_rows: int, n_features: int) -> pa.Table:
    values = np.random.default_rng(0).random((n_features, n_rows), dtype=np.float32)
    columns = {f"f{i}": row for i, row in enumerate(values)}
    return pa.table({"qid": np.arange(n_rows) // 20, "label": np.arange(n_rows) % 3, **columns})


@pytest.fixture
def files(tmp_path):
    table = make_table(1_000, 20)
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather", compression="lz4")
    with pa.ipc.new_stream(str(tmp_path / "t.arrows"), table.schema) as stream:
        stream.write_table(table)
    csv.write_csv(table, tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    table.to_pandas().to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    return tmp_path


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrows", "t.csv", "t.csv.gz", "t.jsonl"])
def test_a_table_larger_than_the_free_memory_is_refused(files, monkeypatch, name, capsys):
    monkeypatch.setattr(table_sizes, "LITTLE", 0)
    monkeypatch.setattr(tables, "read_available_memory", lambda: 159_999)
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 16)
    expected = r"documents x 20 features: 0.0 GB, and twice that while it is read; 0.0 GB of memory are free"
    with pytest.raises(rw.InputError, match=rf"{name}: a table of \d+ {expected}.*rankwright convert \(rw.convert\)"):
        rw.read(files / name)
    assert run(["convert", str(files / name), "--out", str(files / "t.rwq")]) == 0
    assert rw.read(files / "t.rwq").n_docs == 1_000
    monkeypatch.setattr(tables, "read_available_memory", lambda: 161_000)
    assert rw.read(files / name).n_docs == 1_000


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv", "t.jsonl"])
def test_the_refusal_comes_before_reading(files, monkeypatch, name):
    monkeypatch.setattr(table_sizes, "LITTLE", 0)
    monkeypatch.setattr(tables, "read_available_memory", lambda: 100_000)
    source = open_source([files / name], ColumnRoles())
    monkeypatch.setattr(type(source.files[0]), "read", lambda *_: pytest.fail("the file is read"))
    with pytest.raises(rw.InputError, match="GB of memory are free"):
        source.read()


_LIMITED = """
import resource, sys
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.reading import open_source
def count(path):
    return sum(len(block.X) for block in open_source([path], ColumnRoles()).read_blocks())
count(sys.argv[1])  # imports and compiles
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + int(sys.argv[3]),) * 2)
print(count(sys.argv[2]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_DATA")
@pytest.mark.parametrize(
    ("name", "n_rows", "n_features", "allowed"), [("t.parquet", 600_000, 50, 64), ("t.csv", 150_000, 40, 64)]
)
def test_blocks_of_a_large_table_take_little_memory(tmp_path, name, n_rows, n_features, allowed):
    """A row group of 120 MB, and 60 MB of text, are read with 64 MB more memory than a small file leaves behind."""
    for start, n in (("few", 1_000), ("many", n_rows)):
        table = make_table(n, n_features)
        path = tmp_path / f"{start}.{name}"
        csv.write_csv(table, path) if name == "t.csv" else parquet.write_table(table, path, row_group_size=n)
    paths = [str(tmp_path / f"{start}.{name}") for start in ("few", "many")]
    command = [sys.executable, "-c", _LIMITED, *paths, str(allowed << 20)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.stdout.strip() == str(n_rows), found.stderr
