"""Lines and the measure along them, by trying everything."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import exp, log

import numpy as np


def crossings(queries, scores, slopes):
    """Where the lines of any two documents of one query cross, in order."""
    found = set()
    for rows in queries:
        for i, j in combinations(range(rows.start, rows.stop), 2):
            if slopes[i] != slopes[j]:
                found.add((scores[j] - scores[i]) / (slopes[i] - slopes[j]))
    return sorted(found)


def inner_points(cuts, low=-np.inf, high=np.inf, narrowest=1e-6):
    """A point inside of every interval between crossings that is not narrower than this."""
    cuts = [cut for cut in cuts if low < cut < high]
    ends = [low, *cuts, high]
    points = []
    for left, right in pairwise(ends):
        if left == -np.inf and right == np.inf:
            points.append(0.0)
        elif left == -np.inf:
            points.append(right - 1.0)
        elif right == np.inf:
            points.append(left + 1.0)
        elif right - left > narrowest:
            points.append((left + right) / 2)
    return points


def values_along(queries, measure, scores, slopes, points):
    """The mean measure at every point, each from a new ranking."""
    return np.array([measure.mean(queries, scores + slopes * t) for t in points])


def log_likelihood(queries, scores, k):
    """Plackett-Luce: the first k places of the label order, equal grades in proportion, chosen among l_i <= l_j."""
    total = 0.0
    for rows, weight in zip(queries, queries.query_weight, strict=True):
        grades, s = queries.y[rows], scores[rows]
        left = k
        for grade in sorted(set(grades), reverse=True):
            own = [j for j in range(len(s)) if grades[j] == grade]
            counted = min(len(own), left)
            left -= counted
            below = log(sum(exp(s[i]) for i in range(len(s)) if grades[i] <= grade))
            total += weight * counted / len(own) * sum(s[j] - below for j in own)
    return total


def coordinate_ascent(queries, measure, start, unit, rng, n_steps=25, tol=0.001):
    """Metzler and Croft's search with RankLib's schedule, ranking all documents for every trial."""

    def value(coef):
        return measure.mean(queries, queries.X.astype(np.float64) @ coef)

    columns = [k for k in range(queries.n_features) if unit[k] > 0]
    patience = max(len(columns) - 1, 1)
    coef, best, fails = start.copy(), value(start), 0
    while fails < patience:
        before = best
        for k in rng.permutation(columns):
            weight = coef[k] * unit[k]
            first = 0.001 if weight == 0 or abs(weight) >= 0.002 else 0.05 * abs(weight)
            up = [first * (2.0**j - 1) for j in range(1, n_steps + 1)]
            gained = False
            for trials in (up, [-step for step in up], [-weight]):
                tried = []
                for step in trials:
                    moved = coef.copy()
                    moved[k] += step / unit[k]
                    tried.append((value(moved), moved))
                top = max(found for found, _ in tried)
                if top > best + 1e-12:
                    moved = next(m for found, m in tried if found == top)
                    coef = moved / np.abs(moved * unit).sum()
                    best, gained = value(coef), True
                    break
            fails = 0 if gained else fails + 1
            if fails >= patience:
                break
        if best - before < tol:
            break
    return coef, best
