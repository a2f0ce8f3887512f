"""Data larger than memory: every command under a limit on private memory that is smaller than the data.

Run ``python -m benchmarks.limits --gigabytes 4 --limit 2``. It is not part of ``python -m benchmarks``: it writes more
than twice the size of the data to the disk, and takes minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, proc_field, publish
from benchmarks.timing import THREADS, medians, take_turns
from rankwright.basics.array_types import Floats
from rankwright.basics.optional_imports import require
from rankwright.rankers import find_ranker

FEATURES, _PIECE, _PER_QUERY = 136, 50_000, 100
RANKERS: dict[str, dict[str, Any]] = {
    "Regression": {},
    "ListNet": {"max_iter": 5},
    "RankBoost": {"n_estimators": 5},
    "LambdaMART": {"n_estimators": 5},
}


class Finished(NamedTuple):
    """A command that has ended: its seconds, its exit status, the most private memory it had, and its last line."""

    seconds: float
    status: int
    peak: int
    last_line: str


def write_table(path: Path, n_docs: int) -> None:
    """Write judged documents to a Parquet file, piece by piece."""
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    rng = np.random.default_rng(0)
    coef = rng.normal(size=FEATURES) / np.sqrt(FEATURES)
    names = [f"f{i}" for i in range(1, FEATURES + 1)]
    schema = pyarrow.schema(
        [("qid", pyarrow.int64()), ("label", pyarrow.int8()), *((name, pyarrow.float32()) for name in names)]
    )
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n_docs, _PIECE):
            rows = np.arange(start, min(start + _PIECE, n_docs))
            X = rng.standard_normal((len(rows), FEATURES), dtype=np.float32)
            X[:, : FEATURES // 4] = np.round(4 * X[:, : FEATURES // 4])  # few different values
            X[:, FEATURES // 2 :] = np.maximum(X[:, FEATURES // 2 :], 0)  # many zeros
            y = np.clip(np.floor(1.2 * (X @ coef + rng.normal(size=len(rows))) + 1), 0, 4).astype(np.int8)
            writer.write_table(pyarrow.table([rows // _PER_QUERY, y, *np.ascontiguousarray(X.T)], schema=schema))


def run_limited(command: list[str], limit: float) -> Finished:
    """Run the command line of Rankwright with at most so many bytes of private memory (RLIMIT_DATA)."""

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))

    peak, start = 0, time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankwright", *command], stdout=output, stderr=output, preexec_fn=set_limit
        )
        while process.poll() is None:
            found = proc_field(f"/proc/{process.pid}/status", "VmData")
            peak = max(peak, 1024 * int(found.split()[0]) if found else 0)
            time.sleep(0.01)
        output.seek(0)
        lines = output.read().strip().splitlines()
    return Finished(time.perf_counter() - start, process.returncode, peak, lines[-1] if lines else "")


def list_commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with its name in the report; each uses the files of those before."""
    table, data = str(folder / "data.parquet"), str(folder / "data.rwq")
    yield "convert", ["convert", table, "--out", data]
    yield "inspect", ["inspect", data]
    for name, params in RANKERS.items():
        model = str(folder / f"{name}.json")
        settings = [word for key, value in params.items() for word in ("--set", f"{key}={value}")]
        yield f"fit {name}", ["fit", name.lower(), "--train", data, "--model", model, *settings]
        yield f"predict, {name}", ["predict", "--model", model, "--data", data, "--out", str(folder / "scores.txt")]
        yield f"evaluate, {name}", ["evaluate", "--model", model, "--data", data]
    model = str(folder / "Regression.json")
    yield "predict from Parquet", ["predict", "--model", model, "--data", table, "--out", str(folder / "scores.txt")]
    scaled = str(folder / "scaled.json")
    yield "fit ListNet, scale=query", ["fit", "listnet", "--train", data, "--model", scaled, "--set", "scale=query"]


def measure_commands(folder: Path, gigabytes: float, limit: float) -> Table:
    """Run every command under the limit, and report its memory."""
    n_docs = int(gigabytes * 1e9 / (4 * FEATURES))
    write_table(folder / "data.parquet", n_docs)
    rows = []
    for name, command in list_commands(folder):
        done = run_limited(command, limit * 1e9)
        ending = "" if done.status == 0 else f"; status {done.status}: {done.last_line[:120]}"
        rows.append(Row(name, f"{done.peak / 1e9:.2f} GB, {done.seconds:.0f} s{ending}"))
    title = f"Larger than memory: {gigabytes:g} GB under {limit:g} GB"
    notes = [
        f"{n_docs:,} documents x {FEATURES} features, made; each command is a process under RLIMIT_DATA.",
        "Figures: the most private memory (VmData), with that of the process itself, and seconds.",
        f"Settings: {json.dumps(RANKERS)}.",
        "LambdaMART is fitted only if it needs no more than is left; its model is missing otherwise.",
    ]
    return Table(title, rows, notes)


def compare_with_memory(folder: Path) -> Table:
    """Compare fits of mapped data with those of the same data in memory: their scores, and their time."""
    mapped = rw.read(folder / "data.rwq")
    in_memory = mapped.with_X(mapped.X.copy())
    rows = []
    for name, params in RANKERS.items():
        make = partial(find_ranker(name), **params, backend=rw.Threads(THREADS))
        same = len({hash_scores(make().fit(each).predict(mapped)) for each in (mapped, in_memory)}) == 1
        fits = {"mapped": partial(make().fit, mapped), "memory": partial(make().fit, in_memory)}
        seconds = medians(take_turns(fits, repetitions=3))
        ratio = seconds["mapped"] / seconds["memory"]
        figure = f"{seconds['mapped']:.2f} s mapped, {seconds['memory']:.2f} s in memory"
        rows.append(Row(name, figure, f"{ratio:.2f}", "the same scores, to the bit", same))
    size = f"{mapped.n_docs:,} documents x {mapped.n_features} features"
    return Table("Mapped data against data in memory", rows, [f"{size}, in the page cache; {THREADS} threads."])


def hash_scores(scores: Floats) -> str:
    """Return a checksum of scores."""
    return hashlib.sha256(scores.tobytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description="Commands under a memory limit.")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="the size of the features")
    parser.add_argument("--limit", type=float, default=0.8, help="the private memory of each command, in gigabytes")
    parser.add_argument("--compare", action="store_true", help="also fit the data in memory, and compare")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        publish([lambda: iter([measure_commands(folder, options.gigabytes, options.limit)])])
        if options.compare:
            print(compare_with_memory(folder).markdown())


if __name__ == "__main__":
    main()
