"""Kernels with landmarks, one number at a time."""

from __future__ import annotations

import math


def kernel(name: str, x, z, gamma: float, coef0: float, degree: int) -> float:
    """The kernel of two scaled documents, as scikit-learn's guide defines it."""
    product = sum(a * b for a, b in zip(x, z, strict=True))
    match name:
        case "rbf":
            return math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
        case "laplacian":
            return math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z, strict=True)))
        case "poly":
            return (gamma * product + coef0) ** degree
        case "sigmoid":
            return math.tanh(gamma * product + coef0)
        case "linear":
            return product
    raise ValueError(name)


def score(scorer, document) -> float:
    """The score of one raw document."""
    x = [(v - m) * f for v, m, f in zip(document, scorer.mean, scorer.factor, strict=True)]
    terms = [
        weight * kernel(scorer.kernel.name, x, z, scorer.kernel.gamma, scorer.kernel.coef0, scorer.kernel.degree)
        for weight, z in zip(scorer.dual, scorer.landmarks, strict=True)
    ]
    return scorer.intercept + sum(terms)
