"""The bound of Le and Smola (2007) by listing all rankings of one query."""

from __future__ import annotations

import numpy as np
from tests.reference import bounds


def weights(n, decay, k=None):
    """c of the positions 1 to n."""
    return np.array([(p + 1) ** -decay if k is None or p <= k else 0.0 for p in range(1, n + 1)])


def F(listed, scores, c):
    """The sum over documents of the weight of the position times the score, of all rankings."""
    return np.array([sum(c[p] * scores[i] for p, i in enumerate(order)) for order in listed.orders])


def bound(name, grades, scores, decay=0.25, k=None, reference=None):
    """The largest (1 - E(r)) + F(r) - F(b), b the best ranking by grade at the scores, or at the ``reference``."""
    listed = bounds.listing(name, tuple(grades))
    if not listed.live:
        return 0.0
    c = weights(len(grades), decay, k)
    by_F = F(listed, scores, c)
    if reference is None:
        return float((1 - listed.E + by_F).max() - by_F[listed.by_grade].max())
    at = np.flatnonzero(listed.by_grade)[F(listed, reference, c)[listed.by_grade].argmax()]
    return float((1 - listed.E + by_F).max() - by_F[at])
