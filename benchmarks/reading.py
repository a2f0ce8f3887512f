"""Reading LETOR text: a file like MSLR's, 136 features and about 100 documents a query, read by four libraries."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, below, faster, proc_field, publish, skipped
from benchmarks.timing import THREADS, find_peer, medians, take_turns, timed

_QID = re.compile(rb"(?<=qid:)\d+")
_PEAK = "from benchmarks.reading import print_peak; import sys; print_peak(*sys.argv[1:])"


class Files(NamedTuple):
    """The same kind of text in three sizes."""

    tiny: Path
    base: Path
    whole: Path


class Reader(NamedTuple):
    """A peer's way of reading a file, how to count what it read, and the ratio we aim for."""

    name: str
    module: str
    read: Callable[[Any, str], Any]
    count: Callable[[Any], int]
    target: float


def write_files(folder: Path, megabytes: float, base_queries: int) -> Files:
    """Write a base of some queries, and copies of it under new query ids until the size is reached."""
    files = Files(*(folder / name for name in ("tiny.txt", "base.txt", "whole.txt")))
    for path, n_queries in ((files.tiny, 3), (files.base, base_queries)):
        rw.write_letor(rw.make_queries(n_queries, n_docs=100, n_features=136, grades=5, random_state=0), path)
    text = files.base.read_bytes()
    with files.whole.open("wb") as file:
        copy = 0
        while file.tell() < megabytes * 1e6:
            file.write(_renumber(text, copy * base_queries))
            copy += 1
    return files


def _renumber(text: bytes, offset: int) -> bytes:
    return _QID.sub(lambda match: b"%d" % (int(match.group()) + offset), text)


def read_ours(path: Path) -> rw.Queries:
    """Read with as many threads as the peers get."""
    return rw.read_letor(path, backend=rw.Threads(THREADS))


def _read_xgboost(xgboost: Any, path: str) -> Any:
    with warnings.catch_warnings():  # text input is deprecated there, and still the way to compare
        warnings.simplefilter("ignore")
        return xgboost.DMatrix(f"{path}?format=libsvm", nthread=THREADS, silent=True)


READERS = (
    Reader(f"XGBoost DMatrix, {THREADS} threads", "xgboost", _read_xgboost, lambda data: int(data.num_row()), 2.0),
    Reader(
        "FastRank CDataset, 1 thread",
        "fastrank",
        lambda fastrank, path: fastrank.CDataset.open_ranksvm(path),
        lambda data: int(data.num_instances()),
        2.5,
    ),
)


def compare_readers(files: Files) -> Table:
    """Rates of reading the whole file; scikit-learn's and gzip's on the base only."""
    size, base_size = files.whole.stat().st_size / 1e6, files.base.stat().st_size / 1e6
    ours = f"rankwright.read_letor, {THREADS} threads"
    n_docs = read_ours(files.whole).n_docs  # also the warm-up
    tasks: dict[str, Callable[[], object]] = {ours: partial(read_ours, files.whole)}
    for reader in READERS:
        module = find_peer(reader.module)
        if module is not None:
            if reader.count(reader.read(module, str(files.base))) != read_ours(files.base).n_docs:
                raise AssertionError(f"{reader.name} read another number of documents")
            tasks[reader.name] = partial(reader.read, module, str(files.whole))
    seconds = medians(take_turns(tasks))
    rate = size / seconds[ours]
    rows = [Row(ours, f"{rate:.0f} MB/s ({seconds[ours]:.2f} s)")]
    for reader in READERS:
        if reader.name in seconds:
            theirs = seconds[reader.name]
            rows.append(
                faster(reader.name, f"{size / theirs:.0f} MB/s ({theirs:.2f} s)", theirs / seconds[ours], reader.target)
            )
        else:
            rows.append(skipped(reader.name))
    rows.append(_compare_sklearn(files.base, base_size, rate))
    rows.append(_read_gzip(files.base, base_size))
    notes = [
        f"{size:.0f} MB (of 10^6 bytes), {n_docs:,} documents, 136 features, made by make_queries; in the page cache.",
        f"scikit-learn (once) and gzip read a part of {base_size:.0f} MB; the ratio to scikit-learn is of rates.",
    ]
    return Table("Reading LETOR text", rows, notes)


def _compare_sklearn(path: Path, size: float, our_rate: float) -> Row:
    from sklearn.datasets import load_svmlight_file

    found: list[Any] = []
    rate = size / timed(lambda: found.extend(load_svmlight_file(str(path), query_id=True)))
    if not np.array_equal(found[0].toarray().astype(np.float32), read_ours(path).X):
        raise AssertionError("scikit-learn read other numbers")
    return faster("scikit-learn load_svmlight_file, 1 thread", f"{rate:.1f} MB/s", our_rate / rate, 20.0)


def _read_gzip(path: Path, size: float) -> Row:
    packed = path.with_suffix(".txt.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    seconds = medians(take_turns({"gzip": lambda: read_ours(packed)}))["gzip"]
    return Row("rankwright.read_letor, gzip", f"{size / seconds:.0f} MB/s of text")


def measure_memory(files: Files) -> Table:
    """The most memory that reading takes, in a process of its own, against what it returns."""
    command = [sys.executable, "-c", _PEAK, str(files.tiny), str(files.whole)]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
    peak, arrays = (value / 1e6 for value in json.loads(output))
    row = below("rankwright.read_letor", f"{peak:.0f} MB at most", peak / arrays, 2.5, "times", f"{peak / arrays:.2f}")
    notes = [
        f"The arrays returned (X, y, indptr, qid, docid) take {arrays:.0f} MB; the ratio is to these.",
        "Peak resident memory of a fresh process, less what it held after importing and reading a tiny file.",
    ]
    return Table("Memory of reading", [row], notes)


def print_peak(tiny: str, path: str) -> None:
    """Print, as JSON, the bytes that reading took at most and the bytes of the arrays read."""
    read_ours(Path(tiny))
    before = resident("VmRSS")
    queries = read_ours(Path(path))
    taken = resident("VmHWM") - before
    arrays = (queries.X, queries.y, queries.grouped().indptr, queries.qid, queries.docid)
    print(json.dumps([taken, sum(array.nbytes for array in arrays if array is not None)]))


def resident(name: str) -> int:
    """Bytes by /proc/self/status; ru_maxrss would begin with the parent's peak."""
    value = proc_field("/proc/self/status", name)
    if value is None:
        raise SystemExit("measuring memory needs Linux's /proc")
    return 1024 * int(value.split()[0])


def forget_peak() -> None:
    """Let ``VmHWM`` begin anew at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(megabytes: float = 300.0, base_queries: int = 200) -> Iterator[Table]:
    """All tables on reading."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), megabytes, base_queries)
        yield compare_readers(files)
        yield measure_memory(files)


if __name__ == "__main__":
    publish([measure])
