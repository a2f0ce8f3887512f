"""Boosting: what 500 rounds of AdaRank cost, and how the cost grows with the documents."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

import rankwright as rw
from benchmarks.report import Row, Table, below, publish
from benchmarks.timing import THREADS
from rankwright.basics import progress

ROUNDS = 500


class Fit(NamedTuple):
    """The cost of one fit."""

    once: float  # seconds before the first round
    loop: float  # seconds of all rounds
    rounds: int

    @property
    def total(self) -> float:
        """All seconds."""
        return self.once + self.loop

    @property
    def per_round(self) -> float:
        """Seconds of a round."""
        return self.loop / self.rounds


def make_data(n_queries: int, random_state: int = 0) -> rw.Queries:
    """Queries of about 120 documents with 46 features, the defaults of make_queries otherwise."""
    return rw.make_queries(n_queries, n_docs=120, n_features=46, random_state=random_state)


def fit(queries: rw.Queries, n_estimators: int) -> Fit:
    """Fit once, and note when the rounds begin."""
    began: list[float] = []

    def note(what: str, done: int, total: int) -> None:
        if what == "rounds" and done == 0:
            began.append(perf_counter())

    ranker = rw.AdaRank(n_estimators=n_estimators, backend=rw.Threads(THREADS))
    with progress.listen(note):
        start = perf_counter()
        ranker.fit(queries)
        stop = perf_counter()
    return Fit(began[0] - start, stop - began[0], len(ranker.history_))


def middle(fits: list[Fit]) -> Fit:
    """The medians of the parts of several fits of the same data."""
    return Fit(median(f.once for f in fits), median(f.loop for f in fits), fits[0].rounds)


def measure_rounds(n_queries: int = 500, seeds: int = 3, repetitions: int = 5) -> Table:
    """500 rounds on several sets of queries of one size."""
    rows, data = [], [make_data(n_queries, seed) for seed in range(seeds)]
    fit(make_data(20), 2)
    fits = [[fit(queries, ROUNDS) for queries in data] for _ in range(repetitions)]
    for seed, queries in enumerate(data):
        cost = middle([turn[seed] for turn in fits])
        for_all = cost.once + ROUNDS * cost.per_round
        figure = f"{for_all:.2f} s ({cost.once:.2f} s once, {1000 * cost.per_round:.2f} ms a round)"
        if cost.rounds < ROUNDS:
            figure += f"; in fact {cost.total:.2f} s, stopped after {cost.rounds} rounds"
        rows.append(below(f"{ROUNDS} rounds, {queries.n_docs:,} documents, seed {seed}", figure, for_all, 2.5, "s"))
    notes = [
        f"AdaRank on NDCG@10, {n_queries} queries, 46 features, {THREADS} threads; medians of {repetitions} fits each.",
        "Once: the measure of every feature on every query. A round: choose a feature, re-rank, update the weights.",
        f"Training stops early when every feature is banned; the figure is then extrapolated to {ROUNDS} rounds.",
    ]
    return Table("Boosting", rows, notes)


def measure_growth(n_queries: int = 500, n_estimators: int = 100, repetitions: int = 3) -> Table:
    """The cost per document of 1, 4 and 16 times the queries; copies, so that training takes the same course."""
    factors, queries = (1, 4, 16), make_data(n_queries)
    data = [queries.take(np.tile(np.arange(n_queries), factor)) for factor in factors]
    fit(queries, 2)
    fits = [[fit(queries, n_estimators) for queries in data] for _ in range(repetitions)]
    rows, first = [], 0.0
    for i, (factor, queries) in enumerate(zip(factors, data, strict=True)):
        cost, millions = middle([turn[i] for turn in fits]), queries.n_docs / 1e6
        a_round = cost.per_round / millions
        first = first or a_round
        figure = f"{1000 * a_round:.1f} ms a round, {cost.once / millions:.2f} s once, per million documents"
        rows.append(
            Row(f"{factor} x {n_queries} queries, {queries.n_docs:,} documents", figure, f"{a_round / first:.2f}")
        )
    notes = [
        f"The same {n_queries} queries once and in copies, {n_estimators} rounds; medians of {repetitions} fits each.",
        "The ratio is of a round's cost per document to the smallest set's: 1 is linear growth.",
    ]
    return Table("Growth with the number of documents", rows, notes)


def measure(n_queries: int = 500) -> Iterator[Table]:
    """All tables on boosting."""
    yield measure_rounds(n_queries)
    yield measure_growth(n_queries)


if __name__ == "__main__":
    publish([measure])
