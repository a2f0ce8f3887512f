"""Reading tables: Parquet and CSV to Queries, against what pyarrow and polars take to hand over a float32 matrix."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, publish, skipped
from benchmarks.timing import THREADS, find_peer, medians, take_turns

_MOST = 1.2  # times as long as the faster of the two


def write_tables(folder: Path, n_queries: int, csv_queries: int) -> dict[str, Path]:
    """Write the same kind of table as Parquet and, with fewer rows, as CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    queries = rw.make_queries(n_queries, n_docs=100, n_features=136, grades=5, random_state=0)
    columns: dict[str, Any] = {"query_id": queries.row_qid, "label": queries.y.astype(np.int32)}
    table = pa.table(columns | {f"f{i}": np.ascontiguousarray(queries.X[:, i]) for i in range(queries.n_features)})
    paths = {"Parquet": folder / "train.parquet", "CSV": folder / "train.csv"}
    parquet.write_table(table, paths["Parquet"], row_group_size=1 << 17)
    csv.write_csv(table.slice(0, csv_queries * 100), paths["CSV"])
    return paths


def read_ours(path: Path) -> rw.Queries:
    """Read a table with as many threads as the others get."""
    return rw.read(path, backend=rw.Threads(THREADS))


def _read_pyarrow(_: Any, path: Path) -> Any:
    from pyarrow import csv, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    table = table.drop_columns(["query_id", "label"])
    matrix = np.empty((table.num_rows, table.num_columns), np.float32)
    for i, column in enumerate(table.columns):
        matrix[:, i] = column
    return matrix


def _read_polars(polars: Any, path: Path) -> Any:
    table = polars.read_parquet(path) if path.suffix == ".parquet" else polars.read_csv(path)
    return table.drop("query_id", "label").cast(polars.Float32).to_numpy(order="c")


_PEERS: dict[str, Callable[[Any, Path], Any]] = {"pyarrow": _read_pyarrow, "polars": _read_polars}


def compare_readers(kind: str, path: Path) -> Table:
    """Return the seconds that each library takes to read one file."""
    ours = f"rankwright.read, {THREADS} threads"
    expected = read_ours(path)
    tasks: dict[str, Callable[[], object]] = {ours: partial(read_ours, path)}
    for name, read in _PEERS.items():
        module = find_peer(name)
        if module is not None:
            if not np.array_equal(read(module, path), expected.X):
                raise AssertionError(f"{name} read other numbers")
            tasks[name] = partial(read, module, path)
    seconds = medians(take_turns(tasks))
    rows = [Row(ours, f"{seconds[ours]:.2f} s")]
    fastest = min((value for name, value in seconds.items() if name != ours), default=None)
    for name in _PEERS:
        if name not in seconds:
            rows.append(skipped(name))
            continue
        ratio, is_fastest = seconds[ours] / seconds[name], seconds[name] == fastest
        target = f"at most {_MOST:g} times" if is_fastest else ""
        rows.append(Row(f"{name}, its threads", f"{seconds[name]:.2f} s", f"{ratio:.2f}", target,
                        ratio <= _MOST if is_fastest else None))  # fmt: skip
    size = path.stat().st_size / 1e6
    notes = [
        f"{size:.0f} MB, {expected.n_docs:,} documents, 136 features; in the page cache. All read the same numbers.",
        "The ratio is Rankwright's time divided by that of the library: below 1 is faster. Rankwright also checks "
        "every value, groups rows by query and returns grades and ids; the others return a C-ordered matrix of the "
        "features alone.",
    ]
    return Table(f"Reading {kind}", rows, notes)


def measure(n_queries: int = 4000, csv_queries: int = 800) -> Iterator[Table]:
    """Yield a table of figures for each format."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, path in write_tables(Path(folder), n_queries, csv_queries).items():
            yield compare_readers(kind, path)


if __name__ == "__main__":
    publish([measure])
