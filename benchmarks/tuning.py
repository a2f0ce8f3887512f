"""Tuning the weights of runs: seconds and what is reached, against ranx's grid search."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, below, faster, publish, skipped
from benchmarks.timing import THREADS, find_peer, medians, take_turns, timed
from rankwright.basics.array_types import Floats
from rankwright.data.document_pools import pool_documents
from rankwright.data.run_fusion import fuse

MEASURE = "ndcg@10(gain=linear)"  # as ranx defines ndcg@10
NOISE = (1.5, 1.0, 1.2)  # of the runs
Judgments = dict[str, dict[str, int]]
Runs = dict[str, dict[str, dict[str, float]]]


def make_runs(n_queries: int, n_docs: int, random_state: int = 0) -> tuple[Judgments, Runs]:
    """Judgments of 60 documents a query, and runs that see the relevance through noise, each on a scale of its own."""
    rng = np.random.default_rng(random_state)
    pool = n_docs * 8 // 5
    qrels: Judgments = {}
    runs: Runs = {f"run{i}": {} for i in range(len(NOISE))}
    for query in (f"q{i:05d}" for i in range(n_queries)):
        names = np.array([f"d{i:07d}" for i in rng.choice(10**7, pool, replace=False)])
        relevance = rng.normal(size=pool)
        grades = np.clip(np.floor(relevance - 0.2), 0, 3).astype(int)
        seen = np.argsort(-(relevance + rng.normal(size=pool)))[:60]
        qrels[query] = dict(zip(names[seen].tolist(), grades[seen].tolist(), strict=True))
        for i, (run, noise) in enumerate(zip(runs.values(), NOISE, strict=True)):
            scores = np.exp((relevance + noise * rng.normal(size=pool)) / (2 + i)) * 10**i
            top = np.argsort(-scores)[:n_docs]
            run[query] = dict(zip(names[top].tolist(), scores[top].tolist(), strict=True))
    return qrels, runs


def mean_measure(qrels: Judgments, runs: Runs, weights: Floats) -> float:
    """The training measure of weights, whoever found them."""
    fused = dict(fuse(list(runs.values()), weights, "min-max"))
    pool = pool_documents(
        list(qrels), [fused], {q: {d: float(g) for d, g in found.items()} for q, found in qrels.items()}
    )
    X, y = np.zeros((len(pool.grades), 1), np.float32), np.nan_to_num(pool.grades)
    queries = rw.Queries(X, y, pool.indptr, np.array(pool.qid)).keep_retrieved(pool.found)
    return rw.parse_measure(MEASURE).mean(queries, pool.scores[pool.found, 0])


def peer_search(ranx: Any, qrels: Judgments, runs: Runs) -> tuple[Callable[[], Any], Callable[[Any], float]]:
    """What ranx does, its inputs built and its kernels compiled; and the measure of weights by its own account."""
    judged, found = ranx.Qrels(qrels), [ranx.Run(run) for run in runs.values()]

    def search() -> Any:
        return ranx.optimize_fusion(judged, found, norm="min-max", method="wsum", metric="ndcg@10")

    def reached(params: Any) -> float:
        combined = ranx.fuse(found, norm="min-max", method="wsum", params=params)
        return float(ranx.evaluate(judged, combined, "ndcg@10"))

    return search, reached


def compare(n_queries: int, n_docs: int) -> Table:
    """Seconds of one shape."""
    qrels, runs = make_runs(n_queries, n_docs)
    backend = rw.Threads(THREADS)

    def tune(folds: int | None) -> rw.FusionResult:
        return rw.tune_fusion(qrels, runs, measure=MEASURE, folds=folds, backend=backend)

    few, rest = make_runs(20, 50)
    rw.tune_fusion(few, rest, measure=MEASURE, backend=backend)  # compiles what there is to compile
    seconds = medians(take_turns({"cv": lambda: tune(5), "fit": lambda: tune(None)}, 3))
    found = tune(None)
    ours = mean_measure(qrels, runs, np.array(list(found.weights.values())))
    figure = f"{seconds['cv']:.2f} s, with 5 folds, baselines and intervals"
    rows = [
        below(f"rankwright.tune_fusion, {THREADS} threads", figure, seconds["cv"], 5.0, "s"),
        Row("rankwright.tune_fusion without folds", f"{seconds['fit']:.2f} s"),
        Row("reading the runs and judgments from files", f"{_reading(qrels, runs):.2f} s"),
    ]
    ranx = find_peer("ranx")
    rows += [skipped("ranx")] if ranx is None else _peer_rows(ranx, qrels, runs, seconds["fit"], ours)
    notes = [
        f"Three runs, min-max scores, {MEASURE}, from mappings in memory; medians of 3, ranx once.",
        "ranx.optimize_fusion (wsum) tries every weight in steps of 0.1; runs and judgments are built beforehand, and "
        "it does no cross-validation: the ratio is to tune_fusion without folds, which also measures its baselines.",
        "The measures reached are those of the fused run, computed alike for both.",
    ]
    return Table(f"Tuning three runs of {n_queries:,} queries x {n_docs:,} documents", rows, notes)


def _peer_rows(ranx: Any, qrels: Judgments, runs: Runs, seconds: float, ours: float) -> list[Row]:
    few, rest = make_runs(20, 50)
    with warnings.catch_warnings():  # what Numba says of ranx when it compiles it
        warnings.simplefilter("ignore")
        peer_search(ranx, few, rest)[0]()
        search, reached = peer_search(ranx, qrels, runs)
        kept: list[Any] = []
        took = timed(lambda: kept.append(search()))
        by_its_own_account = reached(kept[0])
    theirs = mean_measure(qrels, runs, np.array(kept[0]["weights"], dtype=np.float64))
    if abs(theirs - by_its_own_account) > 1e-3:
        raise AssertionError(f"ranx finds {by_its_own_account} for its weights, rankwright {theirs}")
    return [
        faster("ranx.optimize_fusion", f"{took:.2f} s", took / seconds, 10.0),
        Row("training measure", f"{ours:.6f}; ranx {theirs:.6f}", "", "at least ranx's", ours >= theirs),
    ]


def _reading(qrels: Judgments, runs: Runs) -> float:
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "qrels").open("w") as file:
            file.writelines(f"{q} 0 {d} {g}\n" for q, found in qrels.items() for d, g in found.items())
        for run, table in runs.items():
            with (folder / run).open("w") as file:
                file.writelines(f"{q} Q0 {d} 1 {s!r} t\n" for q, found in table.items() for d, s in found.items())
        return timed(lambda: (rw.read_qrels(folder / "qrels"), [rw.read_run(folder / run) for run in runs]))


def measure(n_queries: int = 1000, n_docs: int = 1000) -> Iterator[Table]:
    """All tables on tuning."""
    yield compare(n_queries, n_docs)


if __name__ == "__main__":
    publish([measure])
