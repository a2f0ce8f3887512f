"""Regression trees by their definitions: one document at a time, one leaf at a time, every split tried."""

from __future__ import annotations

from itertools import pairwise
from math import exp, inf, isnan

import numpy as np
from tests.reference.measures import rank


def fall(node, x):
    """The leaf of LightGBM's ``dump_model`` that a document falls into, and its value."""
    while "split_feature" in node:
        value = float(x[node["split_feature"]])
        if node["missing_type"] == "NaN" and isnan(value):
            goes_left = node["default_left"]
        else:  # where training saw nothing missing, what is missing is 0
            goes_left = (0.0 if isnan(value) else value) <= node["threshold"]
        node = node["left_child"] if goes_left else node["right_child"]
    return node.get("leaf_index", 0), node["leaf_value"]


def leaves(dump, X):
    """By tree and document the leaf."""
    return np.array([[fall(tree["tree_structure"], x)[0] for x in X] for tree in dump["tree_info"]])


def scores(dump, X):
    """The sum of the values, in the order of the trees."""
    total = np.zeros(len(X))
    for tree in dump["tree_info"]:
        total += [fall(tree["tree_structure"], x)[1] for x in X]
    return total


def node_scores(nodes, X):
    """The sum of the values of the leaves of the package's own arrays of nodes, in the order of the trees."""
    total = np.zeros(len(X))
    for t in range(len(nodes.first_leaf) - 1):
        first, leaf = int(nodes.first_node[t]), int(nodes.first_leaf[t])
        for i, x in enumerate(X):
            at = 0 if nodes.first_node[t + 1] > first else ~0
            while at >= 0:
                node = first + at
                value, threshold = float(x[nodes.feature[node]]), float(nodes.threshold[node])
                if isnan(threshold):
                    words = nodes.words[nodes.first_word[node] : nodes.first_word[node + 1]]
                    members = {
                        32 * w + bit for w, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1
                    }
                    goes_left = 0 <= value < inf and int(value) in members
                elif isnan(value):
                    goes_left = nodes.missing_left[node]
                else:
                    goes_left = value <= threshold
                at = int(nodes.left[node] if goes_left else nodes.right[node])
            total[i] += nodes.value[leaf + ~at]
    return total


def swap_deltas(measure, y, s):
    """By two documents, how a measure of grades in ranked order changes if they exchange their ranks."""
    order, n = rank(y, s), len(y)
    before = measure([y[i] for i in order])
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            other = [{i: j, j: i}.get(k, k) for k in order]
            found[i, j] = measure([y[k] for k in other]) - before
    return found


def lambdas(measure, queries, scores):
    """LambdaRank (Burges 2010, section 4): the sums over pairs l_i > l_j of lambda_ij, and of its derivative."""
    g, h = np.zeros(queries.n_docs), np.zeros(queries.n_docs)
    for rows, w in zip(queries, queries.query_weight, strict=True):
        y, s = queries.y[rows].tolist(), scores[rows].tolist()
        deltas = swap_deltas(measure, y, s)
        for i in range(len(y)):
            for j in range(len(y)):
                if y[i] > y[j]:
                    rho = 1 / (1 + exp(s[i] - s[j]))
                    pull, bend = w * abs(deltas[i, j]) * rho, w * abs(deltas[i, j]) * rho * (1 - rho)
                    g[rows.start + i] -= pull
                    g[rows.start + j] += pull
                    h[rows.start + i] += bend
                    h[rows.start + j] += bend
    return g, h


def shared(values, queries, scores):
    """Documents of one query with equal scores and grades have their mean: that over the orders of such documents."""
    out = values.copy()
    for rows in queries:
        for i in range(rows.start, rows.stop):
            alike = [j for j in range(rows.start, rows.stop) if scores[j] == scores[i] and queries.y[j] == queries.y[i]]
            out[i] = values[alike].mean()
    return out


def steps(leaf, g, h, rate=1.0):
    """By leaf, Newton's step -(sum of g) / (sum of h), times the rate."""
    return np.array([-rate * g[leaf == k].sum() / h[leaf == k].sum() for k in range(leaf.max() + 1)])


def agreement(g, w, flat=0.1):
    """Gradients without curvature: of which a leaf's step is how far its documents agree.

    Both in units of the mean size of a gradient; a document has its size as curvature, and a tenth of a unit.
    """
    unit = np.abs(g).sum() / w[g != 0].sum()
    return g / unit, np.abs(g) / unit + flat * w


def best_stump(X, g, h, min_child_samples=1):
    """The feature, the neighbouring values around the threshold, and the gain G_l^2 / H_l + G_r^2 / H_r - G^2 / H."""
    found = []
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        for low, high in pairwise(values):
            left = X[:, f] <= low
            if min_child_samples <= left.sum() <= len(X) - min_child_samples:
                parts = sum(g[side].sum() ** 2 / h[side].sum() for side in (left, ~left))
                found.append((parts - g.sum() ** 2 / h.sum(), f, low, high))
    gain, f, low, high = max(found)
    return f, low, high, gain


def residual_means(leaf, queries, scores):
    """By leaf, the weighted mean of the grades less their mean over all documents, less the scores."""
    w = np.repeat(queries.query_weight, queries.sizes)
    rest = queries.y - (w * queries.y).sum() / w.sum() - scores
    return np.array([(w * rest)[leaf == k].sum() / w[leaf == k].sum() for k in range(leaf.max() + 1)])


def trained(measure, queries):
    """The measure as a function of grades in ranked order, as a mean over the queries of a ranking by scores."""

    def mean(scores):
        values = [measure([queries.y[rows][i] for i in rank(queries.y[rows], scores[rows])]) for rows in queries]
        return float(np.average(values, weights=queries.query_weight))

    return mean
