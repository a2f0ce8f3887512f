"""Smooth measures as Chapelle & Wu (2010) print them, term by term. Scores may be complex, for derivatives."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from tests.reference.derivatives import gradient
from tests.reference.measures import discount, gain


def d(f):
    """d[j], the document at position j; documents of equal scores in their order."""
    return sorted(range(len(f)), key=lambda i: -np.real(f[i]))


def e(f, sigma):
    """Eq. (11)."""
    at, m = d(f), len(f)
    return np.array([[np.exp(-((f[i] - f[at[j]]) ** 2) / sigma) for j in range(m)] for i in range(m)])


def h(f, sigma):
    """Eq. (7): h[i, j], how much document i is at position j."""
    table, m = e(f, sigma), len(f)
    return np.array([[table[i, j] / sum(table[k, j] for k in range(m)) for j in range(m)] for i in range(m)])


def dh(f, sigma):
    """Eq. (10): [i, j, p], the derivative of h_ij by f_p."""
    at, table, m = d(f), e(f, sigma), len(f)
    found = np.zeros((m, m, m))
    for j in range(m):
        E = sum(table[k, j] for k in range(m))
        mean = sum(table[k, j] * f[k] for k in range(m))
        for i in range(m):
            for p in range(m):
                first = table[p, j] * (f[p] - f[at[j]]) * (table[i, j] - (i == p) * E)
                second = (at[j] == p) * table[i, j] * (f[i] * E - mean)
                found[i, j, p] = 2 / (sigma * E**2) * (first + second)
    return found


def A(f, G, D, sigma):
    """Eq. (8); D is 0 beyond its end."""
    table = h(f, sigma)
    return sum(G[i] * D[j] * table[i, j] for i in range(len(f)) for j in range(min(len(f), len(D))))


def dA(f, G, D, sigma):
    """Appendix 2 with one feature per document, and e_i read as e_ij."""
    at, table, m, units = d(f), e(f, sigma), len(f), np.eye(len(f))
    total = np.zeros(m)
    for j in range(min(m, len(D))):
        E = sum(table[k, j] for k in range(m))
        gains = sum(G[i] * table[i, j] for i in range(m))
        away = [table[p, j] * (f[p] - f[at[j]]) for p in range(m)]
        inner = gains * sum(away[p] * units[p] for p in range(m))
        inner = inner - E * sum(away[p] * G[p] * units[p] for p in range(m))
        inner = inner + E * sum(G[i] * table[i, j] * f[i] for i in range(m)) * units[at[j]]
        inner = inner - gains * sum(f[i] * table[i, j] for i in range(m)) * units[at[j]]
        total += D[j] / E**2 * inner
    return 2 / sigma * total


def precision(f, l, k, sigma):
    """Section 4.2: Prec@k by h_ij; nothing is at positions that there are not."""
    table, m = h(f, sigma), len(f)
    return sum(l[i] * table[i, j] for j in range(min(k, m)) for i in range(m)) / k


def average_precision(f, l, sigma, k=None):
    """Section 4.2: AP by h_ij, times the number of relevant documents."""
    table, m = h(f, sigma), len(f)
    return sum(precision(f, l, j + 1, sigma) * sum(l[i] * table[i, j] for i in range(m)) for j in range(min(m, k or m)))


def cascade(f, stop, D, sigma):
    """The same rule for ERR and RR: one comes to position j if one has not stopped before."""
    table, m = h(f, sigma), len(f)
    total, reach = 0.0, 1.0
    for j in range(min(m, len(D))):
        soft = sum(stop[i] * table[i, j] for i in range(m))
        total, reach = total + reach * soft * D[j], reach * (1 - soft)
    return total


def above(f, i, j, sigma):
    """The sigmoid of eq. (5): how far j is above i."""
    x = (f[i] - f[j]) / sigma
    return 0.0 * x if np.real(x) > 700 else 1 / (1 + np.exp(x))


def smooth_rank(f, i, sigma):
    """Eq. (5)."""
    return 1 + sum(above(f, i, j, sigma) for j in range(len(f)) if j != i)


def falling(law, k):
    """The discount of any rank; beyond the cut-off it goes to 0 at the next rank, smoothly."""

    def at(r):
        if k is None or np.real(r) <= k:
            return law(r)
        left = k + 1 - r
        return law(r) * left**2 * (3 - 2 * left) if np.real(left) > 0 else 0.0

    return at


def dcg_by_ranks(f, G, law, sigma):
    """Eq. (5): the sum of G(l_i) D(r_i)."""
    return sum(G[i] * law(smooth_rank(f, i, sigma)) for i in range(len(f)) if G[i])


def smooth_ap(f, l, law, sigma):
    """Eq. (9) with the term i = j set to 1, times the number of relevant documents; law is 1 / r."""
    m = len(f)
    return sum(
        l[i] * l[j] * (1 if i == j else above(f, i, j, sigma)) * law(smooth_rank(f, i, sigma))
        for i in range(m)
        for j in range(m)
        if l[i] and l[j]
    )


class Parts(NamedTuple):
    """What a measure is made of, for one query."""

    kind: str  # of its family
    gains: list
    law: object  # the discount of every real rank
    k: int | None
    norm: float  # 0 where nothing is relevant


def _letor(r):
    return 1.0 / np.log2(np.where(np.real(r) <= 2, 2.0, r))


def parts(name, grades):
    """The parts of a measure by name."""
    kind, k = re.match(r"([a-z]+)(?:@(\d+))?", name).groups()
    k, n = int(k) if k else None, len(grades)
    binary = [float(l >= 1) for l in grades]
    if kind in ("ndcg", "dcg"):
        letor = "letor" in name
        gains, law = [gain(l) for l in grades], _letor if letor else lambda r: 1.0 / np.log2(1 + r)
        ideal = sum(g * discount(r, "letor" if letor else "log2") for r, g in enumerate(sorted(gains)[::-1][:k], 1))
        short = "dialect=letor3" in name and k is not None and n < k  # counts 0
        return Parts("additive", gains, law, k, (0.0 if short else ideal) if kind == "ndcg" else float(max(gains) > 0))
    if kind in ("map", "ap"):
        R = sum(binary)
        return Parts("ap", binary, lambda r: 1 / r, k, min(R, k) if "norm=min" in name else R)
    if kind == "err":
        return Parts("cascade", [gain(l) / 2**4 for l in grades], lambda r: 1 / r, k, float(max(grades) > 0))
    if kind in ("mrr", "rr"):
        return Parts("cascade", binary, lambda r: 1 / r, k, float(max(binary)))
    if kind == "wta":
        top = [float(l == max(grades) and l > 0) for l in grades]
        return Parts("additive", top, lambda r: 1.0 + 0 * r, 1, float(max(grades) > 0))
    if kind == "rbp":
        return Parts("additive", binary, lambda r: 0.2 * 0.8 ** (r - 1), k, float(max(binary)))
    norm = {"p": k or n, "recall": sum(binary)}[kind] * max(binary)
    return Parts("additive", binary, lambda r: 1.0 + 0 * r, k, norm)


def value(name, form, grades, f, sigma):
    """A smooth measure of one query; 0 where nothing is relevant."""
    kind, gains, law, k, norm = parts(name, grades)
    if norm == 0:
        return 0.0 * sum(f)
    if form == "ranks":
        smooth = smooth_ap if kind == "ap" else dcg_by_ranks
        return smooth(f, gains, falling(law, k), sigma) / norm
    table = [law(r) for r in range(1, min(k or len(f), len(f)) + 1)]
    if kind == "ap":
        return average_precision(f, gains, sigma, k) / norm
    return (A if kind == "additive" else cascade)(f, gains, table, sigma) / norm


def loss(name, form, queries, scores, sigma):
    """1 - measure, summed over the queries with their weights, and its derivatives by score."""
    skips = "empty=skip" in name
    total, slopes = 0.0, np.zeros(len(scores))
    for q, rows in enumerate(queries):
        grades, w = queries.y[rows].tolist(), queries.query_weight[q]
        if skips and parts(name, grades).norm == 0:
            continue

        def smooth(f, grades=grades):
            return value(name, form, grades, f, sigma)

        total += w * (1 - smooth(scores[rows]))
        slopes[rows] = -w * gradient(smooth, scores[rows])
    return total, slopes
