"""Functional gradients: an objective as a function of the scores themselves, which trees descend on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import even_ties
from rankwright.kernels.objectives.graded_pairs import grade_order
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.landscape import LandscapePoint
from rankwright.runtime.backends import Backend

_FLAT = 0.1  # what a document without a gradient holds its leaf back by, as a part of the others


class _GradientShard(NamedTuple):
    """An objective bound to some queries."""

    objective: PreparedObjective
    y: Floats
    indptr: Ints
    rows: Ints | None  # the documents by falling grade, if that is how they are bound


class FunctionalGradient:
    """An objective at any scores of the training documents, with its derivatives by every score.

    Trees give equal scores to many documents, whose places in the ranking are then a matter of the order of the rows.
    So documents of one query with equal scores and grades share what they have of the gradient and the curvature
    evenly, which is its mean over the orders of such documents, and ours are bound to documents in the order of
    grades. A user's objective is bound to the documents as they are.
    """

    def __init__(self, queries: Queries, objective: Objective, backend: Backend) -> None:
        objective = objective.with_max_grade(queries.max_grade)
        self.backend, queries = backend, _evenly_weighted(queries)
        self.uses_only_grades = objective.uses_only_grades
        self.weight = np.repeat(queries.query_weight, queries.sizes)
        self.shards = backend.apply(_bind, backend.scatter(queries), objective)

    def __call__(self, point: LandscapePoint, seed: tuple[int, ...]) -> Evaluation:
        """The objective at the scores of a point, whose documents are ranked with the lower grade first."""
        numbers = self.backend.distribute(range(len(self.shards)))
        found = self.backend.gather(_evaluate, self.shards, point.shards, numbers, seed)
        curvatures = [part.curvature for part in found if part.curvature is not None]
        return Evaluation(
            sum(part.loss for part in found),
            np.concatenate([part.gradient for part in found]),
            np.concatenate(curvatures) if len(curvatures) == len(found) else None,
        )

    def steps(self, found: Evaluation) -> tuple[Floats, Floats]:
        """What a tree is fitted to; a user's curvatures, which may be of any size, are made to be about 1 in the mean.

        LightGBM asks for a sum of 0.001 in each leaf.
        """
        gradient, curvature = steepest(found, self.weight)
        mean = float(curvature.mean())
        if self.uses_only_grades or not 0.0 < mean < np.inf:
            return gradient, curvature
        factor = 2.0 ** -round(float(np.log2(mean)))
        return gradient * factor, curvature * factor


def steepest(found: Evaluation, weight: Floats) -> tuple[Floats, Floats]:
    """What a tree is fitted to: gradients and curvatures; ``weight`` is that of each document's query.

    Without curvatures they are the sizes of the gradients, and a little more, in units of their mean over the documents
    that have one: the step of a leaf is how far its documents agree, between -1 and 1, whatever the number and length
    of the lists. (The curvature of a pair in LambdaRank is about the size of its gradient, too.)
    """
    if found.curvature is not None:
        return found.gradient, np.maximum(found.curvature, 0.0)
    size = np.abs(found.gradient)
    unit = float(size.sum() / (weight[size > 0.0].sum() or 1.0)) or 1.0
    return found.gradient / unit, size / unit + _FLAT * weight


def residuals(queries: Queries, scores: Floats) -> tuple[Floats, Floats]:
    """Least squares, as gradients and curvatures: how far the scores are above the grades, less the mean grade.

    A constant changes no ranking, so the model has none. Queries count by their weights.
    """
    weight = np.repeat(queries.query_weight, queries.sizes)
    weight /= weight.mean()
    rest = scores - (queries.y - float((weight * queries.y).sum()) / len(weight))
    return weight * rest, weight


def _evenly_weighted(queries: Queries) -> Queries:
    """The same queries with weights of 1 in the mean: LightGBM has limits on sums of curvatures."""
    if queries.weight is None:
        return queries
    return queries.replace(weight=queries.weight / queries.weight.mean())


def _bind(queries: Queries, objective: Objective) -> _GradientShard:
    if not objective.uses_only_grades:
        return _GradientShard(objective.prepare(queries), queries.y, queries.indptr, None)
    rows, _ = grade_order(queries.y, queries.indptr)
    graded = queries.replace(X=queries.X[:, :0], y=queries.y[rows], docid=None)
    return _GradientShard(objective.prepare(graded), queries.y, queries.indptr, rows)


def _evaluate(part: _GradientShard, placed: Any, number: int, seed: tuple[int, ...]) -> Evaluation:
    scores, order, rng = placed.scores, placed.order, np.random.default_rng((*seed, number))
    if part.rows is None:
        return part.objective(scores, rng)
    found = part.objective(scores[part.rows], rng)
    return Evaluation(
        found.loss,
        _shared(found.gradient, part, scores, order),
        None if found.curvature is None else _shared(found.curvature, part, scores, order),
    )


def _shared(values: Floats, part: _GradientShard, scores: Floats, order: Ints) -> Floats:
    """In the order of the rows, equal documents alike."""
    out = np.empty(len(values))
    out[part.rows] = values
    even_ties(order, scores, part.y, part.indptr, out)
    return out
