"""Data larger than any process: ``python -m benchmarks.cluster_memory``. Takes a few minutes and 4 GB of disk.

Eight workers and a client, each limited by the system to less memory than the features take, read, fit and evaluate.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import rankwright as rw
from benchmarks.report import Row, Table, publish
from rankwright.basics.optional_imports import require

N_WORKERS, N_PARTS = 8, 64
SHAPE = (20_000, 120, 136)
LIMIT = 1_200  # megabytes of a process: its data segment, with the libraries' own
RANKERS = (rw.ListNet(max_iter=5), rw.RankBoost(n_estimators=5), rw.LambdaMART(n_estimators=3))


def write_parts(folder: Path, share: float) -> tuple[int, int]:
    """Write the partitions as Parquet; return the numbers of documents and of bytes of features."""
    pandas, n_docs = require("pandas"), 0
    n_queries, size, n_features = SHAPE
    for part in range(N_PARTS):
        queries = rw.make_queries(
            int(share * n_queries) // N_PARTS, n_docs=size, n_features=n_features, random_state=part
        )
        frame = pandas.DataFrame(queries.X, columns=[f"f{k}" for k in range(n_features)])
        frame.assign(label=queries.y, qid=queries.row_qid + part * n_queries).to_parquet(folder / f"{part:02}.parquet")
        n_docs += queries.n_docs
    return n_docs, 4 * n_docs * n_features


def limit_memory(megabytes: int) -> None:
    """Let the system refuse this process more memory than so much."""
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))


def read_peak() -> float:
    """Return the most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_limited(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a new process of limited memory; an error as its text."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, work, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return "the process was ended"
    finally:
        process.join()


def _send_result(sender: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    limit_memory(LIMIT)
    try:
        sender.send(work(*arguments))
    except (MemoryError, rw.InputError) as error:
        sender.send(f"{type(error).__name__}: {error}")


def read_alone(folder: str) -> str:
    """Read all partitions into this process."""
    return repr(rw.read(*sorted(Path(folder).glob("*.parquet"))))


def fit_on_cluster(folder: str, address: str) -> list[tuple[str, float, float, float]]:
    """Return for each step its name, its seconds, the measure, and this process's most memory so far."""
    before, rows = read_peak(), []
    start = perf_counter()
    queries = rw.DistributedQueries.read(folder, backend=rw.Dask(address))
    rows.append(("read", perf_counter() - start, float("nan"), read_peak() - before))
    for ranker in RANKERS:
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a few rounds do not converge
            fitted = ranker.fit(queries)
        value = float(fitted.score(queries))
        rows.append((f"{ranker!r}", perf_counter() - start, value, read_peak() - before))
    return rows


def compare(share: float) -> Table:
    """Fit to data that no process can hold."""
    distributed = require("distributed")
    with TemporaryDirectory() as folder:
        n_docs, n_bytes = write_parts(Path(folder), share)
        cluster = distributed.LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0", memory_limit=f"{2 * LIMIT}MB"
        )
        alone = run_limited(read_alone, folder)
        with cluster, distributed.Client(cluster) as client:
            client.run(limit_memory, LIMIT)
            found = run_limited(fit_on_cluster, folder, client.scheduler.address)
            peaks = client.run(read_peak).values()
    rows = [Row("`rw.read` in one process of this limit", alone.partition(": a table")[2] or alone, "")]
    if isinstance(found, str):
        rows.append(Row("the cluster", found, ""))
    else:
        for name, seconds, value, peak in found:
            measure = "" if value != value else f", NDCG@10 {value:.4f}"
            share_of_data = peak / (n_bytes / 1e6)
            figure = f"{seconds:.1f} s{measure}"
            rows.append(Row(name, figure, f"client at most {peak:.0f} MB", "a tenth", share_of_data < 0.1))
    notes = [
        f"{n_docs:,} documents x {SHAPE[2]} features ({n_bytes / 1e6:.0f} MB) in {N_PARTS} Parquet files; a client "
        f"and {N_WORKERS} workers of one thread, each limited to {LIMIT} MB of data (RLIMIT_DATA). Most memory of a "
        f"worker: {max(peaks):.0f} MB, libraries included. The client's memory is what it took beyond its start.",
    ]
    return Table("Data larger than any process", rows, notes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_memory", description="Limited memory.")
    parser.add_argument("--share", type=float, default=1.0, help="of the queries, for a trial")
    options = parser.parse_args()
    publish([lambda: iter([compare(options.share)])])


if __name__ == "__main__":
    main()
