"""The named tables that a trial makes for the report.

To add one, write a function that takes a :class:`TrainedRanker` and returns a table, or None where the table does not
apply, and put it into ``TRIAL_TABLES``. A section of the report reads the table by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis import results
from rankwright.analysis.permutation import permutation_importance
from rankwright.analysis.results import Table, make_pairs_table
from rankwright.basics.array_types import Floats
from rankwright.data.feature_numbers import name_features
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.experiments.tables.model_tables import (
    make_bounds_table,
    make_importance_table,
    make_profiles_table,
    make_steps_table,
)
from rankwright.measures import Measure
from rankwright.models.model import Model
from rankwright.rankers import Ranker
from rankwright.scorers.linear import QueryScaling, StandardScaling

MOST_PROFILED = 200_000  # documents of a fold
MOST_BOUNDED = 100_000  # training documents of a fold
N_SHUFFLES = 3  # of each feature
MOST_SHUFFLED = 5_000_000  # documents that are scored with a shuffled feature, over all features: a few seconds


@dataclass(frozen=True, slots=True, eq=False)
class TrainedRanker:
    """A ranker fitted on a fold, with its scores of the test documents and its test means of NDCG at 1, 2, ...

    The ``ranker`` is a Model where it was trained elsewhere; it has no tables of its training then. ``measure`` is the
    one that selects among trials.
    """

    ranker: Ranker | Model
    fold: Fold
    scores: Floats
    curve: Mapping[str, float]
    measure: str | Measure | None = None


def tabulate_curve(trained: TrainedRanker) -> Table:
    """Return a table of NDCG at 1 to 10 on the test queries."""
    families = [name.replace(f"@{k}", "@{k}", 1) for k, name in enumerate(trained.curve, 1)]
    values = np.array([*trained.curve.values()])
    return {"k": np.arange(1, len(values) + 1), "measure": np.array(families), "value": values}


def tabulate_history(trained: TrainedRanker) -> Table | None:
    """Return a table of what training recorded, a row per record, with the measure of ``train`` and ``valid``.

    ``kept`` is 1 in the row of the kept model, where a ranker marks it.
    """
    ranker = trained.ranker
    if isinstance(ranker, Model) or not ranker.history_:
        return None
    records = ranker.history_
    columns: dict[str, Any] = {"round": [record.get("round", i) for i, record in enumerate(records, 1)]}
    for key in dict.fromkeys(key for record in records for key in record):
        found = [record.get(key) for record in records]
        if all(value is None or isinstance(value, (int, float, np.number)) for value in found):
            columns[key] = [np.nan if value is None else float(value) for value in found]
    columns["measure"] = [str(ranker.measure_)] * len(records)
    return {key: np.array(values) for key, values in columns.items()}


def tabulate_weights(trained: TrainedRanker) -> Table | None:
    """Return a table of each feature's weight and effect: the weight times the feature's standard deviation."""
    train, model = trained.fold.train, trained.ranker.to_model()
    if model.scorer.linear is None:
        return None
    coef = np.asarray(model.scorer.linear.coef)
    deviations = compute_deviations(train, model.scaling)
    return {"feature": _name_features(train), "weight": coef, "effect": coef * deviations}


def _name_features(train: Queries) -> NDArray[Any]:
    """Return the names of the features of training queries as an array."""
    return np.array(list(name_features(train.features, train.n_features)))


@lru_cache(maxsize=1)
def compute_deviations(train: Queries, scaling: QueryScaling | None) -> Floats:
    """Return the standard deviation of each feature on the training queries; the last result is cached."""
    return StandardScaling.fit(train if scaling is None else scaling(train)).deviation


def tabulate_profiles(trained: TrainedRanker) -> Table | None:
    """Return a table of the measure as a function of single weights, for rankers that search along them."""
    ranker, fold = trained.ranker, trained.fold
    if isinstance(ranker, Model) or not ranker.searches_weights or sum(part.n_docs for part in fold) > MOST_PROFILED:
        return None
    scaling = ranker.to_model().scaling
    scaled = fold if scaling is None else Fold(*map(scaling, fold))
    deviations = compute_deviations(fold.train, scaling)
    return make_profiles_table(scaled, ranker.coef_, deviations, ranker.measure_, _name_features(fold.train))


def tabulate_bounds(trained: TrainedRanker) -> Table | None:
    """Return a table of the loss on the training queries and of upper bounds on it; None for large data."""
    ranker, train = trained.ranker, trained.fold.train
    if isinstance(ranker, Model) or train.n_docs > MOST_BOUNDED:
        return None
    return make_bounds_table(ranker, train)


def tabulate_steps(trained: TrainedRanker) -> Table | None:
    """Return a table of the step function of each feature, for models of stumps; None for others."""
    return make_steps_table(trained.ranker.to_model())


def tabulate_importance(trained: TrainedRanker) -> Table | None:
    """Return a table of each feature's share of the gain of all splits, for models of trees; None for others."""
    return make_importance_table(trained.ranker.to_model())


def tabulate_permutation(trained: TrainedRanker) -> Table:
    """Return a table of how much the measure falls on test queries when each feature is shuffled within queries.

    Where there are many features and documents, a sample of the test queries is used. What it costs depends on these
    numbers only, not on the clock, so that the same trial always has the same table.
    """
    test = trained.fold.test
    max_docs = max(MOST_SHUFFLED // (N_SHUFFLES * test.n_features), 1)
    found = permutation_importance(
        trained.ranker, test, trained.measure, n_repeats=N_SHUFFLES, max_docs=max_docs, random_state=0
    )
    n = len(found.features)
    return {"feature": np.array(found.features), "fall": found.means, "queries": np.full(n, found.n_queries)}


def tabulate_pairs(trained: TrainedRanker) -> Table:
    """Return a table that counts, for every two grades, the pairs of test documents in the right order."""
    return make_pairs_table(trained.fold.test, trained.scores)


def tabulate_scores(trained: TrainedRanker) -> Table | None:
    """Return a table of the score of every test document, in row order; None if there are too many."""
    if trained.fold.test.n_docs > results.MOST_DOCUMENTS:
        return None
    return {"document": np.arange(trained.fold.test.n_docs), "score": trained.scores}


TRIAL_TABLES: Mapping[str, Callable[[TrainedRanker], Table | None]] = {
    "curve": tabulate_curve,
    "history": tabulate_history,
    "weights": tabulate_weights,
    "profiles": tabulate_profiles,
    "bounds": tabulate_bounds,
    "steps": tabulate_steps,
    "importance": tabulate_importance,
    "permutation": tabulate_permutation,
    "pairs": tabulate_pairs,
    "scores": tabulate_scores,
}
