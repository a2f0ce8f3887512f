"""The table of a fold's data: how many queries, documents and grades its parts have, and what is missing."""

from __future__ import annotations

import json

import numpy as np

from rankwright.analysis.inspection.query_facts import MOST_GRADES, describe_queries
from rankwright.analysis.results import Table
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries

PARTS = ("training", "validation", "test")


def make_data_table(fold: Fold) -> Table:
    """Return a table with a row for each part of a fold: its size, grades and missing values.

    ``fewest``, ``median`` and ``most`` are documents of a query. ``irrelevant`` is the number of queries without a
    document of a grade above 0. ``grades`` is JSON: how many documents have each grade, or null for too many grades.
    """
    rows = [_list_facts(part) for part in fold]
    return {"part": np.array(PARTS), **{name: np.array([row[name] for row in rows]) for name in rows[0]}}


def _list_facts(queries: Queries) -> dict[str, float | str]:
    """Return the facts on one part of a fold, by column."""
    facts = describe_queries(queries)
    X = queries.grouped().X
    fewest, _, median, _, most = facts.size_quartiles.tolist()
    grades = dict(zip((f"{grade:g}" for grade in facts.grades), facts.counts.tolist(), strict=True))
    return {
        "queries": facts.n_queries,
        "documents": facts.n_docs,
        "features": facts.n_features,
        "missing": sum(int(np.isnan(X[:, at]).sum()) for at in range(facts.n_features)),
        "fewest": fewest,
        "median": median,
        "most": most,
        "irrelevant": int(facts.irrelevant.sum()),
        "grades": json.dumps(grades if len(grades) <= MOST_GRADES else None),
    }
