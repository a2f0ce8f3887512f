"""The framework of Xu et al., section 4, by listing all rankings of one query."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from tests.reference.measures import BY_NAME, err, rbp, reciprocal_rank

#: By name: the function of the grades in ranked order.
MEASURES = {
    **BY_NAME,
    "err@3": lambda g: err(g, 3),
    "err(max=5)": lambda g: err(g, None, 5),
    "err@3(max=5)": lambda g: err(g, 3, 5),
    "rr@2": lambda g: reciprocal_rank(g, 2),
    "rbp@3": lambda g: rbp(g, 3),
}

#: What a pair of rankings weighs: ``lost`` is 1 - E(c), x is F(c) - F(b), for b perfect and c imperfect.
SURROGATES = {
    "step": lambda lost, x: lost * (x >= 0),  # eq. (6)
    "logistic": lambda lost, x: lost * np.logaddexp(0, x) / np.log(2),
    "exponential": lambda lost, x: lost * np.exp(x),
    "hinge": lambda lost, x: lost * np.maximum(1 + x, 0),
    "margin": lambda lost, x: np.maximum(lost + x, 0),  # eq. (10)
}


class Listing(NamedTuple):
    """All rankings of one query: what does not depend on the scores."""

    orders: np.ndarray  # a ranking each: documents in ranked order
    places: np.ndarray  # of every document in every ranking
    E: np.ndarray  # the measure divided by the best of all rankings; ones if all are equal
    apart: list  # pairs of documents whose exchange changes the measure of some ranking, the higher grade first

    @property
    def perfect(self):
        return self.E >= 1 - 1e-12

    @property
    def by_grade(self):
        """Which rankings have every pair that the measure tells apart in the order of the grades."""
        ordered = [self.places[:, k] < self.places[:, l] for k, l in self.apart]
        return np.all(ordered, axis=0) if ordered else np.ones(len(self.E), dtype=bool)

    @property
    def live(self):
        """Whether there is an imperfect ranking."""
        return not self.perfect.all()

    def index(self, order):
        """Which of the rankings this is."""
        return int(np.flatnonzero((self.orders == order).all(axis=1))[0])


@cache
def listing(name, grades):
    """List all rankings; ``grades`` is a tuple."""
    orders = list(permutations(range(len(grades))))
    value = {order: MEASURES[name]([grades[i] for i in order]) for order in orders}
    best, worst = max(value.values()), min(value.values())
    E = np.array([value[order] / best if best - worst > 1e-12 * best else 1.0 for order in orders])

    def differ(k, l):
        exchange = {k: l, l: k}
        return any(abs(value[o] - value[tuple(exchange.get(i, i) for i in o)]) > 1e-12 * best for o in orders)

    apart = [(k, l) for k, l in permutations(range(len(grades)), 2) if grades[k] > grades[l] and differ(k, l)]
    return Listing(np.array(orders), np.argsort(orders, axis=1), E, apart)


def F(listed, scores, phi):
    """The query-level score of all rankings, eq. (2) and (3), or its pair form, as printed: with z_kl."""
    n = len(scores)
    pairs, norm = (listed.apart, len(listed.apart)) if phi == "pairs" else (combinations(range(n), 2), n * (n - 1))
    total = np.zeros(len(listed.orders))
    for k, l in pairs:
        z = np.where(listed.places[:, k] < listed.places[:, l], 1.0, -1.0)
        total += z * (scores[k] - scores[l])
    return total / max(norm, 1)


def sigma(grades, scores):
    """The ranking by score, of equal scores the lower grade first."""
    return sorted(range(len(grades)), key=lambda i: (-scores[i], grades[i], i))


def basic(name, grades, scores):
    """Eq. (5) of one query."""
    listed = listing(name, tuple(grades))
    return 1 - listed.E[listed.index(sigma(grades, scores))]


def type_one(name, grades, scores, surrogate):
    """Section 4.1; a query whose rankings are all perfect counts nothing."""
    listed = listing(name, tuple(grades))
    E = listed.E[listed.index(sigma(grades, scores))]
    return {"exponential": np.exp(-E), "logistic": np.log2(1 + np.exp(-E))}[surrogate] if listed.live else 0.0


def differences(name, grades, scores, phi, perfect="measure"):
    """Of all pairs of a perfect ranking b and an imperfect one c: 1 - E(c), and F(c) - F(b); a row for every b.

    Where they agree but for rounding, F(c) - F(b) is 0. If ``perfect`` is "grades", b keeps to the grades throughout.
    """
    listed = listing(name, tuple(grades))
    by_F = F(listed, scores, phi)
    b = listed.perfect if perfect == "measure" else listed.by_grade
    x = by_F[~listed.perfect][None, :] - by_F[b][:, None]
    x[np.abs(x) <= 1e-13 * np.abs(scores).max()] = 0.0
    return np.broadcast_to(1 - listed.E[~listed.perfect], x.shape), x


def type_two(name, grades, scores, surrogate, over="max", phi="pairs", perfect="measure"):
    """Eq. (6), (7), (10) and everything between: the largest or the sum over all pairs of rankings."""
    if not listing(name, tuple(grades)).live:
        return 0.0
    with np.errstate(over="ignore"):
        values = SURROGATES[surrogate](*differences(name, grades, scores, phi, perfect))
    return {"max": values.max, "sum": values.sum}[over]()


def condition_9(name, grades, scores, phi):
    """Whether every perfect ranking is ahead of every imperfect one by E of the ranking by score."""
    _, x = differences(name, grades, scores, phi)
    return (-x).min() >= 1 - basic(name, grades, scores)
