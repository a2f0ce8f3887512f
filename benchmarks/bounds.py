"""Bounds: SVMMap, SVMNDCG and PermuRank, the solver of their small QPs, long lists, and loss-augmented inference."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.quadratic import PEERS, find_solvers, record_programmes, solve_all, value
from benchmarks.reading import resident
from benchmarks.report import Row, Table, below, faster, publish, skipped
from benchmarks.starting import data_root
from benchmarks.timing import THREADS, medians, take_turns, timed
from rankwright.basics.array_types import Floats
from rankwright.kernels.jit import Ints, kernel
from rankwright.objectives.rankings import Rankings, prepare_rankings

_FIT = "from benchmarks.bounds import print_fit; import sys; print_fit(sys.argv[1])"
_BACKEND = rw.Threads(THREADS)
RANKERS: Mapping[str, rw.Ranker] = {
    "SVMMap, C = 10": rw.SVMMap(C=10.0, backend=_BACKEND),
    "PermuRank on MAP, 50 rounds": rw.PermuRank(measure="map", max_iter=50, backend=_BACKEND),
    "PermuRank on NDCG@10, 50 rounds": rw.PermuRank(measure="ndcg@10", max_iter=50, backend=_BACKEND),
    "SVMNDCG, C = 0.1": rw.SVMNDCG(C=0.1, backend=_BACKEND),
}


def measure_gaps(n_queries: int = 500) -> Table:
    """How long SVMMap takes to a given precision."""
    queries, rows = rw.make_queries(n_queries, n_docs=120, n_features=46, random_state=0), []
    rw.SVMMap(backend=_BACKEND).fit(rw.make_queries(5, random_state=0))  # compiles
    for C in (10.0, 1000.0):
        for tol in (1e-2, 1e-3, 1e-4):
            ranker = rw.SVMMap(C=C, tol=tol, backend=_BACKEND)
            seconds = median(timed(partial(ranker.fit, queries)) for _ in range(3))
            last = ranker.history_[-1]
            figure = f"{seconds:.2f} s, {last['round']} rounds, gap {last['gap'] / last['objective']:.0e}"
            what = f"SVMMap, C = {C:g}, to {tol:.0e}"
            rows.append(below(what, figure, seconds, 4.0, "s") if tol == 1e-4 else Row(what, figure))
    notes = [
        f"{n_queries} queries, {queries.n_docs:,} documents, 46 features; {THREADS} threads; medians of 3 whole fits, "
        "the training measure of every round in it.",
        "SVMmap's own C code takes 21 s for data of this size; it is not run here.",
    ]
    return Table("SVMMap to a duality gap", rows, notes)


def compare_solvers(C: float = 1000.0, tol: float = 1e-6) -> Table:
    """Solvers of quadratic programmes on those that a fit has to solve."""
    queries = rw.make_queries(500, n_docs=120, n_features=46, random_state=0)
    programmes = record_programmes(partial(rw.SVMMap(C=C, tol=tol, backend=_BACKEND).fit, queries))
    solvers = find_solvers()
    rows, tasks = [], {name: partial(solve_all, solve, programmes) for name, solve in solvers.items()}
    least = [min(map(partial(value, p), (solve(p) for solve in solvers.values()))) for p in programmes]
    seconds = medians(take_turns(tasks, 3))
    for name, solve in solvers.items():
        off = max(1.0 - value(p, solve(p)) / low for p, low in zip(programmes, least, strict=True))
        figure = f"{1e6 * seconds[name] / len(programmes):,.0f} us a QP, at worst {off:.0e} off"
        rows.append(Row(name, figure) if name == "daqp" else faster(name, figure, seconds[name] / seconds["daqp"]))
    rows += [skipped(name) for name in PEERS if name not in solvers]
    sizes = [len(p[1]) for p in programmes]
    notes = [
        f"The {len(programmes)} QPs of SVMMap with C = {C:g} to a gap of {tol:.0e} on 500 queries of 120 documents: "
        f"{min(sizes)} to {max(sizes)} planes. Off: of the least value that any solver found, once made feasible.",
        "Clarabel and OSQP get sparse matrices that are full; setting up is counted for all.",
    ]
    return Table("Solvers of the QP", rows, notes)


def measure_fits() -> Table:
    """Whole fits on real data."""
    title, folder = "Fits on OHSUMED, fold 1", data_root() / "OHSUMED"
    if not folder.is_dir():
        return Table(title, [skipped("OHSUMED", "not here; RANKWRIGHT_DATA names the folder of data sets")])
    fold, rows = rw.read_folds(folder)[0], []
    for name, ranker in RANKERS.items():
        ranker.fit(rw.make_queries(5, random_state=0))
        seconds = median(timed(partial(ranker.fit, fold.train, valid=fold.valid)) for _ in range(3))
        rows.append(Row(name, f"{seconds:.2f} s, {len(ranker.history_)} rounds"))
    n_docs, n_features = fold.train.X.shape
    return Table(
        title, rows, [f"{len(fold.train)} queries, {n_docs:,} documents, {n_features} features; {THREADS} threads."]
    )


def make_long(n_queries: int = 50, n_docs: int = 1_000, n_features: int = 64) -> rw.Queries:
    """Long lists with about one relevant document in a hundred, as in LETOR's .Gov."""
    rng, n = np.random.default_rng(0), n_queries * n_docs
    relevance = rng.normal(size=n)
    y = (relevance > 2.33).astype(np.float64)
    X = rng.standard_normal((n, n_features), dtype=np.float32)
    X += relevance.astype(np.float32)[:, None] * rng.uniform(0.0, 0.3, n_features).astype(np.float32) ** 2
    return rw.Queries(X, y, np.arange(n_queries + 1) * n_docs, np.arange(n_queries))


class Fit(NamedTuple):
    """A fit in a process of its own."""

    seconds: float
    rounds: int
    size: int  # bytes of X
    peak: int  # bytes that data and fit took at most


def print_fit(name: str) -> None:
    """Fit one of the rankers to long lists, and print as JSON what ``Fit`` holds."""
    ranker = RANKERS[name]
    ranker.fit(rw.make_queries(20, n_docs=30, random_state=0))
    before = resident("VmRSS")
    queries = make_long()
    seconds = timed(partial(ranker.fit, queries))
    print(json.dumps([seconds, len(ranker.history_), queries.X.nbytes, resident("VmHWM") - before]))


def measure_long() -> Table:
    """Time and memory with 1,000 documents a query."""
    rows, root, size = [], Path(__file__).parents[1], 0
    for name in RANKERS:
        command = [sys.executable, "-c", _FIT, name]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root).stdout
        fit = Fit(*json.loads(output))
        share = fit.peak / fit.size
        figure = f"{fit.seconds:.1f} s, {fit.rounds} rounds; {fit.peak / 1e6:,.0f} MB at most"
        rows.append(Row(f"{name}", figure, f"{share:.2f} times X"))
        size = fit.size
    notes = [
        f"50 queries of 1,000 documents, 64 features, one document in a hundred relevant; X takes {size / 1e6:.0f} "
        f"MB; {THREADS} threads; one fit each.",
        "Peak resident memory of a fresh process, less what it held after importing and a tiny fit: the data is in it.",
        "The data itself is 1 times X; a number for every pair of documents of a query would be 400 MB.",
    ]
    return Table("1,000 documents a query", rows, notes)


@kernel
def naive_violated(scores: Floats, classes: Ints, rows: Ints) -> Ints:
    """The ranking of the highest (1 - AP) + F of one query, every place of every irrelevant document tried: O(R N)."""
    relevant, others = rows[classes[rows] == 0], rows[classes[rows] != 0]
    R, N = len(relevant), len(others)
    place = np.empty(N, np.int64)
    for j in range(N):
        value, best, chosen = 0.0, 0.0, R
        for p in range(R - 1, -1, -1):  # one more relevant document after it
            value += ((j + 1) / (p + j + 2) - j / (p + j + 1)) / R
            value -= 2.0 * (scores[relevant[p]] - scores[others[j]]) / (R * N)
            if value > best:
                best, chosen = value, p
        place[j] = chosen
    merged, i = np.empty(R + N, np.int64), 0
    for j in range(N):
        while i < place[j]:
            merged[i + j] = relevant[i]
            i += 1
        merged[i + j] = others[j]
    for p in range(i, R):
        merged[p + N] = relevant[p]
    return merged


def _naive(found: Rankings, scores: Floats) -> Ints:
    order = found.rank_by_score(scores)
    return np.concatenate([naive_violated(scores, found.classes, rows) for rows in np.split(order, found.indptr[1:-1])])


def _brute(found: Rankings, scores: Floats, orders: Ints) -> Ints:
    """All rankings of one query, by NumPy: AP and F of each, from running counts."""
    relevant = found.classes[orders] == 0
    above = relevant.cumsum(axis=1)
    R = above[0, -1]
    E = (relevant * above / np.arange(1, orders.shape[1] + 1)).sum(axis=1) / R
    coefficients = np.where(relevant, orders.shape[1] - R - 2 * (~relevant).cumsum(axis=1), R - 2 * above)
    best = np.argmax(1.0 - E + (coefficients * scores[orders]).sum(axis=1) / found.norm[0])
    row: Ints = orders[best]
    return row


def measure_inference() -> Table:
    """The most violated ranking under AP, by length."""
    rows = []
    for n_queries, n_docs in ((1, 7), (100, 100), (20, 1_000), (3, 10_000)):
        rng, n = np.random.default_rng(0), n_queries * n_docs
        y = (rng.random(n) < 0.3).astype(np.float64)
        y[::n_docs], y[1::n_docs] = 0.0, 1.0
        scores = rng.normal(size=n) * 3 + y
        queries = rw.Queries(
            np.zeros((n, 1), dtype=np.float32), y, np.arange(n_queries + 1) * n_docs, np.arange(n_queries)
        )
        found = prepare_rankings(rw.parse_measure("map"), queries)
        tasks: dict[str, Callable[[], Ints]] = {
            "ours": partial(found.find_most_violated, scores),
            "every place of each, O(R N)": partial(_naive, found, scores),
        }
        if n_docs == 7:
            tasks[f"all {np.prod(np.arange(1, 8)):,} rankings"] = partial(
                _brute, found, scores, np.array(list(permutations(range(7))))
            )
        values = [1.0 - found.E(order) + found.F(order, scores) for order in (task() for task in tasks.values())]
        if np.ptp(values, axis=0).max() > 1e-9:
            raise AssertionError(f"the searches disagree at n = {n_docs}")
        seconds = medians(take_turns(tasks, 7))
        for name, each in seconds.items():
            figure, what = f"{1e6 * each / n_queries:,.1f} us a query", f"{n_docs:,} documents: {name}"
            rows.append(Row(what, figure) if name == "ours" else faster(what, figure, each / seconds["ours"]))
    notes = [
        "Three documents of ten relevant, random scores; sorting by score is counted for both; 1 thread, medians of 7.",
        "All reach the same (1 - AP) + F on every query, checked to 1e-9. The naive search is in Numba too. With 7 "
        "documents calls cost more than work.",
    ]
    return Table("The most violated ranking under AP", rows, notes)


def measure() -> Iterator[Table]:
    """All tables on bounds."""
    yield measure_gaps()
    yield compare_solvers()
    yield measure_fits()
    yield measure_long()
    yield measure_inference()


if __name__ == "__main__":
    publish([measure])
