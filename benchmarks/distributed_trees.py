"""Trees grown on a Dask cluster of this machine: ``python -m benchmarks.distributed_trees``. Needs two quiet cores.

Two workers of one thread each, which have the data already, against ``lightgbm.dask`` on the same workers.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, publish
from rankwright.basics.optional_imports import require

N_WORKERS = 2
SHAPE = (6_000, 120, 136)
N_TREES, N_LEAVES, TARGET = 20, 31, 1.2


def time_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    start = perf_counter()
    found = call()
    return perf_counter() - start, found


def fit_peer(client: Any, queries: rw.Queries, n_trees: int) -> Callable[[], Any]:
    """Return a fit of LightGBM's own ranker for Dask, whose data are on the workers."""
    array = require("dask.array")
    step = len(queries) // N_WORKERS
    cuts = [int(queries.indptr[i * step]) for i in range(N_WORKERS)] + [queries.n_docs]
    rows = tuple(int(size) for size in np.diff(cuts))
    X = client.persist(array.from_array(queries.X, chunks=(rows, queries.n_features)))
    y = client.persist(array.from_array(queries.y.astype(np.int64), chunks=(rows,)))
    sizes = (step,) * (N_WORKERS - 1) + (len(queries) - step * (N_WORKERS - 1),)
    group = client.persist(array.from_array(queries.sizes, chunks=(sizes,)))
    require("distributed").wait([X, y, group])
    params = {"n_estimators": n_trees, "num_leaves": N_LEAVES, "force_col_wise": True, "verbosity": -1}
    peer = require("lightgbm").DaskLGBMRanker(client=client, **params)
    return lambda: peer.fit(X, y, group=group)


def compare(queries: rw.Queries, n_trees: int, repetitions: int) -> Table:
    """Compare fits on workers with those of ``lightgbm.dask``, in turns, and with those of one thread."""
    distributed = require("distributed")
    rows = []
    cluster = distributed.LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0")
    with warnings.catch_warnings(), cluster, distributed.Client(cluster) as client:
        warnings.simplefilter("ignore")
        backend = rw.Dask(client)
        small, data = (
            rw.DistributedQueries.from_queries(each, backend) for each in (queries.take(range(100)), queries)
        )
        rankers = {
            "exact lambdas": rw.LambdaMART(n_estimators=n_trees, num_leaves=N_LEAVES),
            "LightGBM's lambdas": rw.LambdaMART(lambdas="lightgbm", n_estimators=n_trees, num_leaves=N_LEAVES),
        }
        peer = fit_peer(client, queries, n_trees)
        for ranker in rankers.values():
            ranker.fit(small)  # compiles, and prepares the shards
        backend.scatter(data)
        seconds: dict[str, list[float]] = {name: [] for name in (*rankers, "peer")}
        for _ in range(repetitions):
            for name, ranker in rankers.items():
                seconds[name].append(time_call(partial(ranker.fit, data))[0])
            seconds["peer"].append(time_call(peer)[0])
        best = {name: min(times) for name, times in seconds.items()}
        head = queries.take(range(100))
        for name, ranker in rankers.items():
            alone, other = time_call(
                partial(rw.LambdaMART(**ranker.get_params() | {"backend": rw.Serial()}).fit, queries)
            )
            ratio = best[name] / best["peer"]
            same = ranker.predict(head).tobytes() == other.predict(head).tobytes()
            bits = "the bits of one thread" if same else "other bits than one thread"
            figure = f"{best[name]:.1f} s; {alone:.1f} s on one thread; {best['peer']:.1f} s for `lightgbm.dask`"
            rows.append(Row(f"{name}, {bits}", figure, f"{ratio:.2f}x", f"at most {TARGET}x", ratio <= TARGET))
    notes = [
        f"{len(queries):,} queries, {queries.n_docs:,} documents x {queries.n_features} features, synthetic; {n_trees} "
        f"trees of {N_LEAVES} leaves; {N_WORKERS} workers of one thread, which have the data. Whole fits in turns, the "
        f"fastest of {repetitions}. Ours evaluate NDCG after every tree, and theirs do not.",
    ]
    return Table("Trees on a cluster of two workers against lightgbm.dask", rows, notes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed_trees", description="Trees on a cluster.")
    parser.add_argument("--share", type=float, default=1.0, help="of the queries, for a trial")
    parser.add_argument("--trees", type=int, default=N_TREES)
    parser.add_argument("--repetitions", type=int, default=2)
    options = parser.parse_args()
    n_queries, n_docs, n_features = SHAPE
    queries = rw.make_queries(int(options.share * n_queries), n_docs=n_docs, n_features=n_features, random_state=0)
    publish([lambda: iter([compare(queries, options.trees, options.repetitions)])])


if __name__ == "__main__":
    main()
