"""Artefacts: the named tables that a trial leaves for the report.

To add one, write a function of a :class:`Trained` that returns a table, or None where it has nothing to say, and put it
into ``ARTEFACTS``. A section of the report reads it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis import results
from rankwright.analysis.results import Table, pairs_table
from rankwright.basics.array_types import Floats
from rankwright.data.feature_numbers import feature_names
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.experiments.tables.bound_tables import bounds_table
from rankwright.experiments.tables.importance_tables import importance_table
from rankwright.experiments.tables.profile_tables import profiles_table
from rankwright.experiments.tables.step_tables import steps_table
from rankwright.rankers import Ranker
from rankwright.rankers.exact.restarts import Restarting
from rankwright.scorers.scaling import PerQuery, Standard

MOST_PROFILED = 200_000  # documents of a fold
MOST_BOUNDED = 100_000  # training documents of a fold


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A ranker that was trained on a fold, its scores of the test documents, and their NDCG at 1, 2, ... by name."""

    ranker: Ranker
    fold: Fold
    scores: Floats
    curve: Mapping[str, float]


def curve(trained: Trained) -> Table:
    """NDCG at 1 to 10 on the test queries."""
    families = [name.replace(f"@{k}", "@{k}", 1) for k, name in enumerate(trained.curve, 1)]
    values = np.array([*trained.curve.values()])
    return {"k": np.arange(1, len(values) + 1), "measure": np.array(families), "value": values}


def history(trained: Trained) -> Table | None:
    """What training recorded in numbers, a row per record, and the measure that train and valid are values of.

    ``kept`` is 1 in the row of the model, where a method marks it.
    """
    records = trained.ranker.history_
    if not records:
        return None
    columns: dict[str, Any] = {"round": [record.get("round", i) for i, record in enumerate(records, 1)]}
    for key in dict.fromkeys(key for record in records for key in record):
        found = [record.get(key) for record in records]
        if all(value is None or isinstance(value, (int, float, np.number)) for value in found):
            columns[key] = [np.nan if value is None else float(value) for value in found]
    columns["measure"] = [str(trained.ranker.measure_)] * len(records)
    return {key: np.array(values) for key, values in columns.items()}


def weights(trained: Trained) -> Table | None:
    """The weight of each feature, and its effect: the weight times the feature's deviation in training."""
    coef = getattr(trained.ranker, "coef_", None)
    if coef is None:
        return None
    train, model = trained.fold.train, trained.ranker.to_model()
    spread = deviation(train, model.scaling)
    return {"feature": _names(train), "weight": np.asarray(coef), "effect": coef * spread}


def _names(train: Queries) -> NDArray[Any]:
    return np.array(list(feature_names(train.features, train.n_features)))


@lru_cache(maxsize=1)
def deviation(train: Queries, scaling: PerQuery | None) -> Floats:
    """The deviation of each feature; that of the last training set is remembered for the next trial."""
    return Standard.of(train if scaling is None else scaling(train)).deviation


def profiles(trained: Trained) -> Table | None:
    """The measure along the weights of the largest effect, for methods that search along weights."""
    ranker, fold = trained.ranker, trained.fold
    if not isinstance(ranker, Restarting) or sum(part.n_docs for part in fold) > MOST_PROFILED:
        return None
    scaling = ranker.to_model().scaling
    scaled = fold if scaling is None else Fold(*map(scaling, fold))
    spread = deviation(fold.train, scaling)
    return profiles_table(scaled, ranker.coef_, spread, ranker.measure_, _names(fold.train))


def bounds(trained: Trained) -> Table | None:
    """The loss on the training queries, and the bounds above it."""
    ranker, train = trained.ranker, trained.fold.train
    return bounds_table(ranker, train) if train.n_docs <= MOST_BOUNDED else None


def steps(trained: Trained) -> Table | None:
    """The step function of each feature, for methods with stumps."""
    return steps_table(trained.ranker.to_model())


def importance(trained: Trained) -> Table | None:
    """The share of each feature in the gains of all splits, for methods with trees."""
    return importance_table(trained.ranker.to_model())


def pairs(trained: Trained) -> Table:
    """Pairs of test documents of one query with different grades: how many are in the right order, by grades."""
    return pairs_table(trained.fold.test, trained.scores)


def scores(trained: Trained) -> Table | None:
    """The score of every test document, in the order of the documents."""
    if trained.fold.test.n_docs > results.MOST_DOCUMENTS:
        return None
    return {"document": np.arange(trained.fold.test.n_docs), "score": trained.scores}


ARTEFACTS: Mapping[str, Callable[[Trained], Table | None]] = {
    "curve": curve,
    "history": history,
    "weights": weights,
    "profiles": profiles,
    "bounds": bounds,
    "steps": steps,
    "importance": importance,
    "pairs": pairs,
    "scores": scores,
}
