"""Artefacts: the named tables that a trial leaves for the report.

To add one, write a function of a :class:`Trained` that returns a table, or None where it has nothing to say, and put it
into ``ARTEFACTS``. A section of the report reads it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.backends import Serial
from rankwright.data import Floats, Queries
from rankwright.evaluation import evaluate
from rankwright.experiments.results import Table
from rankwright.folds import Fold
from rankwright.rankers import Ranker
from rankwright.scaling import Standard

MOST_DOCUMENTS = 100_000  # of a fold's test queries: beyond, single documents are not kept


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A ranker that was trained on a fold, and its scores of the test documents."""

    ranker: Ranker
    fold: Fold
    scores: Floats
    curve: tuple[str, ...]


def curve(trained: Trained) -> Table:
    """NDCG at 1 to 10 on the test queries."""
    means = evaluate(trained.scores, trained.fold.test, trained.curve, Serial()).means
    names = list(means)
    return {"k": np.arange(1, len(names) + 1), "measure": np.array(names), "value": np.array(list(means.values()))}


def history(trained: Trained) -> Table | None:
    """What training recorded, a row per round."""
    records = trained.ranker.history_
    if not records:
        return None
    columns: dict[str, Any] = {"round": [record.get("round", i) for i, record in enumerate(records, 1)]}
    for key in dict.fromkeys(key for record in records for key in record):
        found = [record.get(key) for record in records]
        if all(value is None or isinstance(value, (int, float, np.number)) for value in found):
            columns[key] = [np.nan if value is None else float(value) for value in found]
    return {key: np.array(values) for key, values in columns.items()}


def weights(trained: Trained) -> Table | None:
    """The weight of each feature, and its effect: the weight times the feature's deviation in training."""
    coef = getattr(trained.ranker, "coef_", None)
    if coef is None:
        return None
    train, model = trained.fold.train, trained.ranker.to_model()
    deviation = Standard.of(train if model.scaling is None else model.scaling(train)).deviation
    names = train.features or tuple(str(i) for i in range(1, train.n_features + 1))
    return {"feature": np.array(names), "weight": np.asarray(coef), "effect": coef * deviation}


def pairs(trained: Trained) -> Table:
    """Pairs of test documents of one query with different grades: how many are in the right order, by grades."""
    test, counts = trained.fold.test, dict[tuple[float, float], list[int]]()
    for rows in test:
        grades, scores = test.y[rows], trained.scores[rows]
        levels = np.unique(grades)
        ordered = [np.sort(scores[grades == level]) for level in levels]
        for low in range(len(levels)):
            for high in range(low + 1, len(levels)):
                below = int(np.searchsorted(ordered[low], ordered[high], side="left").sum())
                upto = int(np.searchsorted(ordered[low], ordered[high], side="right").sum())
                count = counts.setdefault((float(levels[high]), float(levels[low])), [0, 0, 0])
                for place, number in enumerate((below, upto - below, len(ordered[low]) * len(ordered[high]))):
                    count[place] += number
    table = np.array([[*grades, *count] for grades, count in sorted(counts.items(), reverse=True)]).reshape(-1, 5)
    return dict(zip(("high", "low", "right", "tied", "total"), table.T, strict=True))


def scores(trained: Trained) -> Table | None:
    """The score of every test document, in the order of the documents."""
    if trained.fold.test.n_docs > MOST_DOCUMENTS:
        return None
    return {"document": np.arange(trained.fold.test.n_docs), "score": trained.scores}


ARTEFACTS: Mapping[str, Callable[[Trained], Table | None]] = {
    "curve": curve,
    "history": history,
    "weights": weights,
    "pairs": pairs,
    "scores": scores,
}


def describe_queries(test: Queries) -> Table:
    """The test queries of a fold."""
    return {
        "qid": test.qid.astype(str),
        "n_docs": test.sizes,
        "n_pairs": n_pairs(test),
        "weight": test.query_weight,
    }


def describe_documents(test: Queries) -> Table | None:
    """The test documents of a fold."""
    if test.n_docs > MOST_DOCUMENTS:
        return None
    names = test.rows_of_caller + 1 if test.docid is None else test.docid
    return {"query": np.repeat(np.arange(len(test)), test.sizes), "docid": names.astype(str), "grade": test.y}


def n_pairs(queries: Queries) -> np.ndarray:
    """The number of pairs of documents of different grades, by query.

    >>> from rankwright import Queries
    >>> n_pairs(Queries.from_arrays([[0.0]] * 4, [2, 1, 1, 0], group=[4]))
    array([5])
    """
    levels, level = np.unique(queries.y, return_inverse=True)
    counts = np.zeros((len(queries), len(levels)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(queries)), queries.sizes), level), 1)
    return np.asarray((queries.sizes**2 - (counts**2).sum(axis=1)) // 2)
