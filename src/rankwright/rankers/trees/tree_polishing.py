"""The polishing of boosted trees: their weights climb the measure by exact line searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.columns import TreeColumns
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.polishing import polish_weights
from rankwright.runtime.backends import Backend
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest


def polish_trees(
    forest: Forest,
    train: Queries,
    valid: Queries | None,
    measure: Measure,
    rules: ClimbRules,
    seed: int,
    backend: Backend,
) -> tuple[Forest, list[dict[str, Any]]]:
    """Improve the measure by exact line searches on the weights of trees; return the trees, and the history."""
    trees = Trees(forest)
    own = make_tree_landscape(trees, train, measure.for_training(), backend)
    other = None if valid is None else make_tree_landscape(trees, valid, measure, backend)
    found = polish_weights(own, other, np.ones(len(trees)), rules, np.random.default_rng(seed))
    return forest.with_weights(found.level), found.history


def make_tree_landscape(trees: Trees, queries: Queries, measure: Measure, backend: Backend) -> Landscape:
    """Return the mean measure on the queries as a function of the weights of the trees."""
    nodes = trees.forest.nodes
    columns = TreeColumns(trees.leaves(queries.X, backend), nodes.first_leaf, nodes.value)
    return Landscape.of_prepared(columns, measure.prepare(queries), queries.query_weight, backend)


def join_histories(history: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the rows of growing trees and of polishing: the last step of each of its rounds, and each new best."""
    start, *steps = more
    if "kept" not in start:
        history = [{name: value for name, value in row.items() if name != "kept"} for row in history]
    best, rows = start.get("valid", start["train"]), list[dict[str, Any]]()
    for i, step in enumerate(steps):
        value = step.get("valid", step["train"])
        is_last = i + 1 == len(steps) or steps[i + 1]["round"] != step["round"]
        if is_last or (value > best and "valid" in step):
            row = {"round": len(history) + len(rows) + 1, "polish": step["round"], "loss": 1.0 - step["train"]}
            rows.append(row | {name: step[name] for name in ("train", "valid", "kept") if name in step})
        best = max(best, value)
    return history + rows
