"""Measuring rankings: NDCG@10 and MAP of every query, against pytrec_eval and ranx."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, faster, publish, skipped
from benchmarks.timing import THREADS, find_peer, medians, take_turns
from rankwright.basics.array_types import Floats
from rankwright.measures import compute_values

MEASURES = ("ndcg@10(gain=linear)", "map")  # as trec_eval and ranx define them
SHAPES = ((20_000, 24), (6_000, 120))
Means = tuple[float, float]
Judged = dict[str, dict[str, Any]]


class Task(NamedTuple):
    """What is timed, how to get the two means from its result, and the ratio we aim for."""

    name: str
    run: Callable[[], Any]
    means: Callable[[Any], Means]
    target: float | None = None


def make_ranking(n_queries: int, n_docs: int, random_state: int = 0) -> tuple[rw.Queries, Floats]:
    """Random grades from 0 to 4, and scores without ties, also in float32, so that no tie rule matters."""
    rng = np.random.default_rng(random_state)
    n = n_queries * n_docs
    grades = rng.integers(0, 5, n)
    queries = rw.Queries.from_arrays(np.zeros((n, 1)), grades, np.repeat(np.arange(n_queries), n_docs))
    return queries, rng.permutation(n).astype(np.float64)


def our_tasks(queries: rw.Queries, scores: Floats) -> list[Task]:
    """Rankwright from names to means, and with ideals at hand."""
    backend = rw.Threads(THREADS)
    bounds = [rw.parse_measure(name).prepare(queries) for name in MEASURES]

    def means(values: Floats) -> Means:
        return float(values[0].mean()), float(values[1].mean())

    def evaluate() -> tuple[float, ...]:
        return tuple(rw.evaluate(scores, queries, MEASURES, backend).means.values())

    return [
        Task(f"rankwright.evaluate, {THREADS} threads", evaluate, lambda result: result),
        Task("rankwright, measures prepared beforehand", lambda: compute_values(bounds, scores, backend), means),
    ]


def peer_tasks(queries: rw.Queries, scores: Floats) -> Iterator[Task]:
    """The peers that are installed, their inputs built."""
    qrels, run = _as_dicts(queries, queries.y.astype(int).tolist()), _as_dicts(queries, scores.tolist())
    if (pytrec_eval := find_peer("pytrec_eval")) is not None:
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "map"})
        yield Task("pytrec_eval, 1 thread", lambda: evaluator.evaluate(run), _trec_means, 6.0)
    if (ranx := find_peer("ranx")) is not None:
        yield from _ranx_tasks(ranx, ranx.Qrels(qrels), ranx.Run(run))


def _ranx_tasks(ranx: Any, qrels: Any, run: Any) -> Iterator[Task]:
    names = ["ndcg@10", "map"]

    def means(result: dict[str, float]) -> Means:
        return float(result["ndcg@10"]), float(result["map"])

    def evaluate() -> Any:
        return ranx.evaluate(qrels, run, names, threads=THREADS)

    arrays = qrels.to_typed_list(), run.to_typed_list()
    yield Task(f"ranx, {THREADS} threads", evaluate, means, 10.0)
    yield Task(
        "ranx, arrays sorted and hashed beforehand", lambda: ranx.evaluate(*arrays, names, threads=THREADS), means
    )


def _as_dicts(queries: rw.Queries, values: list[Any]) -> Judged:
    """Value by document id by query id; ids of one width, for which ranx compiles one set of kernels."""
    ids = [f"d{i:03d}" for i in range(int(queries.sizes.max()))]
    return {
        f"q{qid:06d}": dict(zip(ids, values[rows], strict=False))
        for qid, rows in zip(queries.qid, queries, strict=True)
    }


def _trec_means(result: Judged) -> Means:
    mean = {name: float(np.mean([values[name] for values in result.values()])) for name in ("ndcg_cut_10", "map")}
    return mean["ndcg_cut_10"], mean["map"]


def check_agreement(tasks: list[Task]) -> Means:
    """Run every task once, which also compiles what there is to compile; all must find the same means."""
    with warnings.catch_warnings():  # what Numba says of ranx when it compiles it
        warnings.simplefilter("ignore")
        found = {task.name: task.means(task.run()) for task in tasks}
    expected = next(iter(found.values()))
    for name, means in found.items():
        if not np.allclose(means, expected, rtol=0, atol=1e-6):
            raise AssertionError(f"{name} finds {means}, others {expected}")
    return expected


def compare(n_queries: int, n_docs: int) -> Table:
    """Seconds of one shape."""
    queries, scores = make_ranking(n_queries, n_docs)
    tasks = [*our_tasks(queries, scores), *peer_tasks(queries, scores)]
    ndcg, ap = check_agreement(tasks)
    seconds = medians(take_turns({task.name: task.run for task in tasks}, 9))
    ours = seconds[tasks[0].name]
    rows = [Row(task.name, _milliseconds(seconds[task.name])) for task in tasks[:2]]
    rows += [faster(t.name, _milliseconds(seconds[t.name]), seconds[t.name] / ours, t.target) for t in tasks[2:]]
    rows += [skipped(name) for name in ("pytrec_eval", "ranx") if not any(t.name.startswith(name) for t in tasks)]
    notes = [f"All find NDCG@10 {ndcg:.6f} (linear gain) and MAP {ap:.6f}, to 1e-6; ratios are to rankwright.evaluate."]
    if n_queries == SHAPES[0][0]:
        notes += [
            "rankwright.evaluate sorts the scores and computes the ideals in every call.",
            "pytrec_eval: dicts and evaluator built beforehand; its means are not counted.",
            "ranx: Qrels and Run sort themselves when they are built, which is not counted; a call hashes the document "
            "ids and stores the values by query in the Run. The last row does neither, and sorts nothing.",
        ]
    return Table(f"Measuring {n_queries:,} queries x {n_docs} documents", rows, notes)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def measure(shapes: tuple[tuple[int, int], ...] = SHAPES) -> Iterator[Table]:
    """All tables on measuring."""
    for n_queries, n_docs in shapes:
        yield compare(n_queries, n_docs)


if __name__ == "__main__":
    publish([measure])
