"""Fits on a Dask cluster of this machine: ``python -m benchmarks.cluster``. Needs a quiet machine with two cores.

Two workers of one thread each against one thread without a cluster, and what travels between them and the client.
"""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, publish
from rankwright.basics.optional_imports import require
from rankwright.runtime.backends import Shards

N_WORKERS = 2
SHAPE = (6_000, 120, 136)
RANKERS: Mapping[str, rw.Ranker] = {
    "RankSVM": rw.RankSVM(),
    "ListNet": rw.ListNet(),
    "DirectRank": rw.DirectRank(n_restarts=1, max_iter=1),
    "AdaRank": rw.AdaRank(n_estimators=100),
    "RankBoost": rw.RankBoost(n_estimators=100),
}
TARGET, REPETITIONS = 1.6, 2


@dataclass(frozen=True, slots=True)
class CountedBackend:
    """A backend on one thread that counts the calls of a cluster and the bytes that these would send and return."""

    counts: dict[str, int] = field(default_factory=lambda: {"calls": 0, "sent": 0, "returned": 0})

    def map(self, fn: Callable[[Any], Any], items: Any) -> Iterator[Any]:
        """Yield ``fn(item)`` for each item; nothing travels."""
        return map(fn, items)

    def each(self, fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return ``fn(item)`` for all items; nothing travels."""
        return [fn(item) for item in items]

    def scatter(self, queries: Any) -> Shards[Any]:
        """Cut into shards; sending them is not counted."""
        return rw.Serial().scatter(queries)

    def distribute(self, parts: Any) -> Shards[Any]:
        """Make shards of these parts; sending them is not counted."""
        return rw.Serial().distribute(parts)

    def apply(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Shards[Any]:
        """Return shards of the results, which stay where they are; what is applied goes with the next call."""
        self._count(fn, arguments, n_calls=0)
        return rw.Serial().apply(fn, shards, *arguments)

    def gather(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> list[Any]:
        """Return the results for every part."""
        self._count(fn, arguments)
        found: list[Any] = rw.Serial().gather(fn, shards, *arguments)
        self.counts["returned"] += len(pickle.dumps(found))
        return found

    def sum(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Add up the results for every part, each of which travels."""
        return rw.Serial().sum(lambda part: part, rw.Serial().distribute(self.gather(fn, shards, *arguments)))

    def concat(self, fn: Callable[..., Any], shards: Shards[Any], *arguments: Any) -> Any:
        """Concatenate the results for every part, each of which travels."""
        return np.concatenate(self.gather(fn, shards, *arguments))

    def fold(self, fn: Callable[..., Any], shards: Shards[Any], values: Sequence[Any]) -> list[Any]:
        """Carry values through the parts in order; they travel from part to part."""
        found: list[Any] = rw.Serial().fold(fn, shards, values)
        self._count(fn, [found])
        return found

    def _count(self, fn: Callable[..., Any], arguments: Sequence[Any], n_calls: int = 1) -> None:
        plain = [argument for argument in arguments if not isinstance(argument, Shards)]
        self.counts["calls"] += n_calls
        self.counts["sent"] += len(require("cloudpickle").dumps((fn, plain)))


def make_data(share: float) -> rw.Queries:
    """Return synthetic queries; ``share`` makes fewer for a trial."""
    n_queries, n_docs, n_features = SHAPE
    return rw.make_queries(int(share * n_queries), n_docs=n_docs, n_features=n_features, random_state=0)


def fit(name: str, backend: Any, queries: rw.Queries) -> rw.Ranker:
    """Fit a ranker of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one iteration does not converge
        params = RANKERS[name].get_params() | {"backend": backend}
        return type(RANKERS[name])(**params).fit(queries)


def time_fit(name: str, backend: Any, queries: rw.Queries) -> tuple[float, rw.Ranker]:
    """Return the seconds of a fit, and the fitted ranker."""
    start = perf_counter()
    fitted = fit(name, backend, queries)
    return perf_counter() - start, fitted


def compare_with_one_thread(queries: rw.Queries) -> Table:
    """Compare fits on workers with those on one thread: their time, and whether the models have the same bits."""
    distributed = require("distributed")
    rows = []
    cluster = distributed.LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        backends: dict[str, Any] = {"one": rw.Serial(), "cluster": rw.Dask(client)}
        here = {"queries": queries, "small": queries.take(np.arange(200))}
        there = {name: rw.DistributedQueries.from_queries(each, backends["cluster"]) for name, each in here.items()}
        data, small = ({"one": here[name], "cluster": there[name]} for name in ("queries", "small"))
        for name in RANKERS:
            for place, backend in backends.items():
                fit(name, backend, small[place])  # compiles
            turns = [
                {place: time_fit(name, backend, data[place]) for place, backend in backends.items()}
                for _ in range(REPETITIONS)
            ]
            seconds = {place: min(turn[place][0] for turn in turns) for place in backends}
            ratio = seconds["one"] / seconds["cluster"]
            same = len({each.predict(small["one"]).tobytes() for turn in turns for _, each in turn.values()}) == 1
            figure = f"{seconds['cluster']:.1f} s, {seconds['one']:.1f} s on one thread"
            bits = "the same bits" if same else "**other bits**"
            rows.append(Row(f"{name}, {bits}", figure, f"{ratio:.2f}x", f"at least {TARGET}x", ratio >= TARGET))
    notes = [
        f"{len(queries):,} queries, {queries.n_docs:,} documents x {queries.n_features} features, synthetic; "
        f"{N_WORKERS} workers of one thread, which have the data. Whole fits in turns, the fastest of {REPETITIONS}.",
        f"Rankers: {', '.join(f'`{ranker!r}`' for ranker in RANKERS.values())}.",
    ]
    return Table("A cluster of two workers against one thread", rows, notes)


def count_messages(queries: rw.Queries) -> Table:
    """Count what travels for each call of the workers."""
    rows = []
    for name in RANKERS:
        backend = CountedBackend()
        fitted = fit(name, backend, queries)
        calls, sent, returned = (backend.counts[key] for key in ("calls", "sent", "returned"))
        n_rounds = max(len(fitted.history_), 1)
        figure = f"{calls / n_rounds:.1f} calls a round; {sent / calls / 1e3:.1f} kB to each group a call"
        rows.append(Row(name, figure, f"{returned / calls / 1e3:.1f} kB back from all shards a call"))
    n = len(rw.Serial().scatter(queries))
    notes = [
        f"{queries.n_docs:,} documents x {queries.n_features} features in {n} shards; data sent once, not counted."
    ]
    return Table("Messages of fits on a cluster", rows, notes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="Fits on a cluster.")
    parser.add_argument("--share", type=float, default=1.0, help="of the queries, for a trial")
    parser.add_argument("--count-only", action="store_true", help="count messages, and time nothing")
    options = parser.parse_args()
    queries = make_data(options.share)
    tables = [lambda: iter([count_messages(queries)])]
    if not options.count_only:
        tables.insert(0, lambda: iter([compare_with_one_thread(queries)]))
    publish(tables)


if __name__ == "__main__":
    main()
