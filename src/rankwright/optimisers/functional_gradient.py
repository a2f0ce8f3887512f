"""Functional gradients: the gradient of an objective by the scores themselves, to which boosting fits trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import average_ties
from rankwright.kernels.objectives.graded_pairs import find_grade_order
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.landscape import LandscapePoint, RankedShard
from rankwright.runtime.backends import Backend

_GRID = 23  # bits
_BLOCK = 1 << 16  # values that are rounded at a time
_MIN_CURVATURE = 0.1  # added to the curvature of every document, in units of the mean size of a gradient


class _GradientShard(NamedTuple):
    """A shard: the grades of some queries' documents, and the objective prepared for them."""

    objective: PreparedObjective
    y: Floats
    indptr: Ints
    rows: NDArray[np.int32] | None  # the documents by descending grade, if that is their order in the objective


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
        self.queries = queries
        self.shards = backend.apply(_prepare_shard, backend.scatter(queries), objective)

    def __call__(self, point: LandscapePoint, seed: tuple[int, ...]) -> list[Evaluation]:
        """Return the objective at the scores of a point, by shard; of equal scores the lower grade is ranked first."""
        numbers = self.backend.distribute(range(len(self.shards)))
        return self.backend.gather(_evaluate_shard, self.shards, point.shards, numbers, seed)

    def make_target(self, found: list[Evaluation]) -> tuple[Floats, Floats]:
        """Return the gradients and curvatures to which a tree is fitted, rounded so that their sums are exact.

        The list of evaluations is emptied, so that their memory can be used again.

        A user's curvatures, which may be of any size, are scaled to a mean of about 1: LightGBM requires a sum of
        0.001 in each leaf.
        """
        gradients = [part.gradient for part in found]
        known = [part.curvature for part in found if part.curvature is not None]
        found.clear()
        if len(known) < len(gradients):
            gradient, curvature = _scale_gradient(np.concatenate(gradients), self.queries.row_weight)
            gradients, known = [gradient], [curvature]
        if not self.uses_only_grades:
            mean = float(np.concatenate(known).mean())
            factor = 2.0 ** -round(float(np.log2(mean))) if 0.0 < mean < np.inf else 1.0
            gradients, known = [each * factor for each in gradients], [each * factor for each in known]
        gradient = round_for_exact_sums(*gradients)
        gradients.clear()
        return gradient, round_for_exact_sums(*known)


def _scale_gradient(gradient: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return each document's gradient, and a curvature where the objective has none.

    The sizes of the gradients, and a little more, take the place of curvatures, in units of the mean size of those that
    are not 0. The value of a leaf is then how far its documents agree, between -1 and 1, whatever the number and length
    of the lists. (The curvature of a pair in LambdaRank is about the size of its gradient, too.)
    """
    size = np.abs(gradient)
    unit = float(size.sum() / (weight[size > 0.0].sum() or 1.0)) or 1.0
    return gradient / unit, size / unit + _MIN_CURVATURE * weight


def round_for_exact_sums(*parts: Floats) -> Floats:
    """Round values to whole multiples (at most 2^23) of one power of two, in single precision, so that sums are exact.

    The parts are joined. LightGBM adds values up in double precision, which is then exact: no tree depends on the order
    of the documents. Values that were rounded before stay as they are.

    >>> round_for_exact_sums(np.array([1.0, 1e-9, -0.3])).tolist()
    [1.0, 0.0, -0.2999999523162842]
    """
    ends = np.array([[part.min(initial=0.0), part.max(initial=0.0)] for part in parts])
    highest = float(np.abs(ends).max())
    unit = 2.0 ** (np.ceil(np.log2(highest)) - _GRID) if 0.0 < highest < np.inf else None
    rounded, at = np.empty(sum(map(len, parts)), np.float32), 0
    for part in parts:
        for start in range(0, len(part), _BLOCK):
            block = part[start : start + _BLOCK]
            rounded[at : at + len(block)] = block if unit is None else np.rint(block / unit) * unit
            at += len(block)
    return rounded


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
    return _GradientShard(objective.prepare(graded), queries.y, queries.indptr, rows.astype(np.int32))


def _evaluate_shard(shard: _GradientShard, ranked: RankedShard, number: int, seed: tuple[int, ...]) -> Evaluation:
    """Return a shard's objective, gradient and curvature (at least 0); tied documents of one grade share theirs."""
    scores, order, rng = ranked.scores, ranked.order, np.random.default_rng((*seed, number))
    if shard.rows is None:
        found = shard.objective(scores, rng)
        return found if found.curvature is None else found._replace(curvature=np.maximum(found.curvature, 0.0))
    found = shard.objective(scores[shard.rows], rng)
    gradient = _share_ties(found.gradient, shard, scores, order)
    if found.curvature is None:
        return Evaluation(found.loss, gradient, None)
    curvature = _share_ties(found.curvature, shard, scores, order)
    return Evaluation(found.loss, gradient, np.maximum(curvature, 0.0, out=curvature))


def _share_ties(values: Floats, shard: _GradientShard, scores: Floats, order: Ints) -> Floats:
    """Return values in row order, where documents of one query with equal scores and grades get their mean."""
    out = np.empty(len(values))
    out[shard.rows] = values
    average_ties(order, scores, shard.y, shard.indptr, out)
    return out
