"""RankSVM: the exact minimum without a list of pairs, against LinearSVC on the list, and how its cost grows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import rankwright as rw
from benchmarks.report import Row, Table, below, faster, publish
from benchmarks.timing import THREADS, medians, take_turns, timed
from rankwright.basics.array_types import Floats
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.scorers.linear import StandardScaling

PASSES = 1000  # of LinearSVC over the pairs, at most: its default
SVMRANK_C = 5.0


class Peer(NamedTuple):
    """What LinearSVC found."""

    w: Floats
    passes: int


def differences(queries: rw.Queries) -> Floats:
    """x_i - x_j of every pair, standardised; signs alternate, so that there are two classes."""
    standard, rows = StandardScaling.fit(queries), []
    for part in queries:
        X, y = (queries.X[part] - standard.mean) * standard.factor, queries.y[part]
        higher, lower = np.nonzero(y[:, None] > y)
        rows.append(X[higher] - X[lower])
    pairs: Floats = np.concatenate(rows)
    pairs[::2] *= -1.0
    return pairs


def fit_peer(pairs: Floats, signs: NDArray[np.int64], C: float) -> Peer:
    """LinearSVC with its own default tolerance."""
    peer = LinearSVC(C=C / len(pairs), loss="hinge", dual=True, fit_intercept=False, max_iter=PASSES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(pairs, signs)
    return Peer(peer.coef_[0], int(np.max(peer.n_iter_)))


def objective(pairs: Floats, signs: NDArray[np.int64], C: float, w: Floats) -> float:
    """What is minimised."""
    return float(0.5 * w @ w + C * np.maximum(1.0 - signs * (pairs @ w), 0.0).mean())


def fit(queries: rw.Queries, C: float) -> dict[str, float]:
    """Ours: the last row of the history."""
    row: dict[str, float] = rw.RankSVM(C=C, backend=rw.Threads(THREADS)).fit(queries).history_[-1]
    return row


def measure_solvers(n_queries: int = 500) -> Table:
    """The same problem at a moderate C and at the one that is SVMrank's 5."""
    queries = rw.make_queries(n_queries, n_docs=120, n_features=46, random_state=0)
    pairs = differences(queries)
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    fit(rw.make_queries(5, random_state=0), 1.0)
    rows = []
    for name, C in (("C = 10", 10.0), (f"SVMrank's C = {SVMRANK_C:g}", SVMRANK_C / n_queries * len(pairs))):
        ours: list[dict[str, float]] = []
        peers: list[Peer] = []
        tasks = {
            "ours": partial(_into, ours, fit, queries, C),
            "peer": partial(_into, peers, fit_peer, pairs, signs, C),
        }
        seconds = medians(take_turns(tasks, 3))
        row, peer = ours[-1], peers[-1]
        least = row["objective"] - row["gap"]
        gap = f"gap {row['gap'] / row['objective']:.0e}"
        rows.append(below(f"RankSVM, {name}", f"{seconds['ours']:.2f} s, {gap}", seconds["ours"], 3.0, "s"))
        stopped = "stopped by the cap" if peer.passes >= PASSES else "converged by its own rule"
        excess = objective(pairs, signs, C, peer.w) / least - 1.0
        figure = f"{seconds['peer']:.1f} s, {peer.passes} passes, {stopped}; {excess:.0e} above the lower bound"
        rows.append(faster(f"LinearSVC on the pairs, {name}", figure, seconds["peer"] / seconds["ours"], 5.0))
    notes = [
        f"{n_queries} queries, {queries.n_docs:,} documents, 46 features, {len(pairs):,} pairs "
        f"({pairs.nbytes / 2**20:,.0f} MiB as a list, whose making is not counted); {THREADS} threads for ours, "
        "LinearSVC has one. Ours includes scaling and the measure of every step.",
        f"LinearSVC: dual, hinge; by default tol=1e-4 and at most {PASSES} passes. The lower bound is ours.",
    ]
    return Table("RankSVM against a list of pairs", rows, notes)


def measure_large(n_queries: int = 6000) -> Table:
    """Many documents and features."""
    queries = rw.make_queries(n_queries, n_docs=120, n_features=136, random_state=0)
    pairs = PairLoss(queries, mean=np.zeros(136)).total
    rows = []
    for name, C in (
        ("C = 10", 10.0),
        ("C = 1000", 1000.0),
        (f"SVMrank's C = {SVMRANK_C:g}", SVMRANK_C / n_queries * pairs),
    ):
        found: list[dict[str, float]] = []
        seconds = timed(partial(_into, found, fit, queries, C))
        gap = found[0]["gap"] / found[0]["objective"]
        rows.append(below(f"RankSVM, {name}", f"{seconds:.1f} s, gap {gap:.0e}", seconds, 60.0, "s"))
    notes = [f"{n_queries:,} queries, {queries.n_docs:,} documents, 136 features, {pairs:,.0f} pairs; one fit each."]
    return Table("RankSVM on many documents", rows, notes)


def measure_growth(n_queries: int = 60, repetitions: int = 7) -> Table:
    """An evaluation of loss and gradient with ever longer queries."""
    tasks: dict[str, Callable[[], object]] = {}
    sizes: dict[str, tuple[int, float, float]] = {}
    for length in (120, 480, 1920):
        queries = rw.make_queries(n_queries, n_docs=length, n_features=46, random_state=0)
        standard = StandardScaling.fit(queries)
        problem = PairLoss(queries, None, None, standard.factor, standard.mean, rw.Serial())
        w = np.random.default_rng(0).normal(size=46)
        tasks[str(length)] = partial(problem.evaluate, w, 0.1)
        n = np.diff(queries.indptr)
        sizes[str(length)] = queries.n_docs, float((n * np.log2(np.maximum(n, 2))).sum()), problem.total
    for task in tasks.values():
        task()
    seconds = medians(take_turns(tasks, repetitions))
    rows, first = [], 0.0
    for name, (n_docs, work, pairs) in sizes.items():
        cost = seconds[name] / work
        first = first or cost
        figure = f"{1000 * seconds[name]:.1f} ms, {n_docs:,} documents, {pairs:,.0f} pairs"
        rows.append(Row(f"{n_queries} queries of about {name} documents", figure, f"{cost / first:.2f}"))
    notes = [
        "One thread; scores, loss, gradient and certificate at a new point. "
        "The ratio is of the seconds per n log n to the shortest queries': 1 is growth as n log n.",
    ]
    return Table("Pair sums with the length of queries", rows, notes)


def _into(results: list[Any], task: Callable[..., Any], *arguments: Any) -> None:
    results.append(task(*arguments))


def measure() -> Iterator[Table]:
    """All tables on pairs."""
    yield measure_solvers()
    yield measure_large()
    yield measure_growth()


if __name__ == "__main__":
    publish([measure])
