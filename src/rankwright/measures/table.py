"""Measures made of tables: a gain per document, a discount per rank, a norm per query.

To add one, write its entry in ``DEFINITIONS``; parsing, printing, training, dialects and the documentation follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, Self

import numpy as np

from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.kernels.measures import (
    averaged_values,
    ideal_values,
    leads,
    ranked_values,
    swap_adjacent,
    swap_deltas,
)
from rankwright.measures.base import BoundMeasure, Measure
from rankwright.measures.dialects import DIALECTS

CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": ("exp", "linear", "pow2"),
    "discount": ("log2", "letor"),
    "empty": ("0", "1", "skip"),
    "short": ("pad", "list", "zero"),
    "norm": ("all", "min"),
    "ties": ("pessimistic", "file", "reverse", "docid", "average"),
}
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
        definition = DEFINITIONS[name]
        if k is not None and k < 1:
            raise InputError(f"{name}@{k}: the cut-off must be at least 1")
        if k is not None and not definition.cut:
            raise InputError(f"{name} takes no cut-off")
        dialect = options.pop("dialect", None)
        for option in options:
            if option not in definition.options:
                known = ", ".join((*definition.options, "dialect"))
                raise InputError(f"{name} has no option {option!r}; it has {known}")
        defaults: Mapping[str, object] = {}
        if dialect is not None:
            k, defaults = _spoken(str(dialect), name, k)
        checked = {o: _check(o, value) for o, value in {**defaults, **options}.items()}
        return cls(name, k, None if dialect is None else str(dialect), **checked)  # type: ignore[arg-type]

    def __str__(self) -> str:
        definition = DEFINITIONS[self.name]
        usual = TableMeasure(self.name)
        if self.dialect is not None:
            _, spoken = _spoken(self.dialect, self.name, self.k)
            usual = replace(usual, **{o: _check(o, value) for o, value in spoken.items()})  # type: ignore[arg-type]
        said = [] if self.dialect is None else [f"dialect={self.dialect}"]
        for option in definition.options:
            value = getattr(self, option)
            if value != getattr(usual, option):
                said.append(f"{option}={value:g}" if isinstance(value, float) else f"{option}={value}")
        head = definition.full_name or self.name if self.k is None else f"{self.name}@{self.k}"
        return head + (f"({','.join(said)})" if said else "")

    __repr__ = __str__

    def for_training(self) -> TableMeasure:
        """The same measure with ties broken pessimistically."""
        return replace(self, ties="pessimistic")

    def for_weak(self) -> TableMeasure:
        """The same measure averaged over the orders of tied documents."""
        return replace(self, ties="average")

    def bind(self, queries: Queries) -> BoundTable:
        """Compute gains, discounts and norms for these queries."""
        self._check_grades(queries.y)
        definition = DEFINITIONS[self.name]
        depth = int(queries.sizes.max()) if self.k is None else self.k
        gain, discount = definition.gains(self, queries), definition.discounts(self, depth)
        found = np.maximum.reduceat(gain, queries.indptr[:-1]) > 0
        norm = definition.norm(self, _View(queries.indptr, gain, discount, definition))
        scale = np.divide(1.0, norm, out=np.zeros(len(queries)), where=found)
        base = np.where(found, 0.0, {"0": 0.0, "1": 1.0, "skip": np.nan}[self.empty])
        if self.k is not None and self.short == "zero":
            too_short = queries.sizes < self.k
            scale[too_short], base[too_short] = 0.0, 0.0
        if self.k is not None and self.short == "list":
            scale *= self.k / np.minimum(self.k, queries.sizes)
        arrays = MeasureArrays(gain, discount, scale, base, definition.u, definition.v)
        return BoundTable(queries.indptr, self.ties, _tie_keys(self.ties, queries), arrays)

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
        if self.name == "err" and self.max != "data" and highest > int(self.max):
            raise InputError(f"{self}: grade {highest:g} found; say err(max={highest:g}) or err(max=data)")
        if "gain" in DEFINITIONS[self.name].options and self.gain != "linear" and highest > _HIGHEST_EXPONENT:
            raise InputError(f"{self}: grade {highest:g} is too high for the gain 2^l; use gain=linear")


class MeasureArrays(NamedTuple):
    """What kernels need of a bound measure; ``kernels/measures.py`` has the formula."""

    gain: Floats  # per document
    discount: Floats  # per rank; zero beyond its end
    scale: Floats  # per query
    base: Floats  # per query
    u: float
    v: float


@dataclass(frozen=True, slots=True, eq=False)
class BoundTable(BoundMeasure):
    """A table measure with its arrays."""

    indptr: Ints
    ties: str
    tie_keys: Floats
    arrays: MeasureArrays

    def fill(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        gain, discount, scale, base, u, v = self.arrays
        if self.ties == "average":
            averaged_values(order, scores, gain, discount, scale, base, u, v, self.indptr, start, stop, out)
        else:
            ranked_values(order, gain, discount, scale, base, u, v, self.indptr, start, stop, out)

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


class _View(NamedTuple):
    """What a norm may look at."""

    indptr: Ints
    gain: Floats
    discount: Floats
    definition: Definition


@dataclass(frozen=True, slots=True)
class Definition:
    """How a measure is made.

    Parameters
    ----------
    title : str
        What it is, for people.
    gains : callable
        (measure, queries) -> a gain per document.
    discounts : callable
        (measure, depth) -> a discount per rank.
    norm : callable
        (measure, view) -> what each query's sum is divided by.
    options : tuple of str
        The options that mean something to it.
    u, v : float
        Its family: (0, 0) additive, (1, 0) average precision, (0, -1) cascade; see ``kernels/measures.py``.
    cut : bool
        Whether it takes a cut-off.
    full_name : str, optional
        Its name without a cut-off, where that differs.
    aliases : tuple of str
        Other tools' names for it.
    """

    title: str
    gains: Callable[[TableMeasure, Queries], Floats]
    discounts: Callable[[TableMeasure, int], Floats]
    norm: Callable[[TableMeasure, _View], Floats | float]
    options: tuple[str, ...]
    u: float = 0.0
    v: float = 0.0
    cut: bool = True
    full_name: str | None = None
    aliases: tuple[str, ...] = field(default=())


def _graded(measure: TableMeasure, queries: Queries) -> Floats:
    if measure.gain == "linear":
        return queries.y
    gains: Floats = np.exp2(queries.y) - (1.0 if measure.gain == "exp" else 0.0)
    return gains


def _binary(measure: TableMeasure, queries: Queries) -> Floats:
    gains: Floats = (queries.y >= measure.rel).astype(np.float64)
    return gains


def _stop_probability(measure: TableMeasure, queries: Queries) -> Floats:
    highest = queries.y.max() if measure.max == "data" else float(measure.max)
    gains: Floats = (np.exp2(queries.y) - 1.0) / np.exp2(highest)
    return gains


def _top_grade(measure: TableMeasure, queries: Queries) -> Floats:
    top = np.maximum.reduceat(queries.y, queries.indptr[:-1])
    gains: Floats = ((queries.y == np.repeat(top, queries.sizes)) & (queries.y > 0)).astype(np.float64)
    return gains


def _logarithmic(measure: TableMeasure, depth: int) -> Floats:
    ranks = np.arange(1, depth + 1)
    if measure.discount == "letor":
        ranks = np.maximum(ranks - 1, 1)  # from rank 2 on one late: 1, 1, 1/log2(3), 1/log2(4), ...
    discounts: Floats = 1.0 / np.log2(1.0 + ranks)
    return discounts


def _harmonic(measure: TableMeasure, depth: int) -> Floats:
    return 1.0 / np.arange(1, depth + 1)


def _geometric(measure: TableMeasure, depth: int) -> Floats:
    discounts: Floats = (1.0 - measure.p) * measure.p ** np.arange(depth)
    return discounts


def _flat(measure: TableMeasure, depth: int) -> Floats:
    return np.ones(depth)


def _one(measure: TableMeasure, view: _View) -> float:
    return 1.0


def _ideal(measure: TableMeasure, view: _View) -> Floats:
    return ideal_values(view.gain, view.discount, view.definition.u, view.definition.v, view.indptr)


def _all_relevant(measure: TableMeasure, view: _View) -> Floats:
    relevant: Floats = np.add.reduceat(view.gain, view.indptr[:-1])  # gains are 0 or 1
    return np.minimum(relevant, measure.k) if measure.norm == "min" and measure.k is not None else relevant


def _cut_off(measure: TableMeasure, view: _View) -> Floats:
    sizes = np.diff(view.indptr).astype(np.float64)
    return sizes if measure.k is None else np.full(len(sizes), float(measure.k))


_ALWAYS = ("empty", "ties")

DEFINITIONS: Mapping[str, Definition] = {
    "ndcg": Definition(
        "normalised discounted cumulative gain",
        _graded,
        _logarithmic,
        _ideal,
        ("gain", "discount", "short", *_ALWAYS),
    ),
    "dcg": Definition(
        "discounted cumulative gain", _graded, _logarithmic, _one, ("gain", "discount", "short", *_ALWAYS)
    ),
    "ap": Definition(
        "average precision; map is its mean",
        _binary,
        _harmonic,
        _all_relevant,
        ("rel", "norm", "short", *_ALWAYS),
        u=1.0,
        full_name="map",
        aliases=("map",),
    ),
    "p": Definition("precision", _binary, _flat, _cut_off, ("rel", "short", *_ALWAYS), aliases=("precision", "prec")),
    "recall": Definition(
        "recall: the part of the relevant documents found",
        _binary,
        _flat,
        _all_relevant,
        ("rel", *_ALWAYS),
        aliases=("r",),
    ),
    "rr": Definition(
        "reciprocal rank of the first relevant document; mrr is its mean",
        _binary,
        _harmonic,
        _one,
        ("rel", *_ALWAYS),
        v=-1.0,
        full_name="mrr",
        aliases=("mrr",),
    ),
    "err": Definition("expected reciprocal rank", _stop_probability, _harmonic, _one, ("max", *_ALWAYS), v=-1.0),
    "wta": Definition(
        "winner takes all: the first document has the query's top grade",
        _top_grade,
        lambda measure, depth: np.ones(1),
        _one,
        _ALWAYS,
        cut=False,
    ),
    "rbp": Definition("rank-biased precision", _binary, _geometric, _one, ("p", "rel", *_ALWAYS)),
}


def _tie_keys(ties: str, queries: Queries) -> Floats:
    rows = np.arange(queries.n_docs, dtype=np.float64)
    if ties == "pessimistic":
        return queries.y
    if ties == "reverse":
        return -rows
    if ties == "docid":
        if queries.docid is None:
            raise InputError("ties=docid needs document ids; these queries have none")
        return -np.unique(queries.docid, return_inverse=True)[1].astype(np.float64)
    return rows


def _spoken(dialect: str, name: str, k: int | None) -> tuple[int | None, Mapping[str, object]]:
    """The cut-off and the options of a measure in a dialect; an error if the dialect does not have it."""
    if dialect not in DIALECTS:
        raise InputError(f"unknown dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    rules = DIALECTS[dialect]
    definition = DEFINITIONS[name]
    key = definition.full_name if k is None and definition.full_name in rules.measures else name
    entry = rules.measures.get(key or name)
    if entry is None:
        raise InputError(f"{dialect} does not define {name}; it has {', '.join(rules.measures)}")
    full = rules.full.get(key or name) if k is None else None
    for reason in (entry, full):
        if isinstance(reason, str):
            raise InputError(f"{name}(dialect={dialect}) is refused: {reason}")
    return (full if isinstance(full, int) else k), dict(entry)  # type: ignore[arg-type]


def _check(option: str, value: object) -> object:
    text = str(value).strip("'\"")
    if option in CHOICES:
        if text not in CHOICES[option]:
            raise InputError(f"{option}={text}; expected one of {', '.join(CHOICES[option])}")
        return text
    if option == "max" and text == "data":
        return text
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{option}={text}; expected a number") from None
    if option == "max" and (number < 1 or number != int(number)):
        raise InputError(f"max={text}; expected a whole number from 1, or data")
    if option == "p" and not 0 < number < 1:
        raise InputError(f"p={text}; expected a number between 0 and 1")
    if option == "rel" and not number > 0:
        raise InputError(f"rel={text}; expected a number above 0")
    return int(number) if option == "max" else number


OPTIONS = tuple(f.name for f in fields(TableMeasure) if f.name not in ("name", "k", "dialect"))
