"""Synthetic judged queries that resemble LETOR data."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries

# The kinds of feature, in the order they take turns: of ten features five carry signal.
_KINDS = (
    "signal",
    "integer",
    "signal",
    "copy",
    "useless",
    "signal",
    "integer",
    "constant",
    "binary",
    "useless",
)


def make_queries(
    n_queries: int,
    *,
    n_docs: int = 40,
    n_features: int = 20,
    grades: int = 3,
    noise: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> Queries:
    """Make a data set of random judged queries that resembles real ones.

    A hidden relevance, partly visible in the features, decides the grades; every query has its own level, so that some
    queries have no relevant document and some many. Features take turns at being a noisy view of the relevance, an
    integer count of it, a noisy copy of an earlier feature, binary, constant, or useless, on scales from 0.01 to 1,000.

    Parameters
    ----------
    n_queries : int
        The number of queries.
    n_docs : int
        The mean number of documents of a query; the numbers vary from 1 to three times this.
    n_features : int
        The number of features.
    grades : int
        Grades are 0 to ``grades - 1``.
    noise : float
        How much the features hide of the relevance.
    random_state : int, Generator or None
        The same seed gives the same bits.

    Examples
    --------
    >>> make_queries(3, n_docs=10, n_features=5, random_state=0)
    Queries(3 queries, 27 documents, 5 features)
    """
    rng = make_generator(random_state)
    sizes = np.clip(rng.poisson(n_docs * rng.gamma(4.0, 0.25, n_queries)), 1, 3 * n_docs)
    n = int(sizes.sum())
    level = np.repeat(rng.normal(-1.2, 0.8, n_queries), sizes)
    relevance = rng.normal(size=n)
    bars = np.linspace(0.0, 1.5, max(grades - 1, 1))
    y = (relevance[:, None] + level[:, None] > bars).sum(axis=1).clip(max=grades - 1)
    columns: list[Floats] = []
    for j in range(n_features):
        columns.append(_make_feature(_KINDS[j % len(_KINDS)], relevance, columns, noise, rng))
    X = np.column_stack(columns)
    docid = [f"d{i:07d}" for i in range(n)]
    return Queries.from_arrays(X, y, np.repeat(np.arange(1, n_queries + 1), sizes), docid=docid)


def _make_feature(
    kind: str, relevance: Floats, columns: list[Floats], noise: float, rng: np.random.Generator
) -> Floats:
    """Return random values of one feature of a kind, such as "signal", for documents of the given relevance."""
    n, scale = len(relevance), 10.0 ** rng.uniform(-2, 3)
    view: Floats = relevance * rng.uniform(0.3, 1.0) + noise * rng.normal(size=n)
    values: Floats = scale * rng.normal(size=n)
    if kind == "signal":
        values = scale * view
    elif kind == "integer":
        values = rng.poisson(np.exp(0.5 * view)).astype(np.float64)
    elif kind == "copy":
        original = columns[int(rng.integers(len(columns)))]
        values = original + 0.1 * original.std() * rng.normal(size=n)
    elif kind == "binary":
        values = (view > 1.0).astype(np.float64)
    elif kind == "constant":
        values = np.full(n, np.round(scale, 2))
    return values
