"""Weights of blends, the slow and obvious way: query by query, document by document."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

import rankwright as rw


def find_mean(queries: rw.Queries, measure: str, columns: np.ndarray, weights: Sequence[float]) -> float:
    """The mean measure of documents that are ranked by a weighted sum of columns."""
    scores = [math.fsum(w * v for w, v in zip(weights, row, strict=True)) for row in columns.tolist()]
    return rw.parse_measure(measure).for_training().mean(queries, np.array(scores))


def list_simplex(n: int, steps: int) -> Iterator[tuple[float, ...]]:
    """All weights that are multiples of 1 / steps and add up to 1."""
    for parts in itertools.product(range(steps + 1), repeat=n):
        if sum(parts) == steps:
            yield tuple(part / steps for part in parts)


def find_best_on_grid(
    queries: rw.Queries, measure: str, columns: np.ndarray, steps: int, shrinkage: float, prior: Sequence[float]
) -> float:
    """The largest measure, less the penalty on the distance from a prior, over a grid of weights."""
    return max(
        find_mean(queries, measure, columns, weights) - penalise(weights, shrinkage, prior)
        for weights in list_simplex(columns.shape[1], steps)
    )


def penalise(weights: Sequence[float], shrinkage: float, prior: Sequence[float]) -> float:
    """The penalty: shrinkage / n times the sum of (n w - n p)^2, for n members of a positive prior p."""
    n = sum(p > 0 for p in prior)
    return shrinkage / n * math.fsum((n * w - n * p) ** 2 for w, p in zip(weights, prior, strict=True))


def select_greedily(queries: rw.Queries, measure: str, columns: np.ndarray, n_steps: int) -> list[float]:
    """Greedy selection with replacement: the weights of the first of the best steps."""
    n = columns.shape[1]
    counts, best, kept = [0] * n, -math.inf, [1.0 / n] * n
    for _ in range(n_steps):
        tried = [[c + (i == j) for j, c in enumerate(counts)] for i in range(n)]
        values = [find_mean(queries, measure, columns, each) for each in tried]
        counts = tried[values.index(max(values))]
        if max(values) > best:
            best, kept = max(values), [c / sum(counts) for c in counts]
    return kept


def find_first_of_weights(columns: np.ndarray, grades: np.ndarray, k: int, steps: int) -> set[int]:
    """The documents of one query that some weights of a grid rank among the first k; ties favour lower grades."""
    found: set[int] = set()
    for weights in list_simplex(columns.shape[1], steps):
        scores = columns @ np.array(weights)
        order = sorted(range(len(grades)), key=lambda i: (-scores[i], grades[i]))
        found |= set(order[:k])
    return found


def choose_by_one_error(values: np.ndarray, weight: np.ndarray) -> int:
    """The first row that is not below the best mean by more than a standard error of their difference."""
    share = [w / sum(weight) for w in weight]
    means = [math.fsum(s * v for s, v in zip(share, row, strict=True)) for row in values.tolist()]
    best = means.index(max(means))
    for row, mean in zip(values.tolist(), means, strict=True):
        gaps = [b - v for b, v in zip(values[best].tolist(), row, strict=True)]
        error = math.sqrt(math.fsum((s * (g - (means[best] - mean))) ** 2 for s, g in zip(share, gaps, strict=True)))
        if mean >= means[best] - error:
            return [tuple(each) for each in values.tolist()].index(tuple(row))
    raise AssertionError("the best row is not below itself")
