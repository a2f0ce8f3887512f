"""Measures straight from their definitions, for one ranked list."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import log2

import numpy as np


def rank(grades, scores, ties="pessimistic", docid=None):
    """Rows in ranked order, by sorting tuples."""
    rows = range(len(grades))
    keys = {
        "pessimistic": lambda i: (-scores[i], grades[i], i),
        "file": lambda i: (-scores[i], i),
        "reverse": lambda i: (-scores[i], -i),
    }
    if ties == "docid":
        return sorted(sorted(rows, key=lambda i: docid[i], reverse=True), key=lambda i: -np.float32(scores[i]))
    return sorted(rows, key=keys[ties])


def discount(r, kind="log2"):
    if kind == "letor":
        return 1.0 if r <= 2 else 1.0 / log2(r)
    if kind == "reciprocal":
        return 1.0 / r
    return 1.0 / log2(1 + r)


def gain(label, kind="exp"):
    return {"exp": 2.0**label - 1, "linear": float(label), "pow2": 2.0**label}[kind]


def dcg(ranked, k=None, gains="exp", discounts="log2"):
    return sum(gain(l, gains) * discount(r, discounts) for r, l in enumerate(ranked[:k], 1))


def ndcg(ranked, k=None, gains="exp", discounts="log2"):
    ideal = dcg(sorted(ranked, reverse=True), k, gains, discounts)
    return dcg(ranked, k, gains, discounts) / ideal if max(ranked) > 0 else 0.0


def average_precision(ranked, k=None, rel=1, norm="all"):
    relevant = [l >= rel for l in ranked]
    R = sum(relevant)
    if R == 0:
        return 0.0
    total = sum(sum(relevant[:r]) / r for r in range(1, len(ranked) + 1) if relevant[r - 1] and (k is None or r <= k))
    return total / (R if norm == "all" or k is None else min(R, k))


def precision(ranked, k=None, rel=1):
    return sum(l >= rel for l in ranked[:k]) / (len(ranked) if k is None else k)


def recall(ranked, k=None, rel=1):
    R = sum(l >= rel for l in ranked)
    return sum(l >= rel for l in ranked[:k]) / R if R else 0.0


def reciprocal_rank(ranked, k=None, rel=1):
    return next((1.0 / r for r, l in enumerate(ranked[:k], 1) if l >= rel), 0.0)


def err(ranked, k=None, top=4):
    total, reach = 0.0, 1.0
    for r, l in enumerate(ranked[:k], 1):
        stop = (2.0**l - 1) / 2.0**top
        total += reach * stop / r
        reach *= 1 - stop
    return total


def wta(ranked):
    return float(ranked[0] == max(ranked) and ranked[0] > 0)


def rbp(ranked, k=None, p=0.8, rel=1):
    return (1 - p) * sum(p ** (r - 1) for r, l in enumerate(ranked[:k], 1) if l >= rel)


#: By name: the function of the grades in ranked order.
BY_NAME = {
    "ndcg": ndcg,
    "ndcg@1": lambda g: ndcg(g, 1),
    "ndcg@3": lambda g: ndcg(g, 3),
    "ndcg@10": lambda g: ndcg(g, 10),
    "ndcg@3(gain=linear)": lambda g: ndcg(g, 3, "linear"),
    "ndcg@3(gain=pow2)": lambda g: ndcg(g, 3, "pow2"),
    "ndcg@3(discount=letor)": lambda g: ndcg(g, 3, "exp", "letor"),
    "dcg@2(discount=reciprocal)": lambda g: dcg(g, 2, "exp", "reciprocal"),
    "ndcg@3(discount=reciprocal)": lambda g: ndcg(g, 3, "exp", "reciprocal"),
    "dcg": dcg,
    "dcg@2": lambda g: dcg(g, 2),
    "map": average_precision,
    "map(rel=2)": lambda g: average_precision(g, rel=2),
    "ap@2": lambda g: average_precision(g, 2),
    "ap@2(norm=min)": lambda g: average_precision(g, 2, norm="min"),
    "p@2": lambda g: precision(g, 2),
    "p": precision,
    "recall@2": lambda g: recall(g, 2),
    "mrr": reciprocal_rank,
    "rr@2(rel=2)": lambda g: reciprocal_rank(g, 2, 2),
    "err": err,
    "err@2(max=3)": lambda g: err(g, 2, 3),
    "wta": wta,
    "rbp": rbp,
    "rbp@3(p=0.5)": lambda g: rbp(g, 3, 0.5),
}


def averaged(measure, grades, scores):
    """The mean of a measure over every order of the documents that agrees with the scores."""
    rows = range(len(grades))
    orders = [p for p in permutations(rows) if all(scores[a] >= scores[b] for a, b in pairwise(p))]
    return float(np.mean([measure([grades[i] for i in p]) for p in orders]))
