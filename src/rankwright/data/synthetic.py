"""Synthetic judged queries that resemble LETOR data."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.randomness import make_generator
from rankwright.data.mixed_queries import make_mixed_features, make_relevance
from rankwright.data.queries import Queries

KINDS = ("linear", "mixed")  # of data
_N_FIELDS = 5  # such as title, body and anchors: a document without one lacks every feature of it

# The kinds of feature, in the order they take turns: of ten features five carry signal.
_FEATURE_KINDS = (
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
    kind: str = "linear",
    missing: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Queries:
    """Make a data set of random judged queries that resembles real ones.

    A hidden relevance, partly visible in the features, decides the grades; every query has its own level, so that some
    queries have no relevant document and some many. Features take turns at being a noisy view of the relevance, an
    integer count of it, a noisy copy of an earlier feature, binary, constant, or useless, on scales from 0.01 to 1,000.

    With ``kind="mixed"`` no family of rankers is at its best alone. Eight aspects of a document decide its
    relevance: some linearly, some saturating or by a threshold, two together, one best in the middle, and one for or
    against the document, as the query has it. Features show one aspect each, on a level that differs by query: plain,
    as a count, heavy-tailed, bounded or binary. Others depend on the query alone, or are noisy copies, useless or
    constant.

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
    kind : "linear" or "mixed"
        How features decide the relevance: each for itself, or in several ways at once.
    missing : float
        The share of values that are missing (NaN), at least 0 and below 1. Features belong to five fields; a document
        without a field lacks all its features.
    random_state : int, Generator or None
        The same seed gives the same bits.

    Examples
    --------
    >>> make_queries(3, n_docs=10, n_features=5, random_state=0)
    Queries(3 queries, 27 documents, 5 features)
    >>> queries = make_queries(200, kind="mixed", missing=0.1, random_state=0)
    >>> round(float(np.isnan(queries.X).mean()), 2)
    0.1
    """
    if kind not in KINDS:
        raise InputError(f"kind={kind!r}; expected one of {', '.join(KINDS)}")
    if not 0.0 <= missing < 1.0:
        raise InputError(f"missing={missing!r}; expected a share of at least 0 and below 1")
    rng = make_generator(random_state)
    sizes = np.clip(rng.poisson(n_docs * rng.gamma(4.0, 0.25, n_queries)), 1, 3 * n_docs)
    level = np.repeat(rng.normal(-1.2, 0.8, n_queries), sizes)
    if kind == "mixed":
        relevance, aspects, query = make_relevance(sizes, rng)
        X = make_mixed_features(aspects, query, sizes, n_features, noise, rng)
    else:
        relevance = rng.normal(size=len(level))
        X = _make_linear_features(relevance, n_features, noise, rng)
    bars = np.linspace(0.0, 1.5, max(grades - 1, 1))
    y = (relevance[:, None] + level[:, None] > bars).sum(axis=1).clip(max=grades - 1)
    if missing > 0.0:
        _remove_fields(X, missing, rng)
    docid = [f"d{i:07d}" for i in range(len(y))]
    return Queries.from_arrays(X, y, np.repeat(np.arange(1, n_queries + 1), sizes), docid=docid)


def _remove_fields(X: Floats, missing: float, rng: np.random.Generator) -> None:
    """Set the features of random fields of random documents to NaN; feature j belongs to field j modulo five."""
    for field in range(min(_N_FIELDS, X.shape[1])):
        X[rng.random(len(X)) < missing, field::_N_FIELDS] = np.nan


def _make_linear_features(relevance: Floats, n_features: int, noise: float, rng: np.random.Generator) -> Floats:
    """Return features of the kinds in turn, each for itself a view of the relevance."""
    columns: list[Floats] = []
    for j in range(n_features):
        columns.append(_make_feature(_FEATURE_KINDS[j % len(_FEATURE_KINDS)], relevance, columns, noise, rng))
    return np.column_stack(columns)


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
