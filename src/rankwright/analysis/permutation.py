"""Permutation importance: how much a measure falls when the values of one feature are shuffled within each query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.html_tables import format_html_table
from rankwright.basics.optional_imports import require
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.measures import Measure, compute_values, parse_measure, weighted_mean
from rankwright.models.imports import as_model
from rankwright.runtime.backends import Serial

MAX_SHOWN = 12  # features in the text; the table has all


@dataclass(frozen=True, slots=True, eq=False)
class PermutationImportance:
    """The importance of each feature for a measure: its fall when the feature is shuffled within each query.

    Parameters
    ----------
    measure : str
        The measure.
    value : float
        Its mean with all features as they are.
    features : tuple of str
        The names of the features, or their numbers from 1.
    falls : array of shape (n_features, n_repeats)
        How much the measure falls, for each shuffle; below 0 where shuffling helps.
    n_queries : int
        The number of queries that were scored.
    """

    measure: str
    value: float
    features: tuple[str, ...]
    falls: Floats
    n_queries: int

    @property
    def means(self) -> Floats:
        """The mean fall of each feature over the shuffles."""
        return np.asarray(self.falls.mean(axis=1))

    def to_pandas(self) -> Any:
        """Return a data frame with a row per feature, the most important first: feature, fall, deviation."""
        order = np.argsort(-self.means, kind="stable")
        columns = {
            "feature": np.array(self.features, dtype=object)[order],
            "fall": self.means[order],
            "deviation": self.falls.std(axis=1)[order],
        }
        return require("pandas").DataFrame(columns)

    def __repr__(self) -> str:
        return f"PermutationImportance({self.measure}={self.value:.4f}; {len(self.features)} features)"

    def _repr_html_(self) -> str:
        order = np.argsort(-self.means, kind="stable")[:MAX_SHOWN]
        deviation = self.falls.std(axis=1)
        rows = [(self.features[i], float(self.means[i]), float(deviation[i])) for i in order]
        rest = len(self.features) - len(rows)
        more = f" {rest:,} more features are less important." if rest else ""
        note = f"{self.measure} is {self.value:.4f} on {self.n_queries:,} queries.{more}"
        title = f"Fall of {self.measure} when a feature is shuffled"
        return format_html_table(title, ["feature", "fall", "deviation"], rows, note)

    def __str__(self) -> str:
        order = np.argsort(-self.means, kind="stable")[:MAX_SHOWN]
        width = max(len(self.features[i]) for i in order)
        lines = [f"{self.measure} is {self.value:.4f}. It falls by this much when a feature is shuffled:"]
        lines += [f"{self.features[i]:<{width}}  {self.means[i]:+.4f}" for i in order]
        if len(self.features) > MAX_SHOWN:
            lines.append(f"and {len(self.features) - MAX_SHOWN:,} more features")
        return "\n".join(lines)


def permutation_importance(
    fitted: Any,
    queries: Queries,
    measure: str | Measure | None = None,
    *,
    n_repeats: int = 5,
    max_docs: int | None = None,
    random_state: int = 0,
) -> PermutationImportance:
    """Return how much a measure falls when one feature at a time is shuffled among the documents of each query.

    It says what a feature is worth to any model, in units of the measure itself. Use queries that the model was not
    trained on: on training queries, features look important that were only memorised. Features that carry the same
    information stand in for each other, so that each of them may look unimportant.

    Values are shuffled within a query, not among all documents, because a ranking only compares documents of one query:
    every query keeps its own values, at its own scale, and features that the model scales per query stay as scaled. A
    feature that is the same for all documents of a query, such as the query's length, can then change no order: its
    importance is 0, although trees may use it to choose among other features.

    Parameters
    ----------
    fitted : fitted ranker, Model, or a model of another library
        The model.
    queries : Queries
        Judged queries, best held out from training.
    measure : str or Measure, optional
        By default the one that the model was trained on.
    n_repeats : int
        The number of shuffles of each feature; all features share them.
    max_docs : int, optional
        At most about so many documents are used: those of queries drawn at random, at least one query. All by default.
    random_state : int
        The seed; the same seed gives the same numbers.

    Returns
    -------
    PermutationImportance
        The fall of the measure for each feature and shuffle; ``print`` shows the most important features.

    Examples
    --------
    >>> from rankwright import Regression, make_queries
    >>> train, test = make_queries(60, random_state=0), make_queries(30, random_state=1)
    >>> found = permutation_importance(Regression().fit(train), test, "ndcg@10")
    >>> found
    PermutationImportance(ndcg@10=0.3994; 20 features)
    """
    if n_repeats < 1:
        raise InputError(f"n_repeats is {n_repeats}; expected at least 1 shuffle")
    if max_docs is not None and max_docs < 1:
        raise InputError(f"max_docs is {max_docs}; expected at least 1 document, or None for all")
    model = as_model(fitted)
    rng = np.random.default_rng(random_state)
    grouped = _draw_queries(queries.grouped(), max_docs, rng)
    chosen = parse_measure(model.measure if measure is None else measure)
    prepared = chosen.prepare(grouped)

    def evaluate(documents: Queries) -> float:
        [values] = compute_values([prepared], model.predict(documents), Serial())
        return weighted_mean(values, grouped.query_weight)

    value = evaluate(grouped)
    falls = np.zeros((grouped.n_features, n_repeats))
    varied = find_varied_features(grouped)
    for repeat in range(n_repeats):
        for column, shuffled in _shuffle_features(grouped, varied, draw_permutation(grouped, rng)):
            falls[column, repeat] = value - evaluate(shuffled)
    names = tuple(name_features(grouped.features, grouped.n_features))
    return PermutationImportance(str(chosen), value, names, falls, len(grouped))


def draw_permutation(grouped: Queries, rng: np.random.Generator) -> Ints:
    """Return a random order of all rows that keeps the rows of every query together, and the queries in order."""
    query = np.repeat(np.arange(len(grouped)), grouped.sizes)
    return np.lexsort((rng.random(grouped.n_docs), query))


def find_varied_features(grouped: Queries) -> Ints:
    """Return the columns of the features that differ between documents of a query; shuffling others changes nothing."""
    starts = grouped.indptr[:-1]
    first = np.repeat(grouped.X[starts], grouped.sizes, axis=0)
    same = (first == grouped.X) | (np.isnan(first) & np.isnan(grouped.X))
    return np.flatnonzero(~same.all(axis=0))


def _draw_queries(grouped: Queries, max_docs: int | None, rng: np.random.Generator) -> Queries:
    """Return queries drawn at random, in their order, with at most ``max_docs`` documents; at least one query."""
    if max_docs is None or grouped.n_docs <= max_docs:
        return grouped
    drawn = rng.permutation(len(grouped))
    n_kept = max(int(np.searchsorted(np.cumsum(grouped.sizes[drawn]), max_docs, side="right")), 1)
    return grouped.take(np.sort(drawn[:n_kept]))


def _shuffle_features(grouped: Queries, columns: Ints, order: Ints) -> Iterator[tuple[int, Queries]]:
    """Yield each column with the queries in which it, and no other, is in this order of the rows.

    All of them share one matrix: each is valid until the next one.
    """
    X = np.array(grouped.X)
    for column in columns.tolist():
        own = X[:, column].copy()
        X[:, column] = own[order]
        yield column, grouped.with_X(X)
        X[:, column] = own
