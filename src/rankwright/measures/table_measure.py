"""Table measures: a gain per document, a discount per rank, a norm per query; kernels compute what they need."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import GEOMETRIC, DiscountFunction
from rankwright.kernels.measures.jump_sweep import MAX_TOP_DEPTH, sweep_queries
from rankwright.kernels.measures.measure_values import (
    MeasureArrays,
    compute_averaged_values,
    compute_ideal_values,
    compute_ranked_values,
    compute_swap_deltas,
    rank_and_sum,
)
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.measures.base import Measure, PreparedMeasure
from rankwright.measures.click_errors import average_tied, compute_click_variances, spread_discounts
from rankwright.measures.click_options import CLICK_DEFAULTS, check_click_options
from rankwright.measures.click_relevance import ClickRelevance, estimate_relevance
from rankwright.measures.definitions import (
    DEFINITIONS,
    MAX_GRADE,
    Definition,
    check_cut_off,
    check_option,
    resolve_dialect,
    tabulate_discounts,
)
from rankwright.measures.dialects import DIALECTS
from rankwright.measures.jumps import MAX_PAIRS, N_BUCKETS, Jumps, JumpTotals, LongSweep, ScoreLines

_HIGHEST_EXPONENT = 60


@dataclass(frozen=True, slots=True)
class TableMeasure(Measure):
    """A built-in measure, such as NDCG or AP: a name of ``DEFINITIONS`` with a cut-off and options.

    Parameters
    ----------
    name : str
        A key of ``DEFINITIONS``.
    k : int, optional
        The cut-off; None means the full list.
    dialect : str, optional
        The tool whose rules set the options below that are not given.
    gain : "exp" (2^l - 1), "linear" (l) or "pow2" (2^l)
    discount : "log2" (1 / log2(1 + rank)) or "letor" (1, 1, 1/log2(3), 1/log2(4), ...)
    rel : float
        The lowest grade that counts as relevant, for binary measures.
    empty : "0", "1" or "skip"
        The value of a query without a relevant document; skip leaves it out of means.
    short : "pad", "list" or "zero"
        A list shorter than k: padded with irrelevant documents, taken with k = its length, or counted 0.
    norm : "all" or "min"
        AP divides by the number R of relevant documents, or by min(R, k).
    ties : "pessimistic", "file", "reverse", "docid" or "average"
        The document that comes first among equal scores: the one with the lower grade, the earlier row, the later
        row, the larger document id; or the mean over all orders.
    max : int or "data"
        The highest grade of ERR's (2^l - 1) / 2^max.
    p : float
        The persistence of RBP.
    clicks : "none", "naive", "ips", "snips" or "coec"
        How the relevance of documents is estimated from clicks, in place of grades (``docs/click-measures.md``).
    clip : float
        The largest weight of a click, 1 / examination, for ``ips`` and ``snips``.
    floor : float
        The least that NDCG from clicks divides by.
    """

    has_arrays: ClassVar[bool] = True

    name: str
    k: int | None = None
    dialect: str | None = None
    gain: str = "exp"
    discount: str = "log2"
    rel: float = 1.0
    empty: str = "0"
    short: str = "pad"
    norm: str = "all"
    ties: str = "pessimistic"
    max: int | str = 4
    p: float = 0.8
    clicks: str = "none"
    clip: float = math.inf
    floor: float = 0.0

    @classmethod
    def of(cls, name: str, k: int | None = None, **options: object) -> Self:
        """Build a measure and check its options: Python values, or the text of a measure's name."""
        k = check_cut_off(name, k)
        dialect = options.pop("dialect", None)
        known = DEFINITIONS[name].options + DEFINITIONS[name].click_options
        if options.keys() & {"clicks", "clip", "floor"}:
            options = check_click_options(name, dialect, {o: check_option(o, v) for o, v in options.items()}) | options
        for option in options:
            if option not in known:
                raise InputError(f"{name} has no option {quote(option)}; it has {', '.join((*known, 'dialect'))}")
        chosen: dict[str, Any] = {}
        if dialect is not None:
            k, chosen = resolve_dialect(str(dialect), name, k)
            chosen["dialect"] = str(dialect)
        return cls(name, k, **chosen | {option: check_option(option, value) for option, value in options.items()})

    def __str__(self) -> str:
        definition = DEFINITIONS[self.name]
        defaults: dict[str, Any] = {f.name: f.default for f in fields(self)}
        if self.is_from_clicks:
            defaults |= CLICK_DEFAULTS
        parts = []
        if self.dialect is not None:
            defaults |= resolve_dialect(self.dialect, self.name, self.k)[1]
            parts = [f"dialect={self.dialect}"]
        for option in definition.options + definition.click_options:
            value = getattr(self, option)
            if value != defaults[option]:
                parts.append(f"{option}={str(value).removesuffix('.0')}")
        head = definition.full_name or self.name if self.k is None else f"{self.name}@{self.k}"
        return head + (f"({','.join(parts)})" if parts else "")

    __repr__ = __str__

    def for_training(self) -> TableMeasure:
        """Return the same measure with ties broken pessimistically."""
        return replace(self, ties="pessimistic")

    def for_weak_rankers(self) -> TableMeasure:
        """Return the same measure averaged over the orders of tied documents."""
        return replace(self, ties="average")

    def for_upper_bounds(self) -> TableMeasure:
        """Return the measure with ties broken pessimistically, and 1 / log2(1 + rank) in place of LETOR's discount."""
        return replace(self, ties="pessimistic", discount="log2" if self.discount == "letor" else self.discount)

    @property
    def is_from_clicks(self) -> bool:
        """Whether the relevance of documents is estimated from clicks."""
        return self.clicks != "none"

    @property
    def _definition(self) -> Definition:
        """The entry of ``DEFINITIONS``."""
        return DEFINITIONS[self.name]

    @property
    def is_normalised(self) -> bool:
        """Whether the values lie between 0 and 1."""
        return self._definition.is_normalised and (not self.is_from_clicks or self.name in ("ndcg", "recall"))

    @property
    def family(self) -> str:
        """The kind of recurrence: "additive", "ap" or "cascade"."""
        definition = self._definition
        return "ap" if definition.u != 0.0 else "cascade" if definition.v != 0.0 else "additive"

    @property
    def cut_off(self) -> int | None:
        """The number of ranks that count; None if all do."""
        return self.k if self._definition.takes_cut_off else 1

    @property
    def discount_function(self) -> DiscountFunction:
        """The discount of every rank, whole or not."""
        return self._definition.discount_function(self)

    def truncate(self, k: int) -> TableMeasure:
        """Return the measure with a cut-off of at most ``k``."""
        deeper = self.cut_off is None or self.cut_off > k
        return replace(self, k=k) if deeper else self

    def with_cut_off(self, k: int | None) -> TableMeasure:
        """Return the measure with this cut-off unless its discount is constant; short lists are padded, not 0."""
        function = self.discount_function
        if function.kind == GEOMETRIC and function.a == 1.0:
            return self
        return replace(self, k=k, short="pad" if self.short == "zero" else self.short)

    @property
    def min_relevant_grade(self) -> float:
        """The lowest grade that counts as relevant, for binary relevance."""
        return self.rel

    @property
    def gain_kind(self) -> str:
        """The gain of NDCG under this measure's rules."""
        return self.gain

    @property
    def skips_empty(self) -> bool:
        """Whether queries without a relevant document are left out."""
        return self.empty == "skip"

    def with_max_grade(self, max_grade: float) -> TableMeasure:
        """Return the measure with ``max=data`` replaced by this grade, the same for every part of the data."""
        if self.max != "data":
            return self
        return replace(self, max=min(max(math.ceil(max_grade), 1), MAX_GRADE))  # prepare refuses higher grades

    def prepare(self, queries: Queries) -> PreparedTableMeasure:
        """Compute gains, discounts and norms for these queries.

        Documents that no run retrieved count in norms, and in whether a query has a relevant document.
        """
        if self.is_from_clicks:
            return self._prepare_from_clicks(queries)
        judged, is_row = queries.with_unretrieved()
        self._check_grades(judged.y)
        return self.with_max_grade(float(judged.y.max()))._prepare(queries, judged, is_row)

    def label(self, queries: Queries) -> Queries:
        """Return the queries with the relevance that is estimated from clicks in place of their grades."""
        if not self.is_from_clicks:
            return queries
        grouped = queries.grouped()
        relevance = estimate_relevance(grouped, self.clicks, self.clip, str(self)).compute_relevance(grouped)
        return queries.replace(y=queries.restore(relevance), unretrieved=None)

    def _prepare_from_clicks(self, queries: Queries) -> PreparedTableMeasure:
        """Compute gains, discounts and norms by the estimated relevance."""
        estimate = estimate_relevance(queries, self.clicks, self.clip, str(self))
        labelled = queries.replace(y=estimate.compute_relevance(queries), unretrieved=None)
        prepared = self._prepare(labelled, labelled, None)
        return replace(prepared, estimate=estimate, norm_slope=self._find_norm_slope(prepared.arrays))

    def _find_norm_slope(self, arrays: MeasureArrays) -> Floats | None:
        """Return the derivative of each query's norm by the gain of each document; None where it is constant."""
        if self.name == "recall":
            return np.ones(len(arrays.gain))
        if self.name != "ndcg":
            return None
        query = np.repeat(np.arange(len(arrays.indptr) - 1), np.diff(arrays.indptr))
        ideal = spread_discounts(np.lexsort((-arrays.gain, query)), arrays)
        has_floor = arrays.scale * self.floor > 1.0 - 1e-12  # the norm is the floor
        return np.where(has_floor[query], 0.0, ideal)

    def _prepare(self, queries: Queries, judged: Queries, is_row: NDArray[np.bool_] | None) -> PreparedTableMeasure:
        definition, n = self._definition, len(queries)
        gain = definition.gains(self, judged)
        discount = tabulate_discounts(self.discount_function, int(judged.sizes.max()))
        arrays = MeasureArrays(judged.indptr, gain, discount, np.ones(n), np.zeros(n), definition.u, definition.v)
        is_binary = "rel" in definition.options and not self.is_from_clicks
        relevant = judged.y >= self.rel if is_binary else judged.y > 0
        has_relevant = np.logical_or.reduceat(relevant, judged.indptr[:-1])
        norm = definition.norm(self, arrays, queries.sizes)
        has_relevant &= norm > 1e-300  # grades so small that their gains vanish count as irrelevant
        scale = np.divide(1.0, norm, out=np.zeros(n), where=has_relevant)
        base = np.where(has_relevant, 0.0, {"0": 0.0, "1": 1.0, "skip": np.nan}[self.empty])
        if self.k is not None and self.short == "zero":
            scale[queries.sizes < self.k] = 0.0
        if is_row is not None:
            gain = gain[is_row]
            scale[np.maximum.reduceat(gain, queries.indptr[:-1]) <= 0.0] = 0.0  # no relevant document can be ranked
        arrays = arrays._replace(indptr=queries.indptr, gain=gain, scale=scale, base=base)
        return PreparedTableMeasure(queries.indptr, arrays, self.ties, _make_tie_keys(self.ties, queries))

    def _check_grades(self, y: Floats) -> None:
        if y.min() < 0:
            raise InputError(
                f"{self}: grade {y.min():g} found; grades start at 0: write 0 for irrelevant documents, and leave "
                "unjudged ones out"
            )
        max_grade = y.max()
        dialect = None if self.dialect is None else DIALECTS[self.dialect]
        if dialect is not None and dialect.integers_only and (y != np.floor(y)).any():
            wrong = y[np.argmax(y != np.floor(y))]
            raise InputError(f"{self}: grade {wrong:g} found; {self.dialect} takes integer grades only")
        if dialect is not None and dialect.max_grade is not None and max_grade > dialect.max_grade:
            raise InputError(f"{self}: grade {max_grade:g} found; {self.dialect} has grades up to {dialect.max_grade}")
        definition = self._definition
        chosen = "gain" in definition.options and self.gain != "linear"
        if (chosen or definition.has_power_gains) and max_grade > _HIGHEST_EXPONENT:
            raise InputError(f"{self}: grade {max_grade:g} is too high for 2^l{'; use gain=linear' if chosen else ''}")
        if self.name == "err" and self.max != "data" and max_grade > int(self.max):
            raise InputError(f"{self}: grade {max_grade:g} found; say err(max={math.ceil(max_grade)}) or err(max=data)")


def _make_tie_keys(ties: str, queries: Queries) -> Floats:
    """Return for each document the key by which documents with equal scores are sorted, ascending."""
    if ties == "pessimistic":
        return queries.y
    if ties == "docid":
        return -queries.docid_ranks.astype(np.float64)
    rows = np.arange(queries.n_docs, dtype=np.float64)
    return -rows if ties == "reverse" else rows


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTableMeasure(PreparedMeasure):
    """A built-in measure prepared for one set of queries, as the arrays that kernels take."""

    indptr: Ints
    arrays: MeasureArrays
    ties: str
    tie_keys: Floats
    estimate: ClickRelevance | None = None  # where the gains are estimated from clicks
    norm_slope: Floats | None = None

    @property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each query is not skipped."""
        return ~np.isnan(self.arrays.base)

    def fill_values(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        if self.ties == "average":
            compute_averaged_values(self.arrays, order, scores, start, stop, out)
        else:
            compute_ranked_values(self.arrays, order, start, stop, out)

    def compute_click_variances(self, scores: Floats) -> Floats | None:
        """Return the variance of each query's value by the clicks alone; None if no clicks are in it."""
        if self.estimate is None:
            return None
        keys, order = self.sort_keys(scores), np.arange(len(scores))
        sort_rows(keys, self.tie_keys, self.indptr, 0, len(self.indptr) - 1, order)
        discounts = spread_discounts(order, self.arrays)
        if self.ties == "average":
            discounts = average_tied(discounts, keys, self.indptr)
        return compute_click_variances(self.arrays, discounts, self.norm_slope, self.estimate)

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether each query has no relevant document."""
        constant: NDArray[np.bool_] = self.arrays.scale == 0.0
        return constant

    @property
    def max_value(self) -> float:
        """The upper bound 1, or for sums that are not normalised the best query's ideal."""
        ideal = np.nan_to_num(self.arrays.base) + self.arrays.scale * compute_ideal_values(self.arrays)
        return max(1.0, float(ideal.max()))

    def find_jumps(self, lines: ScoreLines) -> Jumps:
        """Return all jumps, from the kernel that serves every family."""
        arrays = self.arrays._replace(scale=self.arrays.scale * lines.value_scale)
        moving = lines.order, lines.scores, lines.slopes, lines.low, lines.high, *_find_ways_to_sweep(arrays)
        times, deltas, at_zero, at_low, sums, gains, left_out = sweep_queries(
            arrays, *moving, MAX_TOP_DEPTH, 1.0 / lines.unit, N_BUCKETS, MAX_PAIRS
        )
        sweeps = []
        for query in left_out.tolist():
            own, own_arrays = lines.slice(query, self.indptr), slice_arrays(arrays, query, query + 1)
            for sign in (sign for sign, limit in ((1.0, lines.high), (-1.0, -lines.low)) if limit > 0.0):
                sweep = LongSweep.of(own, own_arrays, sign, sums, gains)
                at_low += sweep.change if sign < 0.0 else 0
                sweeps.append(sweep)
        return Jumps(times, deltas, JumpTotals(at_zero, at_low, sums, gains), tuple(sweeps))

    def rank_and_sum(self, scores: Floats, order: Ints, weight: Floats) -> float:
        """Rank all documents and return the weighted sum, in one call: threads do not wait for each other's Python."""
        if self.ties == "average":
            return super(PreparedTableMeasure, self).rank_and_sum(scores, order, weight)
        return rank_and_sum(self.arrays, self.sort_keys(scores), self.tie_keys, order, weight)

    def slice(self, start: int, stop: int) -> PreparedTableMeasure:
        """Return the prepared measure of these queries, sharing memory."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        arrays = slice_arrays(self.arrays, start, stop)
        return PreparedTableMeasure(arrays.indptr, arrays, self.ties, self.tie_keys[rows])

    def compute_swap_deltas(self, scores: Floats, query: int) -> Floats:
        """Return the change of the measure if documents i and j of a query swapped ranks, for all i and j."""
        order, a = self.rank(scores, query), self.arrays
        by_rank = compute_swap_deltas(a.gain[self.indptr[query] + order], a.discount, a.u, a.v)
        deltas = np.empty_like(by_rank)
        deltas[np.ix_(order, order)] = by_rank * a.scale[query]
        return deltas


def _find_ways_to_sweep(arrays: MeasureArrays) -> tuple[bool | None, bool | None]:
    """Return whether ``sweep_queries`` sweeps some queries by their first ranks, and some by their gains; None if not.

    What is None is not compiled.
    """
    if len(arrays.discount) <= MAX_TOP_DEPTH:
        return True, None
    sizes = np.diff(arrays.indptr)
    depths = np.minimum(sizes, len(arrays.discount))
    is_top = (depths <= MAX_TOP_DEPTH) | ((MAX_TOP_DEPTH > 0) & (8 * depths <= sizes))
    return bool(is_top.any()) or None, not is_top.all() or None


def slice_arrays(arrays: MeasureArrays, start: int, stop: int) -> MeasureArrays:
    """Return a prepared measure's arrays for the queries ``start`` to ``stop`` alone, as views of the same memory."""
    indptr = arrays.indptr
    return arrays._replace(
        indptr=indptr[start : stop + 1] - indptr[start],
        gain=arrays.gain[int(indptr[start]) : int(indptr[stop])],
        scale=arrays.scale[start:stop],
        base=arrays.base[start:stop],
    )
