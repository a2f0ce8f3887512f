"""GBRank (Zheng et al. 2007) with every pair written out: the scores that violated pairs want, and one leaf at a time."""

from __future__ import annotations

import numpy as np
from tests.reference.pairwise import pairs


def wanted(h, queries, margin, *, per_query=False):
    """Of each document the scores that its violated pairs want for it, with the weights of these pairs."""
    own = np.ones(queries.n_docs) if queries.doc_weight is None else queries.doc_weight
    query = np.repeat(np.arange(len(queries)), queries.sizes)
    total = np.zeros(len(queries))
    for i, j in pairs(queries.y, queries.indptr):
        total[query[i]] += own[i] * own[j]
    found = [[] for _ in h]
    for i, j in pairs(queries.y, queries.indptr):
        if h[i] < h[j] + margin:
            weight = queries.query_weight[query[i]] * own[i] * own[j] / (total[query[i]] if per_query else 1.0)
            found[i].append((h[j] + margin, weight))
            found[j].append((h[i] - margin, weight))
    return found


def leaf_values(leaf, h, queries, margin, *, per_query=False):
    """By leaf, the weighted mean of what the scores of its documents lack to the wanted ones."""
    lacks, weights = np.zeros(leaf.max() + 1), np.zeros(leaf.max() + 1)
    for i, each in enumerate(wanted(h, queries, margin, per_query=per_query)):
        for score, weight in each:
            lacks[leaf[i]] += weight * (score - h[i])
            weights[leaf[i]] += weight
    return lacks / weights


def squares(h, queries, margin):
    """By document, the gradient and the curvature of the squared distances of the scores from the wanted ones."""
    found = wanted(h, queries, margin)
    gradient = [sum(2 * weight * (h[i] - score) for score, weight in each) for i, each in enumerate(found)]
    return np.array(gradient), np.array([sum(2 * weight for _, weight in each) for each in found])
