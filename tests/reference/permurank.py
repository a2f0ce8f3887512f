"""PermuRank as in figure 7 of Xu et al., by listing all rankings: sets of permutations, and a QP solved by SciPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from tests.reference.bounds import F, listing, sigma


class Round(NamedTuple):
    """What a round learned, of which permutations."""

    w: np.ndarray  # of the scaled features
    loss: float  # the mean over the queries of l(B, C)
    objective: float
    perfect: list  # by query that counts: B, a set of permutations
    imperfect: list  # and C


class Query:
    """One query and all its rankings."""

    def __init__(self, name, grades, X, phi, by_grade):
        self.grades, self.X, n = tuple(grades), X, len(grades)
        self.listed = listing(name, self.grades)
        self.orders = [tuple(order) for order in self.listed.orders.tolist()]
        self.by_document = np.column_stack([F(self.listed, np.eye(n)[i], phi) for i in range(n)])
        self.Phi = self.by_document @ X  # eq. (2), or its pair form: a row each
        perfect = self.listed.by_grade if by_grade else self.listed.perfect
        self.perfect, self.imperfect = np.flatnonzero(perfect), np.flatnonzero(~self.listed.perfect)
        better = [sum(l == i for _, l in self.listed.apart) for i in range(n)]  # documents that the measure puts first
        self.by_row = tuple(sorted(range(n), key=lambda i: (better[i], i)))

    def hardest(self, w):
        """The perfect ranking with the lowest F; of equals the one by class and row."""
        values = self.Phi[self.perfect] @ w
        near = [self.orders[i] for i in self.perfect[values <= values.min() + 1e-12]]
        return self.by_row if self.by_row in near else near[0]

    def best(self, w):
        """The imperfect ranking with the highest F; of equals the order of the scores, ties pessimistic."""
        values, by_score = self.Phi[self.imperfect] @ w, tuple(sigma(self.grades, self.X @ w))
        near = [self.orders[i] for i in self.imperfect[values >= values.max() - 1e-12]]
        return by_score if by_score in near else near[0]

    def add(self, working_set, order):
        """Whether the ranking is new: none of the set has its Phi; if so, add it."""
        own = self.by_document[self.orders.index(order)]
        known = any(np.abs(own - self.by_document[self.orders.index(o)]).max() < 1e-12 for o in working_set)
        if not known:
            working_set.add(order)
        return not known

    def pairs(self, B, C):
        """Phi(b) - Phi(c) and what it costs, (1 - E(c)) / |B|, of all b in B and c in C."""
        at = {order: i for i, order in enumerate(self.orders)}
        rows = [(self.Phi[at[b]] - self.Phi[at[c]], (1 - self.listed.E[at[c]]) / len(B)) for b in B for c in C]
        return [row for row, _ in rows], [cost for _, cost in rows]


_PRECISELY = {"maxiter": 20000, "maxfun": 100000, "ftol": 0.0, "gtol": 1e-13, "maxcor": 50}


def least_hinge(D, cost):
    """The w of the least |w|^2 / 2 + sum of cost [1 - D w]_+, by its dual: 0 <= a <= cost, w = D'a."""

    def dual(z):  # a = cost z, for boxes of one size
        w = D.T @ (cost * z)
        return 0.5 * w @ w - cost @ z, cost * (D @ w - 1)

    z, box = np.zeros(len(cost)), [(0, 1)] * len(cost)
    for _ in range(50):  # rounding ends a run early: go on from there
        z = minimize(dual, z, jac=True, method="L-BFGS-B", bounds=box, options=_PRECISELY).x
        w = D.T @ (cost * z)
        primal = 0.5 * w @ w + cost @ np.maximum(1 - D @ w, 0)
        if primal + dual(z)[0] <= 1e-8 * primal:
            return w
    raise AssertionError("the twin's own problem is not solved")


def permurank(queries, name, n_rounds, factor, C=1.0, phi="pairs", perfect="measure", start=None):
    """Yield a ``Round`` for every round; ``start`` are the weights that choose the first rankings."""
    rows = list(queries)
    everyone = [Query(name, queries.y[r].tolist(), queries.X[r] * factor, phi, perfect == "grades") for r in rows]
    live = [q for q, query in enumerate(everyone) if query.listed.live]
    known, weight = [everyone[q] for q in live], queries.query_weight[live]
    perfect_sets, imperfect_sets = [set() for _ in live], [set() for _ in live]
    w = np.zeros(queries.n_features) if start is None else start
    for _ in range(n_rounds):
        new = False
        for query, B, C_set in zip(known, perfect_sets, imperfect_sets, strict=True):
            new |= query.add(B, query.hardest(w))
            new |= query.add(C_set, query.best(w))
        if not new:
            return
        D, cost = [], []
        for query, B, C_set, own in zip(known, perfect_sets, imperfect_sets, weight, strict=True):
            differences, costs = query.pairs(B, C_set)
            D, cost = D + differences, cost + [own * each for each in costs]
        D, cost = np.array(D), np.array(cost) / queries.query_weight.sum()
        w = least_hinge(D, C * cost)
        loss = float(cost @ np.maximum(1 - D @ w, 0))
        yield Round(w, loss, 0.5 * w @ w + C * loss, [set(B) for B in perfect_sets], [set(c) for c in imperfect_sets])
