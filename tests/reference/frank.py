"""FRank (Tsai et al., 2007) with every pair and every weak learner tried; P* = 1 for all pairs."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from tests.reference.pairwise import pairs

STATE = ("loss", "weight", "lighter", "heavier", "flatter")
GRID = 2.0**32  # alpha is a multiple of its inverse
SAME = 1e-12


def P(o):
    """The modelled probability that i precedes j, o = H(x_i) - H(x_j)."""
    return expit(o)


def F(o):
    """The fidelity loss."""
    return 1 - np.sqrt(P(o))


def W(o):
    """Eq. (4) but for D: e^(o/2) / (1 + e^o)^(3/2)."""
    return np.sqrt(P(o)) * P(-o)


def second(o):
    """F'', from F' = -W / 2, W' = W (1 - 3 P) / 2."""
    return W(o) * (3 * P(o) - 1) / 4


def third(o):
    return W(o) * (-15 * P(o) ** 2 + 12 * P(o) - 1) / 8


def fourth(o):
    return W(o) * (105 * P(o) ** 3 - 135 * P(o) ** 2 + 39 * P(o) - 1) / 16


class Pairs(NamedTuple):
    """All pairs of one set of queries."""

    i: np.ndarray  # the document of the higher grade
    j: np.ndarray
    D: np.ndarray


def all_pairs(y, indptr, weight):
    """The pairs of all queries; ``weight`` is that of a pair, per query."""
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    listed = np.array(list(pairs(y, indptr)), dtype=int).reshape(-1, 2)
    return Pairs(listed[:, 0], listed[:, 1], np.asarray(weight)[query[listed[:, 0]]])


def by_query(y, indptr, query_weight):
    """D of eq. (2): 1 / #_q, times the weight of the query; they add up to 1."""
    counts = np.array([sum(1 for _ in pairs(y[a:b], [0, b - a])) for a, b in pairwise(indptr)])
    weight = np.where(counts > 0, query_weight / np.maximum(counts, 1), 0.0)
    return all_pairs(y, indptr, weight / max((weight * counts).sum(), 1e-300))


def state(pairs, before, scores):
    """What ``fidelity_state`` computes, by name, and the potentials."""
    o, old = (s[pairs.i] - s[pairs.j] for s in (scores, before))
    fall, flat = W(old) - W(o), second(old) - second(o)
    sums = F(o), W(o), np.maximum(fall, 0), np.maximum(-fall, 0), np.maximum(flat, 0)
    potentials = np.zeros((2, len(scores)))
    for row, values in enumerate((W(o), third(o))):
        np.add.at(potentials[row], pairs.i, pairs.D * values)
        np.subtract.at(potentials[row], pairs.j, pairs.D * values)
    return {name: (pairs.D * values).sum() for name, values in zip(STATE, sums, strict=True)}, potentials


class Sums(NamedTuple):
    """Sums over the pairs a weak learner orders rightly, and wrongly."""

    right: float  # W+
    wrong: float  # W-
    bend: float  # F'' of both
    third: float  # F''' of the former less that of the latter


def sums(pairs, scores, h):
    """Of a weak learner with the values ``h``."""
    o, way = scores[pairs.i] - scores[pairs.j], h[pairs.i] - h[pairs.j]
    w = pairs.D * W(o)
    bend = (pairs.D * second(o))[way != 0].sum()
    return Sums(w[way > 0].sum(), w[way < 0].sum(), bend, (pairs.D * third(o) * way).sum())


def J(pairs, scores):
    """Eq. (2)."""
    return (pairs.D * F(scores[pairs.i] - scores[pairs.j])).sum()


def gain(pairs, scores, h, alpha):
    """By how much (2) falls."""
    return J(pairs, scores) - J(pairs, scores + alpha * h)


def alpha(right, wrong, smoothing):
    """Eq. (3), smoothed."""
    return round(0.5 * np.log((right + smoothing) / (wrong + smoothing)) * GRID) / GRID


class Round(NamedTuple):
    """The weak learner of a round: feature > threshold, where low <= threshold < high."""

    feature: int
    low: float
    high: float
    alpha: float
    loss: float
    scores: np.ndarray


def every_cut(X):
    """(feature, low, high) of every threshold between neighbouring values."""
    return [(f, *ends) for f in range(X.shape[1]) for ends in pairwise(np.unique(X[:, f]))]


def frank(X, pairs, n_estimators, smoothing, cuts=None):
    """Figure 2: yield rounds until none lowers the loss. The first of equals is taken."""
    cuts = every_cut(X) if cuts is None else cuts
    learners = [(X[:, f] > low).astype(float) for f, low, _ in cuts]
    H = np.zeros(len(X))
    for _ in range(n_estimators):
        steps = [alpha(*sums(pairs, H, h)[:2], smoothing) for h in learners]  # (a.1)
        losses = np.array([J(pairs, H + a * h) for a, h in zip(steps, learners, strict=True)])  # (a.2)
        if len(cuts) == 0 or losses.min() >= J(pairs, H) - SAME:
            return
        c = int(np.argmax(losses <= losses.min() + SAME))  # (b), (c)
        H = H + steps[c] * learners[c]
        yield Round(*cuts[c], steps[c], losses[c], H)
