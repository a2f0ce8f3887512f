"""Sums of regression trees in training: what LightGBM grows, and the scores, rankings and measures that follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.tree_scores import look_up_leaf_values
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.boosting_loop import AdditiveScores
from rankwright.optimisers.columns import TreeColumns
from rankwright.optimisers.functional_gradient import FunctionalGradient, compute_residuals, round_for_exact_sums
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import StepChoice
from rankwright.optimisers.polishing import polish_weights
from rankwright.optimisers.weak.regression_trees import RegressionTree, TreeGrower
from rankwright.runtime.backends import Backend, count_threads
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest

_STEP = 1e-6  # of a least squares tree
_LARGE = 2_000_000  # values of features
_MANY = 100_000  # documents: on more, not every round of LightGBM's own is evaluated on them


class GrownTree(NamedTuple):
    """The tree grown in a round, its values on the training documents if known, and what to record of it."""

    tree: Forest
    values: Floats | None
    notes: dict[str, Any]


class TreeStages(ABC):
    """The state of boosting trees between rounds: the trees, and the scores and measures of the queries.

    Parameters
    ----------
    train, valid : Queries
        Training queries, and validation queries if there are any.
    measure : Measure
        The measure that rounds are evaluated by.
    weak : RegressionTree
        How trees are grown.
    backend : Backend
        Where the work runs.
    """

    def __init__(
        self, train: Queries, valid: Queries | None, measure: Measure, weak: RegressionTree, backend: Backend
    ) -> None:
        self.queries, self.valid_queries, self.weak, self.backend = train, valid, weak, backend
        self.measure = measure
        self.trees: list[Forest] = []

    @abstractmethod
    def choose(self) -> GrownTree | None:
        """Return the next tree; None where nothing is left to gain.

        It asks for ``growing`` first: LightGBM needs more memory to bin documents than to grow trees.
        """

    @cached_property
    def train(self) -> AdditiveScores:
        """Return the scores of the training documents, and the mean measure by them."""
        return AdditiveScores(self.queries, self.measure.for_training(), self.backend)

    @cached_property
    def valid(self) -> AdditiveScores | None:
        """Return the scores of the validation documents, and the mean measure by them; None if there are none."""
        return None if self.valid_queries is None else AdditiveScores(self.valid_queries, self.measure, self.backend)

    @property
    def objective_of_lightgbm(self) -> dict[str, Any]:
        """Return LightGBM's own objective, where trees are grown for that."""
        return {}

    @property
    def n_threads(self) -> int:
        """Return how many threads LightGBM has; few for little work, since they wait for each other by spinning."""
        return count_threads(self.backend) if self.queries.X.size > _LARGE else 1

    @cached_property
    def growing(self) -> TreeGrower:
        """Return LightGBM's booster with the binned documents."""
        return self.weak.prepare(self.queries, self.n_threads)

    def add(self, grown: GrownTree) -> dict[str, Any]:
        """Add a tree to the sum; returns the record of the round."""
        self.trees.append(grown.tree)
        record = {**grown.notes, **self._scored(grown)}
        if self.valid is not None and self.valid_queries is not None:
            self.valid.add(self.values_of(grown.tree, self.valid_queries))
            record["valid"] = self.valid.value
        return record

    def values_of(self, tree: Forest, queries: Queries) -> Floats:
        """Return the value of one tree for each document."""
        [leaves] = Trees(tree).leaves(queries.X, self.backend)
        return look_up_leaf_values(leaves, tree.trees[0].values)

    @property
    def forest(self) -> Forest:
        """The trees so far."""
        if not self.trees:
            return Forest.constant(self.queries.n_features)
        first, *others = self.trees
        return first.append_trees(*others)

    def evaluate_training(self, n: int) -> dict[str, Any]:
        """Return the mean measure of the first ``n`` trees on the training queries."""
        self.train.set_scores(Trees(self.forest.take_first(n))(self.queries.X))
        return {"loss": 1.0 - self.train.value, "train": self.train.value}

    def _scored(self, grown: GrownTree) -> dict[str, Any]:
        """Bring the training scores up to date; what follows from them."""
        self.train.add(self.values_of(grown.tree, self.queries) if grown.values is None else grown.values)
        return {"train": self.train.value}


class NativeStages(TreeStages):
    """The boosting of trees on an objective built into LightGBM, which keeps the training scores itself.

    To ask for these scores and to judge them takes a good part of the time that a tree does, so on large data the
    training measure is that of the rounds 1, 2, 4, 8, ... alone.
    """

    def __init__(self, *setting: Any, objective: Mapping[str, Any]) -> None:
        super().__init__(*setting)
        self.objective = objective

    @property
    def objective_of_lightgbm(self) -> dict[str, Any]:
        """Return LightGBM's objective with its parameters."""
        return dict(self.objective)

    @cached_property
    def growing(self) -> TreeGrower:
        """Return LightGBM's booster, which begins with the scores of the present trees."""
        start = self.train.scores if self.trees else None
        return self.weak.prepare(self.queries, self.n_threads, start, **self.objective)

    def choose(self) -> GrownTree | None:
        """Return LightGBM's next tree; None if it cannot split."""
        tree = self.growing.fit_own_objective()
        return None if tree is None else GrownTree(tree, None, {})

    def evaluate_training(self, n: int) -> dict[str, Any]:
        """Return the mean measure by LightGBM's own scores, if these are all the trees."""
        if n < len(self.trees) or "growing" not in self.__dict__:
            return super().evaluate_training(n)
        self.train.set_scores(self.growing.own_objective_scores())
        return {"loss": 1.0 - self.train.value, "train": self.train.value}

    def _scored(self, grown: GrownTree) -> dict[str, Any]:
        n = len(self.trees)
        if "growing" not in self.__dict__:
            found = super()._scored(grown)
            return {"loss": 1.0 - found["train"], **found}
        return self.evaluate_training(n) if self.queries.n_docs <= _MANY or n & (n - 1) == 0 else {}


class GradientStages(TreeStages):
    """The boosting of trees along the gradient of one of Rankwright's objectives with respect to the scores.

    Parameters
    ----------
    objective : Objective
        The objective that they descend on.
    n_warmup_trees : int
        How many trees of least squares come first.
    """

    def __init__(self, *setting: Any, objective: Objective, n_warmup_trees: int = 0) -> None:
        super().__init__(*setting)
        self.objective, self.n_warmup_trees = objective, n_warmup_trees

    @cached_property
    def gradient(self) -> FunctionalGradient:
        """Return the objective as a function of the scores."""
        return FunctionalGradient(self.queries, self.objective, self.backend)

    def choose(self) -> GrownTree | None:
        """Return the tree along the gradient, or of least squares at the start and where there is no gradient."""
        growing = self.growing
        loss, target = self._find_target()
        tree = None if target is None else growing.fit(*target)
        return None if tree is None else GrownTree(tree, None, {"loss": loss})

    def _find_target(self) -> tuple[float, tuple[Floats, Floats] | None]:
        """Return the loss, and the gradients and curvatures for the next tree; None at an optimum."""
        point = self.train.point
        found = self.gradient(point, (self.weak.seed, len(self.trees)))
        loss, is_flat = sum(part.loss for part in found), not any(part.gradient.any() for part in found)
        if is_flat and (point.spread > 0.0 or loss == 0.0):
            return loss, None
        if is_flat or len(self.trees) < self.n_warmup_trees:
            gradient, curvature = compute_residuals(self.queries, self.train.scores)
            return loss, (round_for_exact_sums(gradient), round_for_exact_sums(curvature))
        return loss, self.gradient.make_target(found)


class SearchedStages(TreeStages):
    """The boosting of least squares trees, each weighted by an exact line search on the measure.

    Parameters
    ----------
    choice : StepChoice
        Where inside the best interval.
    limits : (float, float) or None
        The range that weights are clipped to.
    """

    def __init__(self, *setting: Any, choice: StepChoice, limits: tuple[float, float] | None) -> None:
        super().__init__(*setting)
        self.choice, self.limits = choice, limits
        self.least = self.weak.min_weight

    def choose(self) -> GrownTree | None:
        """Return the least squares tree of the residuals, and its weight."""
        growing = self.growing
        tree = growing.fit(*compute_residuals(self.queries, self.train.scores))
        if tree is None:
            return None
        if tree.trees[0].n_splits == 0:
            return GrownTree(tree, None, {"loss": 1.0 - self.train.value, "weight": 0.0, "searched": 0.0})
        values = self.values_of(tree, self.queries)
        weight, searched = self._weight(values)
        if weight == 0.0:
            return None
        notes = {"loss": 1.0 - self.train.value, "weight": weight, "searched": searched}
        return GrownTree(self.growing.rescale(tree, weight), weight * values, notes)

    def _weight(self, values: Floats) -> tuple[float, float]:
        """Return the weight of a tree with these values, and the weight before clipping; 0 is no tree."""
        found = self.train.search(values, self.choice, self.least)
        best = 0.0 if found is None or found.value < self.train.value else found.t
        if found is not None and found.value <= self.train.value and abs(best) < _STEP:
            best = 0.0  # the next tree would be the same
        return best if self.limits is None else float(np.clip(best, *self.limits)), best


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
