"""Relevance estimated from clicks and measures of it, straight from their definitions, for one query."""

from __future__ import annotations

from itertools import product
from math import comb, inf

from tests.reference.measures import discount


def relevance(documents, estimator, examination=(), clip=inf):
    """The estimated relevance of each document; a document is a list of cells (position, shown, clicked)."""
    found = []
    for cells in documents:
        if estimator == "naive":
            above, below = sum(c for _, _, c in cells), sum(n for _, n, _ in cells)
        elif estimator == "coec":
            above = sum(c for k, _, c in cells if examination[k - 1] > 0)
            below = sum(n * examination[k - 1] for k, n, _ in cells)
        else:
            seen = [cell for cell in cells if examination[cell[0] - 1] > 0]
            above = sum(c / max(examination[k - 1], 1.0 / clip) for k, _, c in seen)
            below = sum(n for _, n, _ in seen)
        found.append(above / below if below else 0.0)
    if estimator == "snips":
        total = sum(found)
        return [each / total if total else 0.0 for each in found]
    return found


def dcg(ranked, k=None, kind="log2"):
    return sum(r * discount(i, kind) for i, r in enumerate(ranked[:k], 1))


def ndcg(ranked, k=None, floor=0.0):
    norm = max(dcg(sorted(ranked, reverse=True), k), floor)
    return dcg(ranked, k) / norm if any(ranked) else 0.0


#: By the name of the measure without clicks: the function of the relevance in ranked order.
BY_NAME = {
    "dcg": dcg,
    "dcg@2": lambda r: dcg(r, 2),
    "dcg@2(discount=reciprocal)": lambda r: dcg(r, 2, "reciprocal"),
    "ndcg@2": lambda r: ndcg(r, 2),
    "ndcg": ndcg,
    "ndcg@2(floor=0.7)": lambda r: ndcg(r, 2, 0.7),
    "p@2": lambda r: sum(r[:2]) / 2,
    "recall@2": lambda r: sum(r[:2]) / sum(r) if any(r) else 0.0,
    "rbp": lambda r: 0.2 * sum(0.8**i * each for i, each in enumerate(r)),
}


def outcomes(shown, chances):
    """All numbers of clicks of cells, with their probability, where clicks are independent."""
    for clicks in product(*(range(n + 1) for n in shown)):
        probability = 1.0
        for n, c, chance in zip(shown, clicks, chances, strict=True):
            probability *= comb(n, c) * chance**c * (1 - chance) ** (n - c)
        yield clicks, probability
