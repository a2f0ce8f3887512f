"""AdaRank as in figure 6 of Xu et al., every measure recomputed from scratch, with the library's ban rule."""

from __future__ import annotations

from math import exp, log

import numpy as np
from tests.reference.measures import averaged, rank


def adarank(queries, measure, n_estimators, factor):
    """Yield (feature, alpha, weights, P, E of the model) of every round."""
    m, d = len(queries), queries.n_features
    rows = list(queries)

    def pessimistic(scores):
        lists = [(queries.y[r].tolist(), scores[r].tolist()) for r in rows]
        return [measure([g[i] for i in rank(g, s)]) for g, s in lists]

    def mean_over_ties(scores):
        return [averaged(measure, queries.y[r].tolist(), scores[r].tolist()) for r in rows]

    P = [1 / m] * m
    w, banned, improved = np.zeros(d), set(), -1.0
    varies = {k for k in range(d) if np.ptp(queries.X[:, k]) > 0}
    E_features = {k: mean_over_ties(queries.X[:, k]) for k in varies}
    for _ in range(n_estimators):
        allowed = sorted(varies - banned)
        if not allowed:
            return
        phis = [sum(p * e for p, e in zip(P, E_features[k], strict=True)) for k in allowed]
        k = allowed[int(np.argmax(phis))]
        phi = max(phis)
        alpha = 0.5 * log((1 + phi) / (1 - phi))
        w[k] += alpha * factor[k]
        E = pessimistic(queries.X.astype(float) @ w)
        if np.mean(E) > improved:
            improved, banned = float(np.mean(E)), set()
        banned.add(k)
        yield k, alpha, w.copy(), list(P), E
        Z = sum(exp(-e) for e in E)
        P = [exp(-e) / Z for e in E]
