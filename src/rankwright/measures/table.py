"""Measures made of tables: a gain per document, a discount per rank, a norm per query."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import GEOMETRIC, Law
from rankwright.kernels.measures.jump_sweep import SHALLOW, sweep
from rankwright.kernels.measures.measure_values import (
    averaged_values,
    ideal_values,
    leads,
    ranked_total,
    ranked_values,
    swap_adjacent,
    swap_deltas,
)
from rankwright.measures import long_lists
from rankwright.measures.base import N_BUCKETS, Jumps, Lines, Measure, MeasureArrays, PreparedMeasure, Tally
from rankwright.measures.definitions import DEFINITIONS, View, discounts
from rankwright.measures.dialects import DIALECTS
from rankwright.measures.options import MOST_GRADE, check_cut_off, check_option, resolve_dialect

_HIGHEST_EXPONENT = 60


@dataclass(frozen=True, slots=True)
class TableMeasure(Measure):
    """A measure of ``DEFINITIONS``, with its cut-off and options.

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
        What a query without a relevant document counts; skip leaves it out of means.
    short : "pad", "list" or "zero"
        A list shorter than k: padded with irrelevant documents, taken with k = its length, or counted 0.
    norm : "all" or "min"
        AP divides by the number R of relevant documents, or by min(R, k).
    ties : "pessimistic", "file", "reverse", "docid" or "average"
        Of equal scores first: the lower grade, the earlier row, the later row, the larger document id; or the
        mean over all orders.
    max : int or "data"
        The highest grade of ERR's (2^l - 1) / 2^max.
    p : float
        The persistence of RBP.
    """

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

    @classmethod
    def of(cls, name: str, k: int | None = None, **options: object) -> Self:
        """Build and check: options as Python values or as the text of a measure's name."""
        k = check_cut_off(name, k)
        dialect = options.pop("dialect", None)
        known = DEFINITIONS[name].options
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
        usual: dict[str, Any] = {f.name: f.default for f in fields(self)}
        said = []
        if self.dialect is not None:
            usual |= resolve_dialect(self.dialect, self.name, self.k)[1]
            said = [f"dialect={self.dialect}"]
        for option in definition.options:
            value = getattr(self, option)
            if value != usual[option]:
                said.append(f"{option}={str(value).removesuffix('.0')}")
        head = definition.full_name or self.name if self.k is None else f"{self.name}@{self.k}"
        return head + (f"({','.join(said)})" if said else "")

    __repr__ = __str__

    def for_training(self) -> TableMeasure:
        """The same measure with ties broken pessimistically."""
        return replace(self, ties="pessimistic")

    def for_weak(self) -> TableMeasure:
        """The same measure averaged over the orders of tied documents."""
        return replace(self, ties="average")

    def for_bounds(self) -> TableMeasure:
        """With ties broken pessimistically, and the discount 1 / log2(1 + rank) in place of LETOR's."""
        return replace(self, ties="pessimistic", discount="log2")

    @property
    def bounded(self) -> bool:
        """Whether the values lie between 0 and 1."""
        return DEFINITIONS[self.name].bounded

    @property
    def family(self) -> str:
        """By the numbers of its recurrence."""
        definition = DEFINITIONS[self.name]
        return "ap" if definition.u != 0.0 else "cascade" if definition.v != 0.0 else "additive"

    @property
    def cut_off(self) -> int | None:
        """How many ranks count; None if all do."""
        return self.k if DEFINITIONS[self.name].cut else 1

    @property
    def law(self) -> Law:
        """The discount of every rank, whole or not."""
        return DEFINITIONS[self.name].law(self)

    def truncated(self, k: int) -> TableMeasure:
        """With a cut-off of at most ``k``."""
        deeper = self.cut_off is None or self.cut_off > k
        return replace(self, k=k) if deeper else self

    def cut_at(self, k: int | None) -> TableMeasure:
        """With this cut-off, or none, if discounts tell ranks apart; lists that are too short are padded, not 0."""
        if self.law.kind == GEOMETRIC and self.law.a == 1.0:
            return self
        return replace(self, k=k, short="pad" if self.short == "zero" else self.short)

    @property
    def relevant_from(self) -> float:
        """What ``rel`` says."""
        return self.rel

    @property
    def gains(self) -> str:
        """What ``gain`` says."""
        return self.gain

    @property
    def skips(self) -> bool:
        """Whether queries without a relevant document are left out."""
        return self.empty == "skip"

    def with_max_grade(self, max_grade: float) -> TableMeasure:
        """With ``max=data`` made the highest grade, so that every part of the data is measured alike."""
        if self.max != "data":
            return self
        return replace(self, max=min(max(math.ceil(max_grade), 1), MOST_GRADE))  # grades above are refused by prepare

    def prepare(self, queries: Queries) -> PreparedTableMeasure:
        """Compute gains, discounts and norms for these queries."""
        judged, is_row = queries.with_unretrieved()
        self._check_grades(judged.y)
        return self.with_max_grade(float(judged.y.max()))._prepare(queries, judged, is_row)

    def _prepare(self, queries: Queries, judged: Queries, is_row: NDArray[np.bool_] | None) -> PreparedTableMeasure:
        """Prepare; documents that no run found count in norms, and in whether there is a relevant one at all."""
        definition = DEFINITIONS[self.name]
        gain, discount = definition.gains(self, judged), discounts(self.law, int(judged.sizes.max()))
        relevant = judged.y >= self.rel if "rel" in definition.options else judged.y > 0
        found = np.logical_or.reduceat(relevant, judged.indptr[:-1])
        norm = definition.norm(self, View(judged.indptr, queries.sizes, gain, discount, definition.u, definition.v))
        found &= norm > 1e-300  # grades so small that their gains vanish find nothing
        scale = np.divide(1.0, norm, out=np.zeros(len(queries)), where=found)
        base = np.where(found, 0.0, {"0": 0.0, "1": 1.0, "skip": np.nan}[self.empty])
        if self.k is not None and self.short == "zero":
            scale[queries.sizes < self.k] = 0.0
        if is_row is not None:
            gain = gain[is_row]
            scale[np.maximum.reduceat(gain, queries.indptr[:-1]) <= 0.0] = 0.0  # what is relevant cannot be ranked
        arrays = MeasureArrays(gain, discount, scale, base, definition.u, definition.v)
        return PreparedTableMeasure(queries.indptr, self.ties, _tie_keys(self.ties, queries), arrays)

    def _check_grades(self, y: Floats) -> None:
        if y.min() < 0:
            raise InputError(f"{self}: grade {y.min():g} found; grades start at 0")
        highest = y.max()
        dialect = None if self.dialect is None else DIALECTS[self.dialect]
        if dialect is not None and dialect.integers and (y != np.floor(y)).any():
            wrong = y[np.argmax(y != np.floor(y))]
            raise InputError(f"{self}: grade {wrong:g} found; {self.dialect} takes integer grades only")
        if dialect is not None and dialect.top is not None and highest > dialect.top:
            raise InputError(f"{self}: grade {highest:g} found; {self.dialect} knows grades up to {dialect.top}")
        definition = DEFINITIONS[self.name]
        chosen = "gain" in definition.options and self.gain != "linear"
        if (chosen or definition.powers) and highest > _HIGHEST_EXPONENT:
            raise InputError(f"{self}: grade {highest:g} is too high for 2^l{'; use gain=linear' if chosen else ''}")
        if self.name == "err" and self.max != "data" and highest > int(self.max):
            raise InputError(f"{self}: grade {highest:g} found; say err(max={math.ceil(highest)}) or err(max=data)")


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTableMeasure(PreparedMeasure):
    """A table measure with its arrays."""

    indptr: Ints
    ties: str
    tie_keys: Floats
    arrays: MeasureArrays

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which queries are not skipped."""
        return ~np.isnan(self.arrays.base)

    def fill(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        gain, discount, scale, base, u, v = self.arrays
        if self.ties == "average":
            averaged_values(order, scores, gain, discount, scale, base, u, v, self.indptr, start, stop, out)
        else:
            ranked_values(order, gain, discount, scale, base, u, v, self.indptr, start, stop, out)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Which queries have nothing relevant."""
        fixed: NDArray[np.bool_] = self.arrays.scale == 0.0
        return fixed

    @property
    def highest(self) -> float:
        """1, or for sums that are not normalised the best query's ideal."""
        a = self.arrays
        ideal = np.nan_to_num(a.base) + a.scale * ideal_values(a.gain, a.discount, a.u, a.v, self.indptr)
        return max(1.0, float(ideal.max()))

    def jumps(self, lines: Lines) -> Jumps:
        """All jumps, by the kernel that serves every family."""
        a = self.arrays
        times, deltas, at_zero, at_low, sums, gains, left_out = sweep(
            lines.order,
            lines.scores,
            lines.X,
            lines.column,
            a.gain,
            a.discount,
            a.scale * lines.worth,
            a.u,
            a.v,
            self.indptr,
            lines.low,
            lines.high,
            SHALLOW,
            1.0 / lines.unit,
            N_BUCKETS,
            long_lists.MOST_PAIRS,
        )
        sides = []
        for query in left_out.tolist():
            for sign in (sign for sign, limit in ((1.0, lines.high), (-1.0, -lines.low)) if limit > 0.0):
                side = long_lists.LongSide.of(lines, a, query, self.indptr, sign, sums, gains)
                at_low += side.change if sign < 0.0 else 0
                sides.append(side)
        return Jumps(times, deltas, Tally(at_zero, at_low, sums, gains), tuple(sides))

    def total(self, scores: Floats, order: Ints, weight: Floats) -> float:
        """As for every measure; in one call, so that threads do not wait for each other's Python."""
        if self.ties == "average":
            return super(PreparedTableMeasure, self).total(scores, order, weight)
        return ranked_total(self.sort_keys(scores), self.tie_keys, order, *self.arrays, self.indptr, weight)

    def part(self, start: int, stop: int) -> PreparedTableMeasure:
        """The arrays of these queries, sharing memory."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        a, indptr = self.arrays, self.indptr[start : stop + 1] - self.indptr[start]
        own = a._replace(gain=a.gain[rows], scale=a.scale[start:stop], base=a.base[start:stop])
        return PreparedTableMeasure(indptr, self.ties, self.tie_keys[rows], own)

    def swap_deltas(self, scores: Floats, query: int) -> Floats:
        """The change of the measure if documents i and j exchanged their ranks."""
        order = self.rank(scores, query)
        by_rank = swap_deltas(self.ranked_gains(query, order), self.arrays.discount, self.arrays.u, self.arrays.v)
        deltas = np.empty_like(by_rank)
        deltas[np.ix_(order, order)] = by_rank * self.arrays.scale[query]
        return deltas

    def ranked_gains(self, query: int, order: Ints) -> Floats:
        """The gains of a query's documents in this order of its rows."""
        gains: Floats = self.arrays.gain[self.indptr[query] + order]
        return gains

    def walk(self, scores: Floats, query: int) -> Walk:
        """Start a walk from the ranking by these scores, one adjacent swap at a time."""
        a, gains = self.arrays, self.ranked_gains(query, self.rank(scores, query))
        lead, depth = leads(gains, a.u, a.v), min(len(gains), len(a.discount))
        total = float((gains * lead)[:depth] @ a.discount[:depth])
        return Walk(gains, lead, float(a.base[query] + a.scale[query] * total), a, query)


@dataclass(slots=True, eq=False)
class Walk:
    """One ranked list whose neighbours swap; the value follows in O(1) a swap."""

    gains: Floats
    lead: Floats
    value: float
    arrays: MeasureArrays
    query: int

    def swap(self, rank: int) -> float:
        """Swap ranks ``rank`` and ``rank + 1`` (from 0) and return the new value."""
        a = self.arrays
        delta = swap_adjacent(self.gains, self.lead, a.discount, a.u, a.v, rank)
        self.value += float(a.scale[self.query]) * delta
        return self.value


def _tie_keys(ties: str, queries: Queries) -> Floats:
    rows = np.arange(queries.n_docs, dtype=np.float64)
    if ties == "pessimistic":
        return queries.y
    if ties == "reverse":
        return -rows
    if ties == "docid":
        return -queries.docid_ranks.astype(np.float64)
    return rows
