"""The interface of measures, and the values of several measures from one sort."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Queries
from rankwright.kernels.measures.measure_values import MeasureArrays, sum_weighted
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.measures.jumps import Jumps, ScoreLines
from rankwright.runtime.backends import Backend, count_shards, resolve


class Measure(ABC):
    """A measure of a ranked list, such as ndcg@10: an immutable value whose text says exactly what is computed."""

    __slots__ = ()

    has_arrays: ClassVar[bool]  # whether it takes the form of MeasureArrays, so that kernels can compute it

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedMeasure:
        """Compute once everything that depends on the judged documents only: gains, ideals, discounts."""

    @abstractmethod
    def for_training(self) -> Measure:
        """Return the same measure with ties broken pessimistically, whatever the dialect does in evaluation."""

    @abstractmethod
    def for_weak_rankers(self) -> Measure:
        """Return the same measure for evaluating a weak ranker, whose ties other weak rankers will break.

        It is the mean over all orders of tied documents, which no order of the rows can change: pessimism would
        punish a feature for ties that the combination does not have.
        """

    @abstractmethod
    def for_upper_bounds(self) -> Measure:
        """Return the same measure for training on upper bounds: pessimistic ties, and a discount that strictly falls.

        If two ranks count the same, as the first two do under LETOR's discount, a bound sees no loss in their order.
        """

    @property
    @abstractmethod
    def is_normalised(self) -> bool:
        """Whether the values lie between 0 and 1."""

    @property
    @abstractmethod
    def family(self) -> str:
        """The kind of formula: "additive" (discounted gains), "ap" (precisions), "cascade", or "custom"."""

    @property
    @abstractmethod
    def cut_off(self) -> int | None:
        """The number of ranks that count; None if all do."""

    @abstractmethod
    def truncate(self, k: int) -> Measure:
        """Return the same measure with a cut-off of at most ``k``."""

    @abstractmethod
    def with_cut_off(self, k: int | None) -> Measure:
        """Return the same measure of the first ``k`` ranks, be they more or fewer than now; of all for None.

        A measure whose discount is constant up to its cut-off (precision, recall) stays as it is.
        """

    def label(self, queries: Queries) -> Queries:
        """Return the queries with the grades that training on this measure sees: their own, or some made of clicks."""
        return queries

    @property
    def is_from_clicks(self) -> bool:
        """Whether the relevance of documents is estimated from clicks."""
        return False

    @property
    def min_relevant_grade(self) -> float:
        """The lowest grade that counts as relevant, for binary relevance."""
        return 1.0

    @property
    def gain_kind(self) -> str:
        """The gain of NDCG under this measure's rules: "exp", "linear" or "pow2"."""
        return "exp"

    @property
    def skips_empty(self) -> bool:
        """Whether queries without a relevant document are left out."""
        return False

    def with_max_grade(self, max_grade: float) -> Measure:
        """Return the same measure with options that depend on all data (``max=data``) set by the highest grade."""
        return self

    def values(self, queries: Queries, scores: Floats, backend: Backend | None = None) -> Floats:
        """Return the measure of each query when its documents are ranked by descending score, one per row."""
        return self.prepare(queries.grouped()).values(queries.group_scores(scores), backend)

    def mean(self, queries: Queries, scores: Floats, backend: Backend | None = None) -> float:
        """Return the weighted mean of the measure over the queries."""
        return weighted_mean(self.values(queries, scores, backend), queries.query_weight)


class PreparedMeasure(ABC):
    """A measure prepared for one set of queries: with everything that depends on their grades only."""

    __slots__ = ()

    indptr: Ints  # the offsets of the queries
    arrays: MeasureArrays  # the form for kernels, of measures that have one (``Measure.has_arrays``)
    ties: str  # the rule for equal scores; measures of one rule share a sort
    tie_keys: Floats  # of documents with equal scores, the one with the lower key comes first

    @property
    @abstractmethod
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each query has a value; the others are NaN under every ranking."""

    @abstractmethod
    def fill_values(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``; ``order`` holds their ranked rows."""

    @property
    @abstractmethod
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether each query has the same value under every ranking, because none of its documents is relevant."""

    @property
    @abstractmethod
    def max_value(self) -> float:
        """An upper bound on the value of every query."""

    @abstractmethod
    def find_jumps(self, lines: ScoreLines) -> Jumps:
        """Return all jumps along lines whose ties are broken pessimistically."""

    def compute_click_variances(self, scores: Floats) -> Floats | None:
        """Return the variance of each query's value by the clicks alone; None if no clicks are in it."""
        return None

    @abstractmethod
    def slice(self, start: int, stop: int) -> PreparedMeasure:
        """Return the prepared measure of the adjacent queries ``start`` to ``stop`` alone."""

    @abstractmethod
    def compute_swap_deltas(self, scores: Floats, query: int) -> Floats:
        """Return the change of the measure if documents i and j of a query swapped ranks, for all i and j."""

    def values(self, scores: Floats, backend: Backend | None = None) -> Floats:
        """Return the measure of each query when its documents are ranked by descending score."""
        values: Floats = compute_values([self], scores, backend)[0]
        return values

    def rank_and_sum(self, scores: Floats, order: Ints, weight: Floats) -> float:
        """Rank all documents, ``order`` in place, and return the weighted sum of the values; NaN may have no weight."""
        keys, values = self.sort_keys(scores), np.empty(len(weight))
        sort_rows(keys, self.tie_keys, self.indptr, 0, len(values), order)
        self.fill_values(keys, order, 0, len(values), values)
        return sum_weighted(values, weight)

    def rank(self, scores: Floats, query: int) -> Ints:
        """Return the rows of a query, counted from its first, in ranked order."""
        if not 0 <= query < len(self.indptr) - 1:
            raise InputError(f"query {query}; there are {len(self.indptr) - 1}, counted from 0")
        self.check_scores(scores)
        rows = slice(int(self.indptr[query]), int(self.indptr[query + 1]))
        keys = self.sort_keys(scores[rows])
        order = np.arange(len(keys))
        sort_rows(keys, self.tie_keys[rows], np.array([0, len(keys)]), 0, 1, order)
        return order

    def check_scores(self, scores: Floats) -> None:
        """Raise an error unless scores are one number per document."""
        if np.shape(scores) != (self.indptr[-1],):
            raise InputError(f"scores have shape {np.shape(scores)}; there are {self.indptr[-1]} documents")
        if np.isnan(scores).any():
            raise InputError(f"score {int(np.argmax(np.isnan(scores)))} is NaN; expected numbers")

    def sort_keys(self, scores: Floats) -> Floats:
        """Return the sort keys: the scores, rounded to float32 where ties follow trec_eval, which reads them so."""
        keys = np.asarray(scores, dtype=np.float64)
        if self.ties != "docid":
            return keys
        with np.errstate(over="ignore"):  # scores beyond float32 are infinite, and tie, in trec_eval, too
            return keys.astype(np.float32).astype(np.float64)


def compute_values(prepared: Sequence[PreparedMeasure], scores: Floats, backend: Backend | None = None) -> Floats:
    """Return the values of several prepared measures for given scores: a row for each measure, by query.

    Documents are sorted once per tie rule.
    """
    prepared[0].check_scores(scores)
    out = np.empty((len(prepared), len(prepared[0].indptr) - 1))
    for ties in dict.fromkeys(each.ties for each in prepared):
        members = [i for i, each in enumerate(prepared) if each.ties == ties]
        _fill_values_of_measures([prepared[i] for i in members], scores, resolve(backend), [out[i] for i in members])
    return out


def _fill_values_of_measures(
    prepared: list[PreparedMeasure], scores: Floats, backend: Backend, rows: list[Floats]
) -> None:
    """Write the values by query of measures with the same tie rule, each to its row, from one sort."""
    indptr, tie, keys = prepared[0].indptr, prepared[0].tie_keys, prepared[0].sort_keys(scores)
    order = np.arange(len(keys))

    def work(part: tuple[int, int]) -> None:
        sort_rows(keys, tie, indptr, *part, order)
        for each, out in zip(prepared, rows, strict=True):
            each.fill_values(keys, order, *part, out)

    backend.each(work, query_ranges(indptr, count_shards(len(keys))))


def compute_retrieved_values(
    measures: Sequence[Measure], queries: Queries, scores: Floats, backend: Backend | None
) -> Floats:
    """Return the values of measures, a row each, by query, if documents with a score of NaN are not ranked.

    Documents that are not ranked count in the ideal only. A query without a ranking has the value 0. Rows are grouped.
    """
    first, found = queries.indptr[:-1], ~np.isnan(scores)
    unranked = ~np.logical_or.reduceat(found, first)
    found[first[unranked]] = True  # a query must have a document
    if not found.all() and any(measure.is_from_clicks for measure in measures):
        raise InputError(f"{int((~found).sum())} documents have no score; measures from clicks need one for each")
    part = queries.keep_retrieved(found)
    prepared = [measure.prepare(part) for measure in measures]
    values = compute_values(prepared, np.nan_to_num(scores[found]), backend)
    for each, row in zip(prepared, values, strict=True):
        row[unranked & each.is_counted & ~each.is_constant] = 0.0
    return values


def check_counted(measure: Measure, queries: Queries, what: str) -> None:
    """Raise InputError if a measure skips every query of positive weight, for none has a relevant document."""
    if measure.skips_empty and not (measure.prepare(queries.grouped()).is_counted & (queries.query_weight > 0)).any():
        raise InputError(f"{measure} skips every {what} query: none of any weight has a relevant document")


def weighted_mean(values: Floats, weight: Floats) -> float:
    """Return the weighted mean of a measure's values; queries whose value is NaN (skipped) do not count.

    >>> weighted_mean(np.array([0.5, np.nan, 1.0]), np.array([1.0, 1.0, 3.0]))
    0.875
    """
    counted = ~np.isnan(values)
    total = float(weight[counted].sum())
    return float((values[counted] * weight[counted]).sum() / total) if total > 0 else float("nan")
