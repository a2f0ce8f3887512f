"""Bounds on the loss of a ranking: by query, and at the scale of its scores that suits them best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.diagnosis.score_scales import (
    ScoredQueries,
    Tangent,
    ViolatedRankings,
    center_scores,
    collect_violated_rankings,
    find_best_factor,
    search_factor,
)
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.prepared_bounds import PreparedBound
from rankwright.objectives.upper_bounds import SURROGATES, Basic, TypeTwo, UpperBound
from rankwright.runtime.backends import Backend, Shards

_ROUNDS = 4  # of a search for the best scale
_NEAR = 1e-3  # it ends when the least cannot be lower by more than this part


class BestScale(NamedTuple):
    """The values of a bound by query, after the scores are multiplied by the factor that makes their mean least."""

    factor: float  # 0 where it is least when all scores are alike
    values: Floats
    exact: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class UpperBoundValues:
    """The values, by query, of an upper bound on the loss of a ranking, and of that loss.

    Parameters
    ----------
    name : str
        Which bound.
    measure : str
        The measure whose loss it bounds.
    own : bool
        Whether it is the one that the ranker minimises.
    weight : array of shape (n_queries,)
        Query weights.
    loss : array of shape (n_queries,)
        The basic loss 1 - E of its measure.
    values : array of shape (n_queries,)
        The bound at the scores as they are.
    exact : array of shape (n_queries,)
        Where not, the true bound may be larger; the value is above the loss all the same.
    least : BestScale, optional
        The bound at its best scale, for type two bounds: not for the step, which has none, nor for a sum that is not
        exact, whose rankings change with the scale.
    """

    name: str
    measure: str
    own: bool
    weight: Floats
    loss: Floats
    values: Floats
    exact: NDArray[np.bool_]
    least: BestScale | None = None

    def __repr__(self) -> str:
        return f"UpperBoundValues({self.name} on {self.measure}: mean={self.mean:.4g}, gap={self.mean_gap:.4g})"

    @property
    def gap(self) -> Floats:
        """The difference of the bound and the loss, by query."""
        return self.values - self.loss

    @property
    def mean(self) -> float:
        """The weighted mean over the queries."""
        return mean(self.values, self.weight)

    @property
    def mean_gap(self) -> float:
        """The mean of the bound less that of the loss."""
        return mean(self.gap, self.weight)

    @property
    def total(self) -> float:
        """The weighted sum over the queries."""
        return float(self.values @ self.weight)

    @property
    def least_mean(self) -> float:
        """The mean at the best scale; the mean itself where scale does not matter."""
        return self.mean if self.least is None else mean(self.least.values, self.weight)


def mean(values: Floats, weight: Floats) -> float:
    """Return the mean of values over queries, weighted by the queries' weights."""
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0 else float("nan")


class UpperBoundEvaluator:
    """An evaluator of upper bounds on the loss of one ranking, which is given by its scores.

    Parameters
    ----------
    queries : Queries
        The judged documents.
    scores : array of shape (n_docs,)
        Their scores.
    backend : Backend
        Where the work runs.
    """

    def __init__(self, queries: Queries, scores: Floats, backend: Backend) -> None:
        self.backend, self.weight, self.parts = backend, queries.query_weight, scatter_scores(queries, scores, backend)
        self._pools: dict[tuple[Measure, str, str], ViolatedRankings] = {}
        self._losses: dict[Measure, Floats] = {}
        self.left_out: dict[str, str] = {}

    def loss(self, measure: Measure) -> Floats:
        """Return the basic loss 1 - E of each query."""
        if measure not in self._losses:
            self._losses[measure] = self._evaluate_at(self._prepare(Basic(measure)), 1.0).values
        return self._losses[measure]

    def live(self, measure: Measure) -> NDArray[np.bool_]:
        """Return a flag per query: whether some of its rankings are better than others."""
        found: NDArray[np.bool_] = self.backend.concat(_find_live, self._prepare(Basic(measure)))
        return found

    def evaluate(self, bounds: Sequence[UpperBound], own: UpperBound | None) -> tuple[UpperBoundValues, ...]:
        """Evaluate these bounds and the ranker's own; one that cannot be evaluated is left out, with the reason."""
        wanted = [*bounds, *([] if own is None or own in bounds else [own])]
        found = []
        for bound in wanted:
            try:
                found.append(self.evaluate_scaled(bound, bound == own))
            except InputError as error:
                self.left_out[name_bound(bound)] = str(error)
        return tuple(found)

    def evaluate_one(self, bound: UpperBound, own: bool) -> UpperBoundValues:
        """Evaluate a bound at the scores as they are; ``own`` is whether the ranker minimises it."""
        values, exact, _ = self._evaluate_at(self._prepare(bound), 1.0)
        about = name_bound(bound), str(bound.measure), own
        return UpperBoundValues(*about, self.weight, self.loss(bound.measure), values, exact)

    def evaluate_scaled(self, bound: UpperBound, own: bool) -> UpperBoundValues:
        """Evaluate a bound at the scores as they are and at their best scale."""
        losses, found = self._prepare(bound), self.evaluate_one(bound, own)
        return replace(found, least=self._find_best_scale(bound, losses, found.values, found.exact))

    def _find_best_scale(
        self, bound: UpperBound, losses: Shards[_PreparedBoundPart], values: Floats, exact: NDArray[np.bool_]
    ) -> BestScale | None:
        if not isinstance(bound, TypeTwo) or bound.surrogate == "step":
            return None
        if bound.over == "sum" and not exact.all():  # what stands in for it at one scale is no bound of another
            return None
        rankings = self._find_rankings(bound)
        if not rankings.unit > 0.0:  # all scores are alike
            return BestScale(1.0, values, exact)
        kind, tangents, found = SURROGATES[bound.surrogate], list[Tangent](), BestScale(1.0, values, exact)
        for _ in range(_ROUNDS):
            factor, lowest = find_best_factor(kind, rankings, self.weight, tangents)
            if bound.over == "sum":
                factor = search_factor(
                    lambda s: mean(self._evaluate_at(losses, s).values, self.weight), factor or rankings.unit
                )
            at = self._evaluate_at(losses, factor)
            there = BestScale(factor, at.values, at.exact)
            reached = mean(there.values, self.weight)
            found = min(found, there, key=lambda least: mean(least.values, self.weight))
            if bound.over == "sum" or not there.exact.all() or reached <= lowest * (1.0 + _NEAR):
                break
            tangents.append(Tangent(factor, at.values, at.rises))
        return found

    def _find_rankings(self, bound: TypeTwo) -> ViolatedRankings:
        """Return the most violated rankings, which all surrogates of one measure share."""
        key = bound.measure, bound.phi, bound.perfect
        if key not in self._pools:
            self._pools[key] = collect_violated_rankings(bound, self.parts, self.weight, self.backend)
        return self._pools[key]

    def _prepare(self, bound: UpperBound) -> Shards[_PreparedBoundPart]:
        return self.backend.apply(_prepare_part, self.parts, bound)

    def _evaluate_at(self, losses: Shards[_PreparedBoundPart], factor: float) -> _UpperBoundColumns:
        columns = self.backend.concat(_compute_values, losses, factor)
        return _UpperBoundColumns(columns[:, 0], columns[:, 1] > 0.0, columns[:, 2])


class _UpperBoundColumns(NamedTuple):
    """The values of a bound by query, whether each is exact, and its derivative by the factor of the scores."""

    values: Floats
    exact: NDArray[np.bool_]
    rises: Floats


class _PreparedBoundPart(NamedTuple):
    """A bound prepared for a shard of the queries, with the scores of their documents."""

    losses: PreparedBound
    scores: Floats


def scatter_scores(queries: Queries, scores: Floats, backend: Backend) -> Shards[ScoredQueries]:
    """Return queries with their scores, cut into the shards that a backend works on."""
    shards = backend.scatter(queries)
    ends = np.cumsum(backend.gather(attrgetter("n_docs"), shards))
    return backend.apply(_join_scores, shards, backend.distribute(np.split(scores, ends[:-1])))


def _join_scores(queries: Queries, scores: Floats) -> ScoredQueries:
    """Return queries together with their scores, shifted so that the highest of each query is 0."""
    return ScoredQueries(queries, center_scores(scores, queries))


def name_bound(bound: UpperBound) -> str:
    """Return a bound's name, which tells it from the other bounds on the same measure."""
    if not isinstance(bound, TypeTwo):
        return bound.label
    by_grade = ", perfect by grade" if bound.perfect == "grades" else ""
    return f"{bound.label}{by_grade}{', Phi of ranks' if bound.phi == 'ranks' else ''}"


def _prepare_part(part: ScoredQueries, bound: UpperBound) -> _PreparedBoundPart:
    """Return a bound prepared for a shard of scored queries."""
    return _PreparedBoundPart(bound.prepare(part.queries), part.scores)


def _find_live(bound: _PreparedBoundPart) -> NDArray[np.bool_]:
    """Return a flag per query: whether some of its rankings are better than others."""
    live = np.zeros(len(bound.losses.sizes), dtype=bool)
    live[bound.losses.rankings.live] = True
    return live


def _compute_values(bound: _PreparedBoundPart, factor: float) -> Floats:
    """Return a row per query, with scores times ``factor``: the bound, whether it is exact, and its derivative."""
    losses = bound.losses
    found = losses.at(bound.scores * factor)
    rises = np.add.reduceat(found.gradient * bound.scores, losses.rankings.indptr[:-1])
    by_query = np.divide(rises, losses.weight, out=np.zeros(len(rises)), where=losses.weight > 0)
    return np.stack([found.values, found.exact, by_query], axis=1)
