"""Reading click logs: ten million impressions, as CSV and Parquet, counted by query, document and position."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, below, proc_field, publish
from rankwright.basics.optional_imports import require

_N_POSITIONS, _N_QUERIES, _N_DOCS = 10, 50_000, 500_000
_CHUNK = 50_000  # sessions that are written at a time
_PEAK = "from benchmarks.click_logs import print_peak; import sys; print_peak(*sys.argv[1:])"


def write_log(folder: Path, n_impressions: int) -> tuple[Path, Path]:
    """Write sessions with ten documents each, popular queries more often, as CSV and as Parquet."""
    pa = require("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema(
        [(name, pa.string()) for name in ("session", "query", "docid")]
        + [(name, pa.int64()) for name in ("position", "clicked")]
    )
    paths = folder / f"{n_impressions}.csv", folder / f"{n_impressions}.parquet"
    with arrow_csv.CSVWriter(paths[0], schema) as text, parquet.ParquetWriter(paths[1], schema) as table:
        for start in range(0, n_impressions // _N_POSITIONS, _CHUNK):
            n = min(_CHUNK, n_impressions // _N_POSITIONS - start)
            query = np.minimum(rng.zipf(1.3, n) - 1, _N_QUERIES - 1)
            docs = (query[:, None] * 7919 + rng.integers(0, 30, (n, 1)) + np.arange(_N_POSITIONS)) % _N_DOCS
            clicked = rng.random((n, _N_POSITIONS)) < 0.3 / np.arange(1, _N_POSITIONS + 1)
            columns = {
                "session": np.repeat([f"s{start + i:08d}" for i in range(n)], _N_POSITIONS),
                "query": np.repeat([f"query number {i}" for i in query], _N_POSITIONS),
                "docid": np.array([f"doc{i:07d}" for i in docs.ravel()]),
                "position": np.tile(np.arange(1, _N_POSITIONS + 1), n),
                "clicked": clicked.ravel().astype(np.int64),
            }
            block = pa.table(columns, schema=schema)
            text.write_table(block)
            table.write_table(block)
    return paths


def print_peak(path: str, session: str) -> None:
    """Print the seconds that reading takes, its peak memory in kB, and the memory before."""
    before = _read_memory("VmRSS")
    start = perf_counter()
    log = rw.read_clicks(path, session=session or None)
    print(perf_counter() - start, _read_memory("VmHWM"), before, len(log.position), log.n_shown.sum())


def _read_memory(name: str) -> int:
    """A field of /proc/self/status in kB."""
    return int((proc_field("/proc/self/status", name) or "0").split()[0])


def measure(n_impressions: int = 10_000_000) -> Iterator[Table]:
    """Yield the table of seconds and memory, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_log(Path(folder), n_impressions)
        rows = []
        for path in paths:
            for session in ("session", ""):
                command = [sys.executable, "-c", _PEAK, str(path), session]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds, peak, before, n_cells, n_shown = map(float, output.split())
                what = f"{path.suffix[1:]}, {n_shown:,.0f} impressions, {'with' if session else 'without'} sessions"
                figure = f"{seconds:.1f} s, {(peak - before) / 1e3:,.0f} MB at most, {n_cells:,.0f} cells"
                if n_impressions == 10_000_000:
                    rows.append(below(f"rankwright.read_clicks: {what}", figure, seconds, 20.0, "s"))
                else:
                    rows.append(Row(f"rankwright.read_clicks: {what}", figure))
        yield Table("Reading click logs", rows, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--impressions", type=int, default=10_000_000)
    arguments = parser.parse_args()
    publish([lambda: measure(arguments.impressions)])
