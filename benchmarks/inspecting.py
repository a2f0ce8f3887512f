"""Inspection: false alarms on made clean sets, faults that are found, and seconds beside a pass over the memory.

``python -m benchmarks.inspecting`` prints how many of 200 clean sets raise each kind of finding that is an inference,
the best honest features beside leaks, and the time of an inspection of 1,000,000 documents with 136 features.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import rankwright as rw
from rankwright.analysis.inspection import inspect_quickly
from rankwright.basics.array_types import Floats, Ints

# Findings that are inferences: on a clean set each is a false alarm. The others count what is there.
INFERENCES = (
    *("label-leak", "label-name", "row-order", "query-order", "id-feature", "grades-like-scores", "outliers"),
    *("missing-as-number", "shared-queries", "split-queries", "shared-rows", "lost-feature", "feature-shift"),
    *("other-grades", "other-features", "high-grades", "negative-grades", "duplicated-docids"),
)


class CleanSet(NamedTuple):
    """Two synthetic sets of different queries without any fault, and the noise of their best feature."""

    train: rw.Queries
    test: rw.Queries
    noise: float


def make_clean_set(seed: int) -> CleanSet:
    """Make a clean set whose shape is drawn at random.

    Every third is made by ``rw.make_queries``. The others have features of many kinds: heavy tails, counts, flags,
    missing values, features of the query alone, features that go together, and one that is strong but honest. Numbers
    of queries, documents and grades vary, relevant documents are rare or frequent, and judges err or do not.
    """
    rng = np.random.default_rng(seed)
    n_queries = int(rng.choice([12, 30, 100, 400]))
    n_docs = int(rng.choice([8, 20, 60, 150]))
    n_grades = int(rng.choice([2, 3, 5]))
    if seed % 3 == 0:
        shape: dict[str, Any] = {"n_docs": n_docs, "n_features": 30, "grades": n_grades}
        made = rw.make_queries(n_queries, **shape, noise=float(rng.uniform(0.3, 2)), random_state=seed)
        return CleanSet(*_split(made), float("nan"))
    sizes = np.clip(rng.poisson(n_docs * rng.gamma(4.0, 0.25, n_queries)), 1, None)
    query = np.repeat(np.arange(n_queries), sizes)
    relevance = rng.normal(size=len(query))
    judged = relevance + rng.choice([0.0, 0.3]) * rng.normal(size=len(query))
    level = rng.normal(rng.choice([-2.5, -1.0, 0.0]), 0.7, n_queries)[query]
    y = (judged + level > np.linspace(0, 1.5, n_grades - 1)[:, None]).sum(axis=0)
    noise = float(rng.choice([0.25, 0.4, 1.0]))
    X = np.column_stack(list(_make_columns(relevance, query, noise, rng)))
    docid = [f"doc{number}" for number in rng.permutation(len(query))]
    made = rw.Queries.from_arrays(X, y, rng.permutation(10 * n_queries)[:n_queries][query], docid=docid)
    return CleanSet(*_split(made), noise)


def _make_columns(relevance: Floats, query: Ints, noise: float, rng: np.random.Generator) -> Iterator[Floats | Ints]:
    """Yield honest features of many kinds; the first is the strongest."""
    n, m = len(relevance), int(query.max()) + 1

    def view(hidden: float) -> Floats:
        return relevance + hidden * rng.normal(size=n)

    yield 12 + 4 * view(noise) + 3 * rng.normal(size=m)[query]  # as BM25: every query has its own level
    for hidden in rng.uniform(0.7, 4, 5):
        yield view(hidden)
    yield np.exp(1.5 * view(2.0))  # a heavy tail: log-normal with a deviation of 3.4
    yield rng.pareto(1.2, n) + 1
    yield rng.poisson(np.exp(view(1.5)))  # a count
    yield np.floor(np.exp(rng.normal(8, 1.5, n)))  # a length: whole numbers, nearly all different
    yield (view(1.0) > 1.5) * 1.0  # a flag that is rarely set
    yield np.where(rng.random(n) < 0.3, np.nan, view(1.0))
    yield np.floor(np.exp(rng.normal(6, 3, m)))[query]  # results of the query
    yield rng.integers(1, 12, m)[query]  # its number of words
    yield rng.normal(size=m)[query]
    yield rng.integers(1990, 2026, n)
    yield rng.normal(size=n)
    shared = rng.normal(size=n)
    for _ in range(4):
        yield shared + 0.1 * view(1.0)  # features that go together
    yield rng.integers(-1, 2, n)
    yield (rng.random(n) < 0.01) * rng.gamma(1.0, 1.0, n)  # nearly always 0


def _split(queries: rw.Queries) -> tuple[rw.Queries, rw.Queries]:
    """Return the first two thirds of the queries, and the rest."""
    cut = 2 * len(queries) // 3
    return queries.take(range(cut)), queries.take(range(cut, len(queries)))


def count_false_alarms(seeds: range) -> Counter[str]:
    """Return how many clean sets raise each kind of finding that is an inference."""
    alarms: Counter[str] = Counter()
    for seed in seeds:
        clean = make_clean_set(seed)
        findings = [*rw.inspect(clean.train, clean.test).findings, *inspect_quickly(clean.train, clean.test)]
        kinds = {finding.kind for finding in findings if finding.kind in INFERENCES}
        alarms.update(kinds)
        for finding in findings if kinds and "-v" in sys.argv else ():
            if finding.kind in INFERENCES:
                print(seed, len(clean.train), clean.train.n_docs, finding.kind, finding.what)
    return alarms


def measure_best_features(n_sets: int) -> list[tuple[float, float, float, float]]:
    """Return for each clean set the noise of its best feature, and what a leak is told by: share, ordered, top."""
    rows = []
    for seed in range(n_sets):
        clean = make_clean_set(seed)
        alone = rw.inspect(clean.train).alone
        if alone is not None and clean.noise == clean.noise and alone.n_uppers[0] >= 50:
            rows.append((clean.noise, float(alone.share[0]), float(alone.ordered[0]), float(alone.top[0])))
    return rows


def measure_seconds(n_docs: int, n_features: int) -> dict[str, float]:
    """Return the seconds of an inspection, of its quick part, and of a sum over the same memory."""
    rng = np.random.default_rng(0)
    block = rng.normal(size=(n_docs // 10, n_features)).astype(np.float32)
    X = np.concatenate([block + np.float32(i) for i in range(10)])
    y = rng.integers(0, 5, len(X))
    queries = rw.Queries.from_arrays(X, y, group=np.full(len(X) // 100, 100))
    seconds = {}
    for name, work in (
        ("inspect", lambda: rw.inspect(queries)),
        ("quick", lambda: inspect_quickly(queries)),
        ("sum", lambda: float(X.sum())),
    ):
        work()
        start = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - start
    return seconds


def main() -> None:
    """Print false alarms, the strongest honest features, and seconds."""
    for seeds in (range(200), range(10_000, 10_200)):  # thresholds were chosen on sets like the first, not the second
        alarms = count_false_alarms(seeds)
        print(f"false alarms on {len(seeds)} clean sets from seed {seeds.start}: {dict(alarms) or 'none'}")
    rows = measure_best_features(200)
    for noise in sorted({row[0] for row in rows}):
        shares = np.array([row[1:] for row in rows if row[0] == noise])
        print(f"noise {noise}: share, ordered, top at most {np.nanmax(shares, axis=0).round(4).tolist()}")
    print({name: round(value, 3) for name, value in measure_seconds(1_000_000, 136).items()})


if __name__ == "__main__":
    main()
