"""Sums of regression trees in training: what LightGBM grows, and the scores, rankings and measures that follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.tree_scores import look_up_leaf_values
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.optimisers.ascent import ClimbRules
from rankwright.optimisers.boosting_loop import AdditiveScores
from rankwright.optimisers.columns import TreeColumns
from rankwright.optimisers.functional_gradient import FunctionalGradient, LeastSquares, TreeTarget
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import StepChoice
from rankwright.optimisers.polishing import polish_weights
from rankwright.optimisers.weak.distributed_trees import DistributedGrower, explain_refusal, has_same_bits
from rankwright.optimisers.weak.regression_trees import RegressionTree, TreeGrower
from rankwright.runtime.backends import Backend, Serial, Shards, count_threads
from rankwright.runtime.process_group import count_workers
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest

_STEP = 1e-6  # of a least squares tree
_LARGE = 2_000_000  # values of features
_SENT = 1_000_000_000  # values of features of this machine from which on trees grow on the workers of a cluster
_MANY = 100_000  # documents: on more, not every round of LightGBM's own is evaluated on them


def grows_on_workers(train: Queries, weak: RegressionTree, backend: Backend, *, native: bool) -> bool:
    """Return whether trees grow on the workers of a cluster: where the features are, or many features are sent.

    Features of this machine stay here if the trees would have other bits on workers.
    """
    if train.backend is not None:
        if count_workers(backend) == 0:
            raise InputError(f"trees grow on the workers of rw.Dask; the features are on those of {backend!r}")
        return True
    if native or train.n_docs * train.n_features < _SENT:
        return False
    is_exact = explain_refusal(weak.params) is None and has_same_bits(weak.params, train)
    return is_exact and count_workers(backend) > 1


class GrownTree(NamedTuple):
    """The tree grown in a round, and what to record of it."""

    tree: Forest
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
        self.is_distributed = grows_on_workers(train, weak, backend, native=bool(self.objective_of_lightgbm))

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

    @cached_property
    def documents(self) -> Shards[Queries]:
        """Return the shards of the training queries."""
        return self.backend.scatter(self.queries)

    @cached_property
    def valid_documents(self) -> Shards[Queries]:
        """Return the shards of the validation queries."""
        assert self.valid_queries is not None
        return self.backend.scatter(self.valid_queries)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """Return the derivatives of least squares."""
        return LeastSquares.of(self.queries)

    @property
    def objective_of_lightgbm(self) -> dict[str, Any]:
        """Return LightGBM's own objective, where trees are grown for that."""
        return {}

    @property
    def n_threads(self) -> int:
        """Return how many threads LightGBM has; few for little work, since they wait for each other by spinning."""
        return count_threads(self.backend) if self.queries.n_docs * self.queries.n_features > _LARGE else 1

    @cached_property
    def growing(self) -> TreeGrower | DistributedGrower:
        """Return LightGBM's booster with the binned documents."""
        if self.is_distributed:
            return DistributedGrower(self.weak, self.queries, self.documents, self.backend)
        return self.weak.prepare(self.queries, self.n_threads)

    def close(self) -> None:
        """Free the workers where trees grow on these."""
        growing = self.__dict__.get("growing")
        if isinstance(growing, DistributedGrower):
            growing.close()

    def add(self, grown: GrownTree) -> dict[str, Any]:
        """Add a tree to the sum; returns the record of the round."""
        self.trees.append(grown.tree)
        record = {**grown.notes, **self._scored(grown)}
        if self.valid is not None:
            self.valid.add_values_of(find_tree_values, self.valid_documents, grown.tree)
            record["valid"] = self.valid.value
        return record

    @property
    def forest(self) -> Forest:
        """The trees so far."""
        if not self.trees:
            return Forest.constant(self.queries.n_features)
        first, *others = self.trees
        return first.append_trees(*others)

    def evaluate_training(self, n: int) -> dict[str, Any]:
        """Return the mean measure of the first ``n`` trees on the training queries."""
        self.train.set_scores_of(_score_documents, self.documents, Trees(self.forest.take_first(n)))
        return {"loss": 1.0 - self.train.value, "train": self.train.value}

    def _scored(self, grown: GrownTree) -> dict[str, Any]:
        """Bring the training scores up to date; what follows from them."""
        self.train.add_values_of(find_tree_values, self.documents, grown.tree)
        return {"train": self.train.value}


def find_tree_values(documents: Queries, tree: Forest) -> Floats:
    """Return the value of one tree for each document."""
    [leaves] = Trees(tree).leaves(documents.X, Serial())
    return look_up_leaf_values(leaves, tree.trees[0].values)


def _score_documents(documents: Queries, scorer: Trees) -> Floats:
    """Return the score of each document."""
    return scorer(documents.X)


class NativeStages(TreeStages):
    """The boosting of trees on an objective built into LightGBM, which keeps the training scores itself.

    To ask for these scores and to judge them takes a good part of the time that a tree does, so on large data the
    training measure is that of the rounds 1, 2, 4, 8, ... alone.
    """

    def __init__(self, *setting: Any, objective: Mapping[str, Any]) -> None:
        self.objective = objective
        super().__init__(*setting)

    @property
    def objective_of_lightgbm(self) -> dict[str, Any]:
        """Return LightGBM's objective with its parameters."""
        return dict(self.objective)

    @cached_property
    def growing(self) -> TreeGrower | DistributedGrower:
        """Return LightGBM's booster, which begins with the scores of the present trees."""
        if self.is_distributed:
            known = self.queries, self.documents, self.backend
            return DistributedGrower(self.weak, *known, self._find_scores, self.objective)
        start = self.train.scores if self.trees else None
        return self.weak.prepare(self.queries, self.n_threads, start, **self.objective)

    def _find_scores(self) -> Shards[Floats] | None:
        """Return the scores of the training documents where these are; None if there are no trees."""
        if not self.trees:
            return None
        if self.queries.n_docs > _MANY:  # they were not brought up to date after each tree
            self.evaluate_training(len(self.trees))
        return self.backend.apply(attrgetter("scores"), self.train.point.shards)

    @property
    def _booster(self) -> TreeGrower | None:
        """The booster of LightGBM if it is on this machine and has the scores of the training documents."""
        growing = self.__dict__.get("growing")
        return growing if isinstance(growing, TreeGrower) else None

    def choose(self) -> GrownTree | None:
        """Return LightGBM's next tree; None if it cannot split."""
        tree = self.growing.fit_own_objective()
        return None if tree is None else GrownTree(tree, {})

    def evaluate_training(self, n: int) -> dict[str, Any]:
        """Return the mean measure by LightGBM's own scores, if these are all the trees."""
        if n < len(self.trees) or self._booster is None:
            return super().evaluate_training(n)
        self.train.set_scores(self._booster.own_objective_scores())
        return {"loss": 1.0 - self.train.value, "train": self.train.value}

    def _scored(self, grown: GrownTree) -> dict[str, Any]:
        n, is_large = len(self.trees), self.queries.n_docs > _MANY
        if is_large:
            return self.evaluate_training(n) if n & (n - 1) == 0 else {}
        if self._booster is None:
            found = super()._scored(grown)
            return {"loss": 1.0 - found["train"], **found}
        return self.evaluate_training(n)


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
        return FunctionalGradient(self.queries, self.documents, self.objective, self.backend)

    def choose(self) -> GrownTree | None:
        """Return the tree along the gradient, or of least squares at the start and where there is no gradient."""
        growing = self.growing
        loss, target = self._find_target()
        tree = None if target is None else growing.fit_target(target, self.backend)
        return None if tree is None else GrownTree(tree, {"loss": loss})

    def _find_target(self) -> tuple[float, TreeTarget | None]:
        """Return the loss, and the gradients and curvatures for the next tree; None at an optimum."""
        point = self.train.point
        found, known = self.gradient(point, (self.weak.seed, len(self.trees)))
        is_flat = known.highest == 0.0
        if is_flat and (point.spread > 0.0 or known.loss == 0.0):
            return known.loss, None
        if is_flat or len(self.trees) < self.n_warmup_trees:
            return known.loss, self.least_squares.make_target(self.documents, point, self.backend)
        return known.loss, self.gradient.make_target(found, known)


class AveragedStages(GradientStages):
    """The boosting of trees along a gradient whose k-th tree is divided by k + 1, as GBRank averages.

    It makes of the scores h the mean (k h + (h + g)) / (k + 1) = h + g / (k + 1), where g is the tree.
    """

    n_rounds = 0

    def choose(self) -> GrownTree | None:
        """Return the tree along the gradient, divided by the number of the round plus 1."""
        grown = super().choose()
        if grown is None:
            return None
        weight = 1.0 / (self.n_rounds + 2)
        return grown._replace(tree=self.growing.rescale(grown.tree, weight), notes={**grown.notes, "weight": weight})

    def add(self, grown: GrownTree) -> dict[str, Any]:
        """Add a tree to the sum; trees of another model, which have no weight, are no rounds."""
        self.n_rounds += "weight" in grown.notes
        return super().add(grown)


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
        target = self.least_squares.make_target(self.documents, self.train.point, self.backend)
        tree = growing.fit_target(target, self.backend)
        if tree is None:
            return None
        loss = 1.0 - self.train.value
        if tree.trees[0].n_splits == 0:
            return GrownTree(tree, {"loss": loss, "weight": 0.0, "searched": 0.0})
        weight, searched = self._weight(tree)
        if weight == 0.0:
            return None
        notes = {"loss": loss, "weight": weight, "searched": searched}
        return GrownTree(growing.rescale(tree, weight), notes)

    def _weight(self, tree: Forest) -> tuple[float, float]:
        """Return the weight of a tree, and the weight before clipping; 0 is no tree."""
        found = self.train.search_values_of(self.choice, self.least, find_tree_values, self.documents, tree)
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
    columns = partial(_find_tree_columns, trees=trees)
    return Landscape.of_columns(queries, columns, len(trees), measure, backend)


def _find_tree_columns(documents: Queries, trees: Trees) -> TreeColumns:
    """Return the outputs of trees for documents as columns of scores."""
    nodes = trees.forest.nodes
    return TreeColumns(trees.leaves(documents.X, Serial()), nodes.first_leaf, nodes.value)


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
