"""Weighted sums of scorers, one document, part and term at a time: the twin of ``merge_scorers``."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rankwright.scorers import Feature, Linear, Scorer, Stumps, Trees, WeightedSum


def list_terms(scorers, weights, intercept, row):
    """The numbers whose sum is the score of a document."""
    terms = [float(intercept)]
    for weight, scorer in zip(weights, scorers, strict=True):
        terms += [float(weight) * term for term in find_terms(scorer, row)] if weight else []
    return terms


def sum_exactly(scorers, weights, intercept, X):
    """The score of each document, rounded once, and how far from it a sum in another order may be."""
    found = [list_terms(scorers, weights, intercept, row) for row in X]
    scores = np.array([math.fsum(terms) for terms in found])
    return scores, np.array([(len(terms) + 2) * 2.0**-52 * math.fsum(map(abs, terms)) for terms in found])


@singledispatch
def find_terms(scorer: Scorer, row) -> list[float]:
    """The terms of a scorer; networks and kernel sums are one."""
    return scorer(row[None]).tolist()


@find_terms.register
def _(scorer: WeightedSum, row) -> list[float]:
    return list_terms(scorer.scorers, scorer.weights.tolist(), scorer.intercept, row)


@find_terms.register
def _(scorer: Linear, row) -> list[float]:
    return [scorer.intercept, *(float(w) * float(x) for w, x in zip(scorer.coef, row, strict=True))]


@find_terms.register
def _(scorer: Feature, row) -> list[float]:
    return [scorer.sign * float(row[scorer.index])]


@find_terms.register
def _(scorer: Stumps, row) -> list[float]:
    terms = []
    for k, (feature, threshold, weight) in enumerate(zip(scorer.feature, scorer.threshold, scorer.weight, strict=True)):
        x = row[feature]
        is_one = x > threshold if not np.isnan(x) else scorer.missing[k]
        terms += [float(weight)] if is_one else []
    return terms


@find_terms.register
def _(scorer: Trees, row) -> list[float]:
    return [find_value(tree, row) for tree in scorer.forest.trees]


def find_value(tree, row) -> float:
    """The value of the leaf that a document reaches from the root."""
    at, columns, sets = 0 if tree.n_splits else ~0, tree.columns, tree.category_sets
    while at >= 0:
        x = float(row[columns["split_feature"][at]])
        if tree.categorical[at]:
            number = -1 if np.isnan(x) or x < 0 else int(x)
            words = sets[at].tolist()
            is_left = 0 <= number < 32 * len(words) and bool(words[number // 32] >> number % 32 & 1)
        else:
            is_left = bool(tree.missing_left[at]) if np.isnan(x) else x <= columns["threshold"][at]
        at = int(columns["left_child" if is_left else "right_child"][at])
    return float(tree.values[~at])
