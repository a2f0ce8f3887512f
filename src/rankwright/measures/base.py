"""What a measure is, and how the values of several are computed together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries, query_ranges
from rankwright.kernels.measures.measure_values import weighted_total
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.runtime.backends import Backend, n_shards, resolve


class Measure(ABC):
    """A measure of a ranked list: an immutable value whose text says exactly what is computed."""

    __slots__ = ()

    @abstractmethod
    def prepare(self, queries: Queries) -> PreparedMeasure:
        """Compute once what depends on the judged documents only: gains, ideals, discounts."""

    @abstractmethod
    def for_training(self) -> Measure:
        """The same measure with ties broken pessimistically, whatever the dialect does in evaluation."""

    @abstractmethod
    def for_weak(self) -> Measure:
        """The same measure for judging a weak ranker, whose ties other weak rankers will break.

        It is the mean over all orders of tied documents, which no order of the rows can change: pessimism would
        punish a feature for ties that the combination does not have.
        """

    @abstractmethod
    def for_bounds(self) -> Measure:
        """The same measure for training on bounds: pessimistic about ties, and with discounts that tell ranks apart.

        Where two ranks count the same, as the first two do under LETOR's discount, a bound sees no loss in their order.
        """

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether the values lie between 0 and 1."""

    @property
    @abstractmethod
    def family(self) -> str:
        """What it is made of: "additive" (discounted gains), "ap" (precisions), "cascade", or "custom"."""

    @property
    @abstractmethod
    def cut_off(self) -> int | None:
        """How many ranks count; None if all do."""

    @abstractmethod
    def truncated(self, k: int) -> Measure:
        """The same measure of the first ``k`` ranks alone."""

    @abstractmethod
    def cut_at(self, k: int | None) -> Measure:
        """The same measure of the first ``k`` ranks, be they more or fewer than now; of all for None.

        A measure that tells ranks apart by its cut-off alone (precision, recall) stays as it is.
        """

    @property
    def relevant_from(self) -> float:
        """The lowest grade that counts as relevant, where that is a yes or no."""
        return 1.0

    @property
    def gains(self) -> str:
        """What a grade is worth to NDCG under this measure's rules."""
        return "exp"

    @property
    def skips(self) -> bool:
        """Whether queries without a relevant document are left out."""
        return False

    def with_max_grade(self, max_grade: float) -> Measure:
        """The same measure for data in parts: what it takes from the data as a whole is the highest grade."""
        return self

    def values(self, queries: Queries, scores: Floats, backend: Backend | None = None) -> Floats:
        """Return the measure of each query when its documents are ranked by descending score, one per row."""
        return self.prepare(queries.grouped()).values(queries.group_scores(scores), backend)

    def mean(self, queries: Queries, scores: Floats, backend: Backend | None = None) -> float:
        """The weighted mean of the measure over the queries."""
        return weighted_mean(self.values(queries, scores, backend), queries.query_weight)


class Lines(NamedTuple):
    """Scores that move along lines: at t a document's score is ``scores + X[:, column] * t``."""

    scores: Floats  # at t = 0
    order: Ints  # the rows in ranked order at t = 0
    X: Floats
    column: int
    worth: Floats  # per query: what a value of 1 is in fixed point
    low: float  # the range of t, which holds 0
    high: float
    unit: float  # of t, where a bucket in the middle begins

    @property
    def slopes(self) -> Floats:
        """The column along which scores move."""
        return self.X[:, self.column].astype(np.float64)


class Tally(NamedTuple):
    """What is known of jumps without sorting them; the tallies of parts add up."""

    at_zero: int  # the sum of all queries at t = 0, up to a constant
    at_low: int  # and at the low end of the range
    sums: Ints  # of the changes in each bucket of t, from the left; see ``kernels/jumps.py``
    gains: Floats  # of the positive ones alone

    def __add__(self, other: Any) -> Tally:
        return Tally(*(own + its for own, its in zip(self, other, strict=True)))


class LongList(Protocol):
    """The jumps of a list that is too long for all of them to be kept; they are found again when they are wanted."""

    def pick(self, wanted: Ints) -> Ints:
        """Return the jumps of the buckets where ``wanted`` is not 0, as ``kernels.jumps.pick_jumps`` does."""
        ...


class Jumps(NamedTuple):
    """Where the measures of queries change along lines, in any order, and by how much as t increases: whole numbers."""

    times: Floats
    deltas: Ints
    tally: Tally  # of all, those of long lists included
    long_lists: tuple[LongList, ...] = ()


N_BUCKETS = 4096


class MeasureArrays(NamedTuple):
    """What kernels need of a bound measure; ``kernels/measures.py`` has the formula."""

    gain: Floats  # per document
    discount: Floats  # per rank; zero beyond its end
    scale: Floats  # per query
    base: Floats  # per query
    u: float
    v: float


class PreparedMeasure(ABC):
    """A measure with everything that the labels of one set of queries determine."""

    __slots__ = ()

    indptr: Ints
    ties: str  # the rule for equal scores; measures of one rule share a sort
    tie_keys: Floats  # of documents with equal scores, the one with the lower key comes first
    arrays: MeasureArrays | None  # None if only Python can compute the measure

    @property
    @abstractmethod
    def counted(self) -> NDArray[np.bool_]:
        """Which queries have a value; the others are NaN, whatever ranks them."""

    @abstractmethod
    def fill(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``; ``order`` holds their ranked rows."""

    @property
    @abstractmethod
    def fixed(self) -> NDArray[np.bool_]:
        """Which queries have one value whatever ranks them, because nothing in them is relevant."""

    @property
    @abstractmethod
    def highest(self) -> float:
        """No query's value is above this."""

    @abstractmethod
    def jumps(self, lines: Lines) -> Jumps:
        """All jumps along lines whose ties are broken pessimistically."""

    @abstractmethod
    def part(self, start: int, stop: int) -> PreparedMeasure:
        """The measure of the adjacent queries ``start`` to ``stop`` alone."""

    @abstractmethod
    def swap_deltas(self, scores: Floats, query: int) -> Floats:
        """The change of the measure if documents i and j of a query exchanged their ranks, for all i and j."""

    def values(self, scores: Floats, backend: Backend | None = None) -> Floats:
        """The measure of each query when its documents are ranked by descending score."""
        values: Floats = compute_values([self], scores, backend)[0]
        return values

    def total(self, scores: Floats, order: Ints, weight: Floats) -> float:
        """Rank all documents, ``order`` in place, and return the weighted sum of the values; NaN may have no weight."""
        keys, values = self.sort_keys(scores), np.empty(len(weight))
        sort_rows(keys, self.tie_keys, self.indptr, 0, len(values), order)
        self.fill(keys, order, 0, len(values), values)
        return weighted_total(values, weight)

    def rank(self, scores: Floats, query: int) -> Ints:
        """The rows of a query, counted from its first, in ranked order."""
        if not 0 <= query < len(self.indptr) - 1:
            raise InputError(f"query {query}; there are {len(self.indptr) - 1}, counted from 0")
        self.check_scores(scores)
        rows = slice(int(self.indptr[query]), int(self.indptr[query + 1]))
        keys = self.sort_keys(scores[rows])
        order = np.arange(len(keys))
        sort_rows(keys, self.tie_keys[rows], np.array([0, len(keys)]), 0, 1, order)
        return order

    def check_scores(self, scores: Floats) -> None:
        """Refuse scores that are not one number per document."""
        if np.shape(scores) != (self.indptr[-1],):
            raise InputError(f"scores have shape {np.shape(scores)}; there are {self.indptr[-1]} documents")
        if np.isnan(scores).any():
            raise InputError(f"score {int(np.argmax(np.isnan(scores)))} is NaN; expected numbers")

    def sort_keys(self, scores: Floats) -> Floats:
        """What is sorted: the scores, rounded to float32 where ties follow trec_eval, which reads them so."""
        keys = np.asarray(scores, dtype=np.float64)
        if self.ties != "docid":
            return keys
        with np.errstate(over="ignore"):  # scores beyond float32 are infinite, and tie, in trec_eval, too
            return keys.astype(np.float32).astype(np.float64)


def compute_values(bounds: Sequence[PreparedMeasure], scores: Floats, backend: Backend | None = None) -> Floats:
    """The values of several measures of the same queries, a row each; documents are sorted once per tie rule."""
    bounds[0].check_scores(scores)
    out = np.empty((len(bounds), len(bounds[0].indptr) - 1))
    for ties in dict.fromkeys(bound.ties for bound in bounds):
        members = [i for i, bound in enumerate(bounds) if bound.ties == ties]
        _fill_rows([bounds[i] for i in members], scores, resolve(backend), [out[i] for i in members])
    return out


def _fill_rows(bounds: list[PreparedMeasure], scores: Floats, backend: Backend, rows: list[Floats]) -> None:
    indptr, tie, keys = bounds[0].indptr, bounds[0].tie_keys, bounds[0].sort_keys(scores)
    order = np.arange(len(keys))

    def work(part: tuple[int, int]) -> None:
        sort_rows(keys, tie, indptr, *part, order)
        for bound, out in zip(bounds, rows, strict=True):
            bound.fill(keys, order, *part, out)

    backend.each(work, query_ranges(indptr, n_shards(len(keys))))


def compute_retrieved_values(
    measures: Sequence[Measure], queries: Queries, scores: Floats, backend: Backend | None
) -> Floats:
    """Return the values of measures, a row each, of a ranking of some documents; a score of NaN is not ranked.

    What is not ranked counts in the ideal only. A query without a ranking has the value 0. Rows must be grouped.
    """
    first, found = queries.indptr[:-1], ~np.isnan(scores)
    silent = ~np.logical_or.reduceat(found, first)
    found[first[silent]] = True  # a query must have a document
    part = queries.keep_retrieved(found)
    bounds = [measure.prepare(part) for measure in measures]
    values = compute_values(bounds, np.nan_to_num(scores[found]), backend)
    for bound, row in zip(bounds, values, strict=True):
        row[silent & bound.counted & ~bound.fixed] = 0.0
    return values


def check_counted(measure: Measure, queries: Queries, what: str) -> None:
    """Refuse queries of which none counts under a measure."""
    if measure.skips and not (measure.prepare(queries.grouped()).counted & (queries.query_weight > 0)).any():
        raise InputError(f"{measure} skips every {what} query: none of any weight has a relevant document")


def weighted_mean(values: Floats, weight: Floats) -> float:
    """The weighted mean; a query whose value is NaN (a skipped one) does not count.

    >>> weighted_mean(np.array([0.5, np.nan, 1.0]), np.array([1.0, 1.0, 3.0]))
    0.875
    """
    counted = ~np.isnan(values)
    total = float(weight[counted].sum())
    return float((values[counted] * weight[counted]).sum() / total) if total > 0 else float("nan")
