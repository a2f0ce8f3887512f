"""Definitions of measures: a gain, a discount, a norm and a family for each, and the options that they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote, suggest
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import GEOMETRIC, HARMONIC, LOGARITHMIC, DiscountFunction
from rankwright.kernels.measures.measure_values import MeasureArrays, compute_ideal_values
from rankwright.measures.dialects import DIALECTS

if TYPE_CHECKING:
    from rankwright.measures.table_measure import TableMeasure


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a measure.

    Parameters
    ----------
    title : str
        Its full name, for people.
    gains : callable
        (measure, queries) -> a gain per document.
    discount_function : callable
        measure -> the discount of every rank.
    norm : callable
        (measure, arrays of the judged documents, number of ranked documents per query) -> the divisor of each sum.
    options : tuple of str
        The options that have an effect on it.
    u, v : float
        Its family: (0, 0) additive, (1, 0) average precision, (0, -1) cascade; see ``measure_values.py``.
    takes_cut_off : bool
        Whether it takes a cut-off.
    has_power_gains : bool
        Whether its gains are powers of two whatever its options.
    is_normalised : bool
        Whether its values lie between 0 and 1.
    full_name : str, optional
        Its name without a cut-off, where that differs.
    aliases : tuple of str
        Other tools' names for it.
    """

    title: str
    gains: Callable[[TableMeasure, Queries], Floats]
    discount_function: Callable[[TableMeasure], DiscountFunction]
    norm: Callable[[TableMeasure, MeasureArrays, Ints], Floats | float]
    options: tuple[str, ...]
    u: float = 0.0
    v: float = 0.0
    takes_cut_off: bool = True
    has_power_gains: bool = False
    is_normalised: bool = True
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


def _cut(measure: TableMeasure) -> float:
    return np.inf if measure.k is None else float(measure.k)


def _logarithmic(measure: TableMeasure) -> DiscountFunction:
    return DiscountFunction(LOGARITHMIC, 1.0 if measure.discount == "letor" else 0.0, cut_off=_cut(measure))


def _harmonic(measure: TableMeasure) -> DiscountFunction:
    return DiscountFunction(HARMONIC, cut_off=_cut(measure))


def _geometric(measure: TableMeasure) -> DiscountFunction:
    return DiscountFunction(GEOMETRIC, measure.p, 1.0 - measure.p, _cut(measure))


def _flat(measure: TableMeasure) -> DiscountFunction:
    return DiscountFunction(GEOMETRIC, 1.0, 1.0, _cut(measure))


def _first_alone(measure: TableMeasure) -> DiscountFunction:
    return DiscountFunction(GEOMETRIC, 1.0, 1.0, 1.0)


def tabulate_discounts(function: DiscountFunction, longest: int) -> Floats:
    """Return the discounts of the ranks of lists no longer than this.

    >>> tabulate_discounts(DiscountFunction(LOGARITHMIC, 1.0, cut_off=3), 10).round(3).tolist()  # LETOR's
    [1.0, 1.0, 0.631]
    """
    ranks = np.arange(1, int(min(longest, function.cut_off)) + 1)
    if function.kind == LOGARITHMIC:  # LETOR's is one late from rank 2 on: 1, 1, 1/log2(3), 1/log2(4), ...
        table: Floats = 1.0 / np.log2(1.0 + np.maximum(ranks - function.a, 1.0))
        return table
    return function.b * function.a ** (ranks - 1) if function.kind == GEOMETRIC else 1.0 / ranks


def _one(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> float:
    return 1.0


def _ideal(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    return compute_ideal_values(arrays)


def _all_relevant(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    relevant: Floats = np.add.reduceat(arrays.gain, arrays.indptr[:-1])  # gains are 0 or 1
    return np.minimum(relevant, measure.k) if measure.norm == "min" and measure.k is not None else relevant


def _cut_off(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    sizes = ranked.astype(np.float64)
    if measure.k is None:
        return sizes
    return np.minimum(sizes, measure.k) if measure.short == "list" else np.full(len(sizes), float(measure.k))


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
        "discounted cumulative gain",
        _graded,
        _logarithmic,
        _one,
        ("gain", "discount", "short", *_ALWAYS),
        is_normalised=False,
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
    "err": Definition(
        "expected reciprocal rank", _stop_probability, _harmonic, _one, ("max", *_ALWAYS), v=-1.0, has_power_gains=True
    ),
    "wta": Definition(
        "winner takes all: the first document has the query's top grade",
        _top_grade,
        _first_alone,
        _one,
        _ALWAYS,
        takes_cut_off=False,
    ),
    "rbp": Definition("rank-biased precision", _binary, _geometric, _one, ("p", "rel", *_ALWAYS)),
}


MAX_GRADE = 1000  # of err: 2^max must be finite
CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": ("exp", "linear", "pow2"),
    "discount": ("log2", "letor"),
    "empty": ("0", "1", "skip"),
    "short": ("pad", "list", "zero"),
    "norm": ("all", "min"),
    "ties": ("pessimistic", "file", "reverse", "docid", "average"),
}


def check_cut_off(name: str, k: object) -> int | None:
    """Return a cut-off as a whole number from 1, or None."""
    if k is None:
        return None
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InputError(f"{name}@{k}: the cut-off must be a whole number of at least 1")
    if not DEFINITIONS[name].takes_cut_off:
        raise InputError(f"{name} takes no cut-off")
    return int(k)


def check_option(option: str, value: object) -> str | float | int:
    """Return an option's value, given as a Python value or as the text of a name."""
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
    if option == "max" and not (1 <= number <= MAX_GRADE and number == int(number)):
        raise InputError(f"max={text}; expected a whole number from 1 to {MAX_GRADE}, or data")
    if option == "p" and not 0 < number < 1:
        raise InputError(f"p={text}; expected a number between 0 and 1")
    if option == "rel" and not (math.isfinite(number) and number > 0):
        raise InputError(f"rel={text}; expected a number above 0")
    return int(number) if option == "max" else number


def resolve_dialect(dialect: str, name: str, k: int | None) -> tuple[int | None, dict[str, str | float | int]]:
    """Return the cut-off and the options of a measure in a dialect; raise an error if the dialect does not have it."""
    if dialect not in DIALECTS:
        raise InputError(f"unknown dialect {quote(dialect)}; {suggest(dialect, DIALECTS)}")
    rules, full_name = DIALECTS[dialect], DEFINITIONS[name].full_name
    key = full_name if k is None and full_name is not None and full_name in rules.measures else name
    entry = rules.measures.get(key)
    if entry is None:
        raise InputError(f"{dialect} does not define {name}; it has {', '.join(rules.measures)}")
    default = rules.without_cut_off.get(key) if k is None else None
    if isinstance(entry, str) or isinstance(default, str):
        raise InputError(f"{name}(dialect={dialect}) is refused: {entry if isinstance(entry, str) else default}")
    return (k if default is None else default), {option: check_option(option, value) for option, value in entry.items()}
