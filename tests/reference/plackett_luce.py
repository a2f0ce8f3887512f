"""Expected measures under Plackett-Luce as Kuo et al. (2009) print them, over all rankings. Scores may be complex."""

from __future__ import annotations

from itertools import permutations
from math import exp, log

import numpy as np
from tests.reference.derivatives import gradient


def p(pi, g):
    """Eq. (5)."""
    found = 1.0
    for i in range(len(pi)):
        found *= np.exp(g[pi[i]]) / sum(np.exp(g[pi[j]]) for j in range(i, len(pi)))
    return found


def T(top, g):
    """Eq. (12)."""
    return sum(exp(g[d]) for d in range(len(g)) if d not in top)


def p_k(top, g):
    """Eq. (11)."""
    k, found = len(top), 1.0
    for i in range(k):
        found *= exp(g[top[i]]) / (sum(exp(g[top[j]]) for j in range(i, k)) + T(top, g))
    return found


def G(top, r):
    """Eq. (7), k the length of ``top``, a beginning of a ranking of documents with the grades r."""
    best, k = sorted(r, reverse=True), len(top)
    ideal = sum(2 ** best[i] / log(2 + i) for i in range(k))
    return sum(2 ** r[top[j]] / log(2 + j) for j in range(k)) / ideal


def R(k, grades, scores):
    """Eq. (10)."""
    total = 0.0
    for r, g in zip(grades, scores, strict=True):
        total += sum(G(top, r) * p_k(top, g) for top in permutations(range(len(g)), min(k, len(g))))
    return -total / len(grades)


def dp_k(top, g, d):
    """Eq. (14)."""
    k = len(top)
    shares = [exp(g[d]) / (sum(exp(g[top[j]]) for j in range(i, k)) + T(top, g)) for i in range(k)]
    return p_k(top, g) * (1 - sum(shares[: top.index(d) + 1]) if d in top else -sum(shares))


def dR(k, grades, scores):
    """Eq. (13), the network being the scores themselves: the derivatives by each."""
    found = []
    for r, g in zip(grades, scores, strict=True):
        tops = list(permutations(range(len(g)), min(k, len(g))))
        found += [-sum(G(top, r) * dp_k(top, g, d) for top in tops) / len(grades) for d in range(len(g))]
    return np.array(found)


def probabilities(s):
    """All rankings, and eq. (5) of each."""
    orders = np.array(list(permutations(range(len(s)))))
    weights = np.exp(s - np.real(s).max())[orders]
    return orders, (weights / weights[:, ::-1].cumsum(axis=1)[:, ::-1]).prod(axis=1)


def expected(measure, y, s):
    """The mean over all rankings of a measure, a function of ranked grades."""
    orders, chances = probabilities(s)
    known = {}
    for order in orders:
        ranked = tuple(y[i] for i in order)
        if ranked not in known:
            known[ranked] = measure(list(ranked))
    return sum(chance * known[tuple(y[i] for i in order)] for order, chance in zip(orders, chances, strict=True))


def loss(measure, queries, scores, skip=False):
    """1 - the expected measure, summed over the queries with their weights, and its derivatives by score."""
    total, slopes = 0.0, np.zeros(len(scores))
    for q, rows in enumerate(queries):
        y, w = queries.y[rows].tolist(), queries.query_weight[q]
        if skip and max(y) == 0:
            continue
        total += w * (1 - expected(measure, y, scores[rows]))
        slopes[rows] = -w * gradient(lambda s, y=y: expected(measure, y, s), scores[rows])
    return total, slopes


def reinforce(values, s, orders):
    """Plain REINFORCE: of each drawn ranking its value times the derivatives of its log-probability, by document.

    That derivative is 1 - the sum of the document's probabilities at every rank down to its own.
    """
    found = np.empty(orders.shape)
    for row, (value, order) in enumerate(zip(values, orders, strict=True)):
        weights = np.exp(s[order] - s.max())
        left = weights[::-1].cumsum()[::-1]
        found[row, order] = value * (1 - weights * (1 / left).cumsum())
    return found


def misordered(s, y):
    """The share of pairs of different grades in the wrong order, equal scores being half wrong; None without pairs."""
    pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if y[i] > y[j]]
    wrong = [1.0 if s[i] < s[j] else 0.5 if s[i] == s[j] else 0.0 for i, j in pairs]
    return sum(wrong) / len(pairs) if pairs else None
