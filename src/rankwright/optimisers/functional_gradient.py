"""Functional gradients: the gradient of an objective by the scores themselves, to which boosting fits trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import average_ties
from rankwright.kernels.objectives.graded_pairs import find_grade_order
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.landscape import LandscapePoint, RankedShard
from rankwright.runtime.backends import Backend, Shards

_GRID = 23  # bits
_BLOCK = 1 << 16  # values that are rounded at a time
_MIN_CURVATURE = 0.1  # added to the curvature of every document, in units of the mean size of a gradient


class _GradientShard(NamedTuple):
    """A shard: the grades of some queries' documents, and the objective prepared for them."""

    objective: PreparedObjective
    y: Floats
    indptr: Ints
    rows: NDArray[np.int32] | None  # the documents by descending grade, if that is their order in the objective
    weight: Floats | None  # of the documents


class GradientSummary(NamedTuple):
    """A summary of the gradients and curvatures of all documents."""

    loss: float
    highest: float  # of the sizes of gradients
    total: float  # of the sizes of gradients
    moving_weight: float  # of the documents that have a gradient
    has_curvature: bool
    total_curvature: float
    highest_curvature: float
    n_docs: int

    @classmethod
    def join(cls, parts: Sequence[GradientSummary]) -> GradientSummary:
        """Return the summary of all shards."""
        return cls(
            loss=sum(part.loss for part in parts),
            highest=max(part.highest for part in parts),
            total=sum(part.total for part in parts),
            moving_weight=sum(part.moving_weight for part in parts),
            has_curvature=all(part.has_curvature for part in parts),
            total_curvature=sum(part.total_curvature for part in parts),
            highest_curvature=max(part.highest_curvature for part in parts),
            n_docs=sum(part.n_docs for part in parts),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TreeTarget:
    """The gradients and curvatures to which a tree is fitted, where the documents are.

    They are rounded to whole multiples of two numbers, the same ones for all documents, so that their sums are exact.

    Parameters
    ----------
    shards : Shards of Evaluation
        The gradients and curvatures before they are scaled and rounded.
    factor : float
        A power of two that both are multiplied by.
    highest : (float, float)
        The highest size of a gradient, and the highest curvature, scaled.
    """

    shards: Shards[Evaluation]
    factor: float
    highest: tuple[float, float]

    @classmethod
    def of(cls, shards: Shards[Evaluation], known: GradientSummary, factor: float = 1.0) -> TreeTarget:
        """Return the target of gradients and curvatures that a summary is known of."""
        return cls(shards, factor, (known.highest * factor, known.highest_curvature * factor))

    def collect(self, backend: Backend) -> tuple[Floats, Floats]:
        """Return the rounded gradients and curvatures of all documents."""
        parts = backend.gather(round_shard, self.shards, self.factor, self.highest)
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def round_shard(found: Evaluation, factor: float, highest: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the rounded gradients and curvatures of a shard."""
    assert found.curvature is not None
    return _round(found.gradient, factor, highest[0]), _round(found.curvature, factor, highest[1])


class FunctionalGradient:
    """An objective as a function of the scores of the training documents, with its derivatives by each score.

    Trees give equal scores to many documents, whose ranks would then depend on the order of the rows. So documents of
    one query with equal scores and grades share their gradient and curvature evenly: the mean over all orders of such
    documents. Objectives that use only grades are prepared for documents in the order of grades. Other objectives are
    prepared for the documents as they are, and so are all where documents have weights: sums over documents and pairs
    do not depend on the order, and documents of different weights share nothing.

    Parameters
    ----------
    queries : Queries
        The training queries.
    documents : Shards of Queries
        Their shards.
    objective : Objective
        The objective.
    backend : Backend
        Where the work runs.
    """

    def __init__(self, queries: Queries, documents: Shards[Queries], objective: Objective, backend: Backend) -> None:
        objective = objective.with_max_grade(queries.max_grade)
        self.backend, self.uses_only_grades = backend, objective.uses_only_grades
        means = [None if each is None else float(each.mean()) for each in (queries.weight, queries.doc_weight)]
        self.shards = backend.apply(_prepare_shard, documents, objective, *means)
        self.numbers = backend.distribute(range(len(self.shards)))

    def __call__(self, point: LandscapePoint, seed: tuple[int, ...]) -> tuple[Shards[Evaluation], GradientSummary]:
        """Return the objective at the scores of a point, by shard; of equal scores the lower grade is ranked first."""
        found = self.backend.apply(_evaluate_shard, self.shards, point.shards, self.numbers, seed)
        return found, GradientSummary.join(self.backend.gather(_summarise, found, self.shards))

    def make_target(self, found: Shards[Evaluation], known: GradientSummary) -> TreeTarget:
        """Return the gradients and curvatures to which a tree is fitted.

        A user's curvatures, which may be of any size, are scaled to a mean of about 1: LightGBM requires a sum of
        0.001 in each leaf.
        """
        if not known.has_curvature:
            unit = known.total / (known.moving_weight or 1.0) or 1.0
            found = self.backend.apply(_scale_gradient, found, self.shards, unit)
            known = GradientSummary.join(self.backend.gather(_summarise, found, self.shards))
        mean, factor = known.total_curvature / known.n_docs, 1.0
        if not self.uses_only_grades and 0.0 < mean < np.inf:
            factor = 2.0 ** -round(float(np.log2(mean)))
        return TreeTarget.of(found, known, factor)


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """The derivatives of least squares: weighted residuals, scores minus centred grades, and the weights.

    A constant changes no ranking, so the model has none. Queries count by their weights.

    Parameters
    ----------
    mean_weight : float
        The mean weight of the documents.
    center : float
        The weighted mean of their grades.
    """

    mean_weight: float
    center: float

    @classmethod
    def of(cls, queries: Queries) -> LeastSquares:
        """Return the derivatives for the documents of these queries, or of some of them."""
        weight = queries.row_weight
        mean = float(weight.mean())
        weight /= mean
        return cls(mean, float((weight * queries.grouped().y).sum()) / len(weight))

    def __call__(self, queries: Queries, scores: Floats) -> Evaluation:
        """Return the residuals as the gradient, and the weights as the curvature."""
        weight = queries.row_weight
        weight /= self.mean_weight
        return Evaluation(0.0, weight * (scores - (queries.y - self.center)), weight)

    def make_target(self, documents: Shards[Queries], point: LandscapePoint, backend: Backend) -> TreeTarget:
        """Return the gradients and curvatures at the scores of a point, to which a tree is fitted."""
        found = backend.apply(_find_residuals, documents, point.shards, self)
        return TreeTarget.of(found, GradientSummary.join(backend.gather(_summarise, found)))


def _find_residuals(queries: Queries, ranked: RankedShard, derivatives: LeastSquares) -> Evaluation:
    """Return the derivatives of least squares of a shard at its scores."""
    return derivatives(queries, ranked.scores)


def _summarise(found: Evaluation, shard: _GradientShard | None = None) -> GradientSummary:
    """Return what is known of the gradients and curvatures of a shard."""
    size = np.abs(found.gradient)
    curvature = np.empty(0) if found.curvature is None else found.curvature
    weight = None if shard is None else shard.weight
    moving = size > 0.0
    return GradientSummary(
        found.loss,
        float(size.max(initial=0.0)),
        float(size.sum()),
        float(np.count_nonzero(moving) if weight is None else weight[moving].sum()),
        found.curvature is not None,
        float(curvature.sum()),
        float(curvature.max(initial=0.0)),
        len(size),
    )


def _scale_gradient(found: Evaluation, shard: _GradientShard, unit: float) -> Evaluation:
    """Return each document's gradient, and a curvature where the objective has none.

    The sizes of the gradients, and a little more, take the place of curvatures, in units of the mean size of those that
    are not 0. The value of a leaf is then how far its documents agree, between -1 and 1, whatever the number and length
    of the lists. (The curvature of a pair in LambdaRank is about the size of its gradient, too.)
    """
    least = _MIN_CURVATURE * (1.0 if shard.weight is None else shard.weight)
    return Evaluation(found.loss, found.gradient / unit, np.abs(found.gradient) / unit + least)


def round_for_exact_sums(values: Floats) -> Floats:
    """Round values to whole multiples (at most 2^23) of one power of two, in single precision, so that sums are exact.

    LightGBM adds values up in double precision, which is then exact: no tree depends on the order of the documents.
    Values that were rounded before stay as they are.

    >>> round_for_exact_sums(np.array([1.0, 1e-9, -0.3])).tolist()
    [1.0, 0.0, -0.2999999523162842]
    """
    return _round(values, 1.0, float(np.abs([values.min(initial=0.0), values.max(initial=0.0)]).max()))


def _round(values: Floats, factor: float, highest: float) -> Floats:
    """Round values times a factor as ``round_for_exact_sums`` does, where the highest of all documents is known."""
    rounded = np.empty(len(values), np.float32)
    if not 0.0 < highest < np.inf:
        rounded[:] = values * factor
        return rounded
    unit = 2.0 ** (np.ceil(np.log2(highest)) - _GRID)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK] * factor
        rounded[start : start + len(block)] = np.rint(block / unit) * unit
    return rounded


def _prepare_shard(
    queries: Queries, objective: Objective, mean_weight: float | None, mean_doc_weight: float | None
) -> _GradientShard:
    """Prepare the objective for some queries, with documents by descending grade if it uses only grades.

    Weights are divided by their mean: LightGBM has limits on sums of curvatures.
    """
    if queries.weight is not None and mean_weight is not None:
        queries = queries.replace(weight=queries.weight / mean_weight)
    if queries.doc_weight is not None and mean_doc_weight is not None:
        queries = queries.replace(doc_weight=queries.doc_weight / mean_doc_weight)
    is_weighted = queries.weight is not None or queries.doc_weight is not None
    weight = queries.row_weight if is_weighted else None
    if not objective.uses_only_grades or queries.doc_weight is not None:
        return _GradientShard(objective.prepare(queries), queries.y, queries.indptr, None, weight)
    rows, _ = find_grade_order(queries.y, queries.indptr)
    graded = queries.reorder_labels(rows)
    return _GradientShard(objective.prepare(graded), queries.y, queries.indptr, rows.astype(np.int32), weight)


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
