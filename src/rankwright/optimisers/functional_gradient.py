"""Functional gradients: the gradient of an objective by the scores themselves, to which boosting fits trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import average_ties
from rankwright.kernels.objectives.graded_pairs import find_grade_order
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.landscape import LandscapePoint, RankedShard
from rankwright.runtime.backends import Backend

_MIN_CURVATURE = 0.1  # added to the curvature of every document, in units of the mean size of a gradient


class _GradientShard(NamedTuple):
    """A shard: the grades of some queries' documents, and the objective prepared for them."""

    objective: PreparedObjective
    y: Floats
    indptr: Ints
    rows: Ints | None  # the documents by descending grade, if that is their order in the objective


class FunctionalGradient:
    """An objective as a function of the scores of the training documents, with its derivatives by each score.

    Trees give equal scores to many documents, whose ranks would then depend on the order of the rows. So documents of
    one query with equal scores and grades share their gradient and curvature evenly: the mean over all orders of such
    documents. Objectives that use only grades are prepared for documents in the order of grades. Other objectives are
    prepared for the documents as they are, and so are all where documents have weights: sums over documents and pairs
    do not depend on the order, and documents of different weights share nothing.
    """

    def __init__(self, queries: Queries, objective: Objective, backend: Backend) -> None:
        objective = objective.with_max_grade(queries.max_grade)
        self.backend, queries = backend, _normalise_weights(queries)
        self.uses_only_grades = objective.uses_only_grades
        self.weight = queries.row_weight
        self.shards = backend.apply(_prepare_shard, backend.scatter(queries), objective)

    def __call__(self, point: LandscapePoint, seed: tuple[int, ...]) -> Evaluation:
        """Return the objective at the scores of a point; of equal scores the lower grade is ranked first."""
        numbers = self.backend.distribute(range(len(self.shards)))
        found = self.backend.gather(_evaluate_shard, self.shards, point.shards, numbers, seed)
        curvatures = [part.curvature for part in found if part.curvature is not None]
        return Evaluation(
            sum(part.loss for part in found),
            np.concatenate([part.gradient for part in found]),
            np.concatenate(curvatures) if len(curvatures) == len(found) else None,
        )

    def make_target(self, found: Evaluation) -> tuple[Floats, Floats]:
        """Return the gradients and curvatures to which a tree is fitted.

        A user's curvatures, which may be of any size, are scaled to a mean of about 1: LightGBM requires a sum of
        0.001 in each leaf.
        """
        gradient, curvature = _scale_gradient(found, self.weight)
        mean = float(curvature.mean())
        if self.uses_only_grades or not 0.0 < mean < np.inf:
            return gradient, curvature
        factor = 2.0 ** -round(float(np.log2(mean)))
        return gradient * factor, curvature * factor


def _scale_gradient(found: Evaluation, weight: Floats) -> tuple[Floats, Floats]:
    """Return each document's gradient and curvature (at least 0); without curvatures, gradient sizes take their place.

    Without curvatures the sizes of the gradients, and a little more, take their place, in units of the mean size of
    those that are not 0. The value of a leaf is then how far its documents agree, between -1 and 1, whatever the number
    and length of the lists. (The curvature of a pair in LambdaRank is about the size of its gradient, too.)
    """
    if found.curvature is not None:
        return found.gradient, np.maximum(found.curvature, 0.0)
    size = np.abs(found.gradient)
    unit = float(size.sum() / (weight[size > 0.0].sum() or 1.0)) or 1.0
    return found.gradient / unit, size / unit + _MIN_CURVATURE * weight


def compute_residuals(queries: Queries, scores: Floats) -> tuple[Floats, Floats]:
    """Return the weighted residuals of least squares, scores minus centred grades, and the weights, by document.

    A constant changes no ranking, so the model has none. Queries count by their weights.
    """
    weight = queries.row_weight
    weight /= weight.mean()
    rest = scores - (queries.y - float((weight * queries.y).sum()) / len(weight))
    return weight * rest, weight


def _normalise_weights(queries: Queries) -> Queries:
    """Return the same queries with weights divided by their mean: LightGBM has limits on sums of curvatures."""
    if queries.weight is not None:
        queries = queries.replace(weight=queries.weight / queries.weight.mean())
    if queries.doc_weight is not None:
        queries = queries.replace(doc_weight=queries.doc_weight / queries.doc_weight.mean())
    return queries


def _prepare_shard(queries: Queries, objective: Objective) -> _GradientShard:
    """Prepare the objective for some queries, with documents by descending grade if it uses only grades."""
    if not objective.uses_only_grades or queries.doc_weight is not None:
        return _GradientShard(objective.prepare(queries), queries.y, queries.indptr, None)
    rows, _ = find_grade_order(queries.y, queries.indptr)
    graded = queries.replace(X=queries.X[:, :0], y=queries.y[rows], docid=None)
    return _GradientShard(objective.prepare(graded), queries.y, queries.indptr, rows)


def _evaluate_shard(shard: _GradientShard, ranked: RankedShard, number: int, seed: tuple[int, ...]) -> Evaluation:
    """Return a shard's objective and its derivatives by the scores; tied documents of one grade share theirs evenly."""
    scores, order, rng = ranked.scores, ranked.order, np.random.default_rng((*seed, number))
    if shard.rows is None:
        return shard.objective(scores, rng)
    found = shard.objective(scores[shard.rows], rng)
    return Evaluation(
        found.loss,
        _share_ties(found.gradient, shard, scores, order),
        None if found.curvature is None else _share_ties(found.curvature, shard, scores, order),
    )


def _share_ties(values: Floats, shard: _GradientShard, scores: Floats, order: Ints) -> Floats:
    """Return values in row order, where documents of one query with equal scores and grades get their mean."""
    out = np.empty(len(values))
    out[shard.rows] = values
    average_ties(order, scores, shard.y, shard.indptr, out)
    return out
