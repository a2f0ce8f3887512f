"""SoftRank as Taylor et al. (2008) define it, document by document. Scores may be complex, for derivatives."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from scipy.special import erf
from tests.reference.derivatives import gradient
from tests.reference.smooth import parts


def before(f, i, j, sigma):
    """pi_ij, the probability that i comes before j: Phi((f_i - f_j) / (sqrt(2) sigma))."""
    return (1 + erf((f[i] - f[j]) / (2 * sigma))) / 2


def rank_distribution(f, j, sigma):
    """p_j(r), r from 0 on, by the paper's recursion over the other documents."""
    p = [1.0]
    for i in range(len(f)):
        if i != j:
            pi = before(f, i, j, sigma)
            p = [x * (1 - pi) + y * pi for x, y in zip([*p, 0.0], [0.0, *p], strict=True)]
    return p


def enumerated_distribution(f, j, sigma):
    """p_j(r) from every set of documents that may come before j: what the recursion adds up."""
    pi = [before(f, i, j, sigma) for i in range(len(f)) if i != j]
    p = [0.0] * len(f)
    for outcome in product((False, True), repeat=len(pi)):
        p[sum(outcome)] += prod(x if comes else 1 - x for x, comes in zip(pi, outcome, strict=True))
    return p


def value(name, grades, f, sigma, distribution=rank_distribution):
    """The expected measure of one query, sum of g_j D(r) p_j(r) over its norm; 0 where nothing is relevant."""
    kind, gains, law, k, norm = parts(name, grades)
    assert kind == "additive"
    if norm == 0:
        return 0.0 * sum(f)
    total, n = 0.0 * sum(f), len(f)
    for j in range(n):
        p = distribution(f, j, sigma)
        total += gains[j] * sum(law(float(r + 1)) * p[r] for r in range(min(n, k or n)))
    return total / norm


def loss(name, queries, scores, sigma):
    """1 - the expected measure, summed over the queries with their weights, and its derivatives by score."""
    total, slopes = 0.0, np.zeros(len(scores))
    for q, rows in enumerate(queries):
        grades, w = queries.y[rows].tolist(), queries.query_weight[q]
        if "empty=skip" in name and parts(name, grades).norm == 0:
            continue

        def expected(f, grades=grades):
            return value(name, grades, f, sigma)

        total += w * (1 - expected(scores[rows]))
        slopes[rows] = -w * gradient(expected, scores[rows])
    return total, slopes
