"""The formats of data x the commands that take them: every cell gives the figures of the same documents as LETOR text.

The files are made by the libraries that users make them with. ``docs/data.md`` has the same table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import dataset, feather, parquet

import rankwright as rw
from rankwright import cli

ROOT = Path(__file__).parents[2]
N_FEATURES = 4
FEATURES = [f"f{i}" for i in range(N_FEATURES)]


def make_frame(queries: rw.Queries) -> pd.DataFrame:
    columns = {"qid": queries.row_qid, "label": queries.y.astype(int)}
    return pd.DataFrame(columns | {name: queries.X[:, i] for i, name in enumerate(FEATURES)})


def write_groups(queries: rw.Queries, path: Path, line: Callable[[float, np.ndarray], str], suffix: str) -> Path:
    """Write label-first text as LightGBM and XGBoost read it, with the sizes of the queries beside it."""
    path.write_text("".join(line(y, x) + "\n" for y, x in zip(queries.y, queries.X, strict=True)))
    path.with_name(path.name + suffix).write_text("".join(f"{size}\n" for size in queries.sizes))
    return path


def write_sparse(queries: rw.Queries, path: Path, suffix: str) -> Path:
    return write_groups(queries, path, lambda y, x: f"{y:g} " + " ".join(f"{i}:{v!s}" for i, v in enumerate(x)), suffix)


def write_dense(queries: rw.Queries, path: Path, separator: str) -> Path:
    return write_groups(queries, path, lambda y, x: separator.join([f"{y:g}", *map(str, x)]), ".query")


def write_letor(queries: rw.Queries, path: Path) -> Path:
    rw.write_letor(queries, path)
    return path


def write_csv(frame: pd.DataFrame, path: Path, **options) -> Path:
    frame.to_csv(path, index=False, **options)
    return path


def write_zstd(frame: pd.DataFrame, path: Path) -> Path:
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        arrow_csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), stream)
    return path


def write_parquet_folder(frame: pd.DataFrame, path: Path) -> Path:
    dataset.write_dataset(
        pa.Table.from_pandas(frame, preserve_index=False), path, format="parquet", max_rows_per_file=64,
        max_rows_per_group=64,
    )  # fmt: skip
    return path


def write_parquet_parts(frame: pd.DataFrame, path: Path) -> Path:
    for i, rows in enumerate((slice(0, 50), slice(50, None))):
        pl.from_pandas(frame[rows]).write_parquet(path.with_name(f"{path.name}-{i}.parquet"))
    return path.with_name(f"{path.name}-*.parquet")


def write_with_duckdb(frame: pd.DataFrame, path: Path, options: str) -> Path:
    duckdb.sql(f"COPY (SELECT * FROM frame) TO '{path}' ({options})")
    return path


def write_pyarrow(frame: pd.DataFrame, path: Path) -> Path:
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


def write_polars(frame: pd.DataFrame, path: Path, method: str) -> Path:
    getattr(pl.from_pandas(frame), method)(path)
    return path


def write_feather(frame: pd.DataFrame, path: Path) -> Path:
    feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), str(path))
    return path


def write_converted(queries: rw.Queries, path: Path) -> Path:
    rw.write_letor(queries, path.with_suffix(".source"))
    assert cli.run(["convert", str(path.with_suffix(".source")), "--out", str(path)]) == 0
    return path


def convert_table(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path.with_suffix(".csv"), index=False)
    assert cli.run(["convert", str(path.with_suffix(".csv")), "--out", str(path)]) == 0
    return path


# The name of a format in docs/data.md, and how a library writes it.
WRITERS: dict[str, tuple[str, Callable[[rw.Queries, Path], Path]]] = {
    "LETOR": ("LETOR text", lambda q, p: write_letor(q, p / "d.txt")),
    "LETOR gzip": ("LETOR text", lambda q, p: write_letor(q, p / "d.txt.gz")),
    "CSV pandas": ("CSV, TSV", lambda q, p: write_csv(make_frame(q), p / "d.csv")),
    "TSV pandas": ("CSV, TSV", lambda q, p: write_csv(make_frame(q), p / "d.tsv", sep="\t")),
    "CSV gzip pandas": ("CSV, TSV", lambda q, p: write_csv(make_frame(q), p / "d.csv.gz")),
    "CSV zstd pyarrow": ("CSV, TSV", lambda q, p: write_zstd(make_frame(q), p / "d.csv.zst")),
    "CSV polars": ("CSV, TSV", lambda q, p: write_polars(make_frame(q), p / "d.csv", "write_csv")),
    "CSV DuckDB": ("CSV, TSV", lambda q, p: write_with_duckdb(make_frame(q), p / "d.csv", "HEADER")),
    "Parquet pyarrow": ("Parquet", lambda q, p: write_pyarrow(make_frame(q), p / "d.parquet")),
    "Parquet polars": ("Parquet", lambda q, p: write_polars(make_frame(q), p / "d.parquet", "write_parquet")),
    "Parquet DuckDB": ("Parquet", lambda q, p: write_with_duckdb(make_frame(q), p / "d.parquet", "FORMAT parquet")),
    "Parquet folder": ("Parquet", lambda q, p: write_parquet_folder(make_frame(q), p / "folder")),
    "Parquet glob": ("Parquet", lambda q, p: write_parquet_parts(make_frame(q), p / "part")),
    "Feather pyarrow": ("Arrow, Feather", lambda q, p: write_feather(make_frame(q), p / "d.feather")),
    "Arrow polars": ("Arrow, Feather", lambda q, p: write_polars(make_frame(q), p / "d.arrow", "write_ipc")),
    "JSON lines polars": ("JSON lines", lambda q, p: write_polars(make_frame(q), p / "d.jsonl", "write_ndjson")),
    "LightGBM sparse": ("LightGBM, XGBoost text", lambda q, p: write_sparse(q, p / "d.txt", ".query")),
    "XGBoost sparse": ("LightGBM, XGBoost text", lambda q, p: write_sparse(q, p / "d.txt", ".group")),
    "LightGBM CSV": ("LightGBM, XGBoost text", lambda q, p: write_dense(q, p / "d.csv", ",")),
    "LightGBM TSV": ("LightGBM, XGBoost text", lambda q, p: write_dense(q, p / "d.tsv", "\t")),
    "rwq of LETOR": ("Converted (`.rwq`)", lambda q, p: write_converted(q, p / "d.rwq")),
    "rwq of a table": ("Converted (`.rwq`)", lambda q, p: convert_table(make_frame(q), p / "d.rwq")),
}
COMMANDS = ("fit", "predict", "evaluate", "compare", "experiment")
PARAMETERS = ["--set", "alpha=1"]
QUICK = ("CSV pandas", "Parquet glob", "rwq of a table")  # of which experiments are always tried


@pytest.fixture(scope="module")
def parts() -> tuple[rw.Queries, rw.Queries]:
    """Training and test documents, the test queries numbered from 1 as in group files."""
    queries = rw.make_queries(30, n_docs=8, n_features=N_FEATURES, random_state=3)
    parts = [queries.take(range(18)), queries.take(range(18, 30))]
    return tuple(part.replace(qid=np.arange(1, len(part) + 1), docid=None) for part in parts)


class Cell:
    """The files of one format, and what the commands make of them."""

    def __init__(self, parts, write, folder: Path) -> None:
        for name in ("train", "test"):
            (folder / name).mkdir()
        self.folder = folder
        self.train, self.test = (
            write(part, folder / name) for part, name in zip(parts, ("train", "test"), strict=True)
        )

    def run(self, *said) -> None:
        assert cli.run([str(word) for word in said]) == 0

    def run_all(self, capsys, command: str):
        """Return the figures of a command: scores, or what it prints as JSON."""
        capsys.readouterr()  # what a conversion said
        model, scores = self.folder / "m.json", self.folder / "s.txt"
        self.run(
            "fit", "regression", "--train", self.train, "--valid", self.test, "--model", model, *PARAMETERS, "--json"
        )
        fitted = json.loads(capsys.readouterr().out)
        if command == "fit":
            return [fitted["train"], fitted["valid"]]
        if command == "experiment":
            out = self.folder / "out"
            self.run("experiment", "--data", self.train, "--folds", 3, "--rankers", "singlefeature",
                     "--out", out, "--workers", "threads:1")  # fmt: skip
            capsys.readouterr()
            return rw.read_results(out).means("ndcg@10").tolist()
        self.run("predict", "--model", model, "--data", self.test, "--out", scores)
        if command == "predict":
            capsys.readouterr()
            return [float(line) for line in scores.read_text().split()]
        if command == "evaluate":
            self.run("evaluate", "--data", self.test, "--scores", scores, "--json")
            by_scores = capsys.readouterr().out
            self.run("evaluate", "--data", self.test, "--model", model, "--json")
            assert capsys.readouterr().out == by_scores
            return list(json.loads(by_scores)["means"].values())
        self.run("compare", "--data", self.test, "--model", model, "--scores", scores, "--json")
        return [value for means in json.loads(capsys.readouterr().out)["means"].values() for value in means.values()]


_REFERENCE: dict[str, list[float]] = {}


def find_reference(parts, tmp_path_factory, capsys, command: str) -> list[float]:
    """Return the figures of the same documents as LETOR text."""
    if command not in _REFERENCE:
        cell = Cell(parts, WRITERS["LETOR"][1], tmp_path_factory.mktemp("letor"))
        _REFERENCE[command] = cell.run_all(capsys, command)
    return _REFERENCE[command]


CELLS = [
    pytest.param(
        name,
        command,
        marks=[pytest.mark.slow] if command == "experiment" and name not in QUICK else [],
        id=f"{name}-{command}",
    )
    for name in WRITERS
    for command in COMMANDS
]


@pytest.mark.filterwarnings("ignore::rankwright.InspectionWarning")
@pytest.mark.parametrize(("name", "command"), CELLS)
def test_every_command_takes_every_format(parts, tmp_path, tmp_path_factory, capsys, name, command):
    found = Cell(parts, WRITERS[name][1], tmp_path).run_all(capsys, command)
    expected = find_reference(parts, tmp_path_factory, capsys, command)
    assert len(found) == len(expected)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", WRITERS)
def test_python_reads_the_same_documents(parts, tmp_path, name):
    queries = rw.read(WRITERS[name][1](parts[0], tmp_path))
    for field in ("X", "y", "indptr", "qid"):
        assert getattr(queries, field).tolist() == getattr(parts[0], field).tolist()


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.jsonl", "d.arrow", "d.rwq"])
def test_tables_without_grades_predict(parts, tmp_path, capsys, name):
    model, path = tmp_path / "m.json", tmp_path / name
    rw.save(rw.Regression().fit(parts[0].replace(features=tuple(FEATURES))), model)
    frame = make_frame(parts[1]).drop(columns="label")[["f3", "qid", "f1", "f0", "f2"]].assign(extra=1.0)
    write = {"d.csv": write_csv, "d.parquet": write_pyarrow, "d.arrow": write_feather, "d.rwq": convert_table}
    write.get(name, lambda *said: write_polars(*said, "write_ndjson"))(frame, path)
    assert cli.run(["predict", "--model", str(model), "--data", str(path), "--out", str(tmp_path / "s")]) == 0
    expected = rw.load(model).predict(parts[1].replace(features=tuple(FEATURES)))
    assert [float(line) for line in (tmp_path / "s").read_text().split()] == expected.tolist()
    capsys.readouterr()
    for command in ("evaluate", "compare"):
        assert cli.run([command, "--model", str(model), "--data", str(path)]) == 2
        assert f"{name}: no column of grades; expected one" in capsys.readouterr().err


def test_the_documentation_has_the_same_table():
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    table = page.partition("## Formats")[2].partition("Tables need pyarrow")[0]
    rows = re.findall(r"(?m)^\| ([^|]+) \| ([^|]+) \|$", table)
    assert {row[0] for row in rows} - {"format"} == {format_ for format_, _ in WRITERS.values()}
    named = re.search(r"(?m)^.*take every format of this table", table)
    assert re.findall(r"`(\w+)`", named[0]) == list(COMMANDS)
