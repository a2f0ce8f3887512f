"""Data sets on disk: converting LETOR text against reading it, and opening a set of 3.8 million documents."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankwright as rw
from benchmarks.reading import Files, read_ours, write_files
from benchmarks.report import Row, Table, below, faster, publish
from benchmarks.timing import THREADS, medians, take_turns
from rankwright.basics.mapped_arrays import ArrayWriter
from rankwright.data.mapped_header import MappedHeader, read_header

_DOCS, _FEATURES = 3_800_000, 136


def compare_conversion(files: Files) -> Table:
    """Rates of converting a text and of reading it, side by side."""
    size, out = files.whole.stat().st_size / 1e6, files.whole.with_suffix(".rwq")
    rw.convert(files.tiny, out=out)  # the warm-up
    read, convert = f"rankwright.read_letor, {THREADS} threads", f"rankwright.convert, {THREADS} threads"
    seconds = medians(
        take_turns({read: lambda: read_ours(files.whole), convert: lambda: rw.convert(files.whole, out=out)})
    )
    figures = {name: f"{size / time:.0f} MB/s ({time:.2f} s)" for name, time in seconds.items()}
    rows = [Row(read, figures[read]), faster(convert, figures[convert], seconds[read] / seconds[convert], 0.5)]
    notes = [
        f"{size:.0f} MB (of 10^6 bytes) of LETOR text, 136 features; in the page cache. Conversion ends on the disk.",
        "The ratio is the speed of conversion in terms of the speed of reading.",
    ]
    return Table("Converting LETOR text", rows, notes)


def measure_opening(folder: Path) -> Table:
    """The time to open a set of 3.8 million documents, whose features are a sparse file of zeros."""
    path = folder / "large.rwq"
    n_queries = _DOCS // 100
    y, qid = np.arange(_DOCS) % 5.0, np.arange(n_queries)
    rw.write_queries(rw.Queries(np.zeros((_DOCS, 1), np.float32), y, np.arange(n_queries + 1) * 100, qid), path)
    with ArrayWriter(path / "X.npy") as writer:
        widened = writer.finish(np.dtype("<f4"), (_DOCS, _FEATURES))
    with (path / "X.npy").open("r+b") as file:
        file.truncate(file.seek(0, 2) + widened.n_bytes)
    MappedHeader({**read_header(path).arrays, "X": widened}).write(path)
    if rw.read(path).X.shape != (_DOCS, _FEATURES):
        raise AssertionError("another shape")
    seconds = medians(take_turns({"open": lambda: rw.read(path)}))["open"]
    row = below(f"rankwright.read, {_DOCS:,} x {_FEATURES}", f"{1e3 * seconds:.0f} ms", seconds, 0.1, "s")
    return Table("Opening converted data", [row], ["Features are mapped; grades and query ids are read and checked."])


def measure(megabytes: float = 300.0, base_queries: int = 200) -> Iterator[Table]:
    """All tables on data sets on disk."""
    with tempfile.TemporaryDirectory() as folder:
        yield compare_conversion(write_files(Path(folder), megabytes, base_queries))
        yield measure_opening(Path(folder))


if __name__ == "__main__":
    publish([measure])
