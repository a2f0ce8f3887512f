"""Small queries with scores of every awkward kind, for the tests of rankings and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import rankwright as rw

NAMES = (
    "map", "ndcg", "ndcg@1", "ndcg@3", "err", "err@3", "err@3(max=5)", "p@2", "mrr", "rr@2", "wta", "ndcg@3(discount=letor)",
    "ndcg@3(gain=pow2)", "rbp@3", "ap@2", "ap@2(norm=min)", "map(rel=2)", "recall@2", "dcg", "dcg@2", "p",
)  # fmt: skip


def grades_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Grades of one query."""
    if kind == "graded":
        return rng.integers(0, 4, n)
    if kind == "binary":
        return rng.integers(0, 2, n)
    if kind == "few":
        return rng.integers(0, 4, n) * (rng.random(n) < 0.3)
    return np.full(n, {"none": 0, "equal": 2}[kind])


def scores_of(kind: str, grades: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores of one query; near the perfect ranking, near the worst one, or anywhere; with and without ties."""
    n = len(grades)
    if kind == "random":
        return rng.normal(size=n)
    if kind == "integer":
        return rng.integers(-2, 3, n).astype(float)
    if kind == "duplicated":
        return rng.normal(size=max(n // 2, 1))[rng.integers(0, max(n // 2, 1), n)]
    if kind == "constant":
        return np.full(n, 0.1)
    return {"perfect": 1, "worst": -1}[kind] * (grades + rng.uniform(0, rng.choice([0.0, 0.5, 1.2]), n))


@st.composite
def problems(draw: st.DrawFn, most: int = 6, many: int = 3) -> tuple[rw.Queries, np.ndarray]:
    """A few queries of 1 to ``most`` documents with weights, and scores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=many))
    y, scores = [], []
    for n in sizes:
        y.append(grades_of(draw(st.sampled_from(["graded", "binary", "few", "none", "equal"])), n, rng))
        kind = draw(st.sampled_from(["random", "integer", "duplicated", "constant", "perfect", "worst"]))
        scores.append(draw(st.sampled_from([1.0, 0.05, 10.0])) * scores_of(kind, y[-1], rng))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    weight = rng.uniform(0.2, 3.0, len(sizes))
    return rw.Queries.from_arrays(np.zeros((len(qid), 1)), np.concatenate(y), qid, weight=weight), np.concatenate(
        scores
    )


def by_query(queries: rw.Queries, *by_row: np.ndarray) -> list[tuple[Any, ...]]:
    """Of each query its rows, its grades as a tuple, and its part of every array."""
    return [(rows, tuple(queries.y[rows].tolist()), *(each[rows] for each in by_row)) for rows in queries]
