"""Losses of whole lists from their definitions, for one query. Scores may be complex, for derivatives."""

from __future__ import annotations

import numpy as np
from tests.reference.derivatives import gradient
from tests.reference.measures import dcg, gain


def softmax(values):
    """The probabilities of being first under Plackett-Luce."""
    top = max(np.real(values))
    return [np.exp(v - top) / sum(np.exp(other - top) for other in values) for v in values]


def log_sum_exp(values):
    top = max(np.real(values))
    return top + np.log(sum(np.exp(v - top) for v in values))


def cross_entropy(s, y):
    """ListNet: -sum of P(i) log Q(i)."""
    return sum(p * (log_sum_exp(s) - own) for p, own in zip(softmax(y), s, strict=True))


def list_mle(s, y):
    """ListMLE: -log of the probability of the label order, each document chosen among those with l_i <= l_j."""
    return sum(log_sum_exp([s[i] for i in range(len(s)) if y[i] <= y[j]]) - s[j] for j in range(len(s)))


def centred(values):
    values = np.asarray(values)
    return values - values.sum() / len(values)


def length(v):
    """Without conjugates, so that it is a function of complex numbers."""
    return np.sqrt(sum(x * x for x in v))


def cosine(s, y, form="gains"):
    """RankCosine: (1 - cos(s - mean, g - mean)) / 2; its NDCG-consistent form has g / the ideal DCG, not of length 1."""
    gains = [gain(l) for l in y]
    if len(set(gains)) == 1:
        return 0.0 * sum(s)
    target = centred(gains) / (length(centred(gains)) if form == "gains" else dcg(sorted(y, reverse=True)))
    if len(set(np.real(s).tolist())) == 1:
        return 0.5 + 0.0 * sum(s)
    return (1 - sum(t * x for t, x in zip(target, centred(s), strict=True)) / length(centred(s))) / 2


def softplus(x):
    return np.log(1 + np.exp(x)) if np.real(x) < 0 else x + np.log(1 + np.exp(-x))


def lambdas(s, y, deltas):
    """LambdaRank: the sum over pairs l_i > l_j of |delta_ij| log(1 + exp(-(s_i - s_j))), the deltas kept."""
    pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if y[i] > y[j]]
    return sum((abs(deltas[i][j]) * softplus(s[j] - s[i]) for i, j in pairs), 0.0 * sum(s))


def loss(of_query, queries, scores):
    """The weighted sum over the queries of ``of_query(q, scores, grades)``, and its derivatives by score."""
    total, slopes = 0.0, np.zeros(len(scores))
    for q, rows in enumerate(queries):
        y, w = queries.y[rows].tolist(), queries.query_weight[q]
        total += w * of_query(q, scores[rows], y)
        slopes[rows] = w * gradient(lambda s, q=q, y=y: of_query(q, s, y), scores[rows])
    return total, slopes
