"""Fusion, document by document."""

from __future__ import annotations

import math

Run = dict[str, dict[str, float]]


def normalise_scores(answer: dict[str, float], how: str) -> dict[str, float]:
    """The scores of one run for one query, made comparable."""
    values = list(answer.values())
    low, high, n = min(values), max(values), len(values)
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n)

    def rank(v: float) -> float:
        return sum(w > v for w in values) + (sum(w == v for w in values) + 1) / 2

    rules = {
        "min-max": lambda v: (v - low) / (high - low) if high > low else 1.0,
        "z": lambda v: (v - mean) / deviation if high > low else 0.0,
        "rank": lambda v: (n - rank(v) + 1) / n,
        "rrf": lambda v: 1 / (60 + rank(v)),
        "none": lambda v: v,
    }
    return {name: rules[how](v) for name, v in answer.items()}


def fused(runs: list[Run], weights: list[float], how: str) -> Run:
    """The weighted sum of runs: by query and document the score."""
    out: Run = {}
    for query in {query for run in runs for query in run}:
        answers = [normalise_scores(run[query], how) if query in run else {} for run in runs]
        missing = [min(a.values()) if a and how in ("z", "none") else 0.0 for a in answers]
        out[query] = {
            name: sum(w * a.get(name, m) for w, a, m in zip(weights, answers, missing, strict=True))
            for name in {name for a in answers for name in a}
        }
    return out


def can_be_first(X: list[list[float]], y: list[float], k: int) -> list[bool]:
    """Which documents fewer than k others precede for all weights that are not negative."""

    def precedes(j: int, i: int) -> bool:
        weakly = all(a >= b for a, b in zip(X[j], X[i], strict=True))
        strictly = all(a > b for a, b in zip(X[j], X[i], strict=True))
        alike = X[j] == X[i] and y[j] == y[i]
        return strictly or (weakly and y[j] <= y[i] and (not alike or j < i))

    n = len(y)
    return [sum(precedes(j, i) for j in range(n) if j != i) < k for i in range(n)]
