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
from rankwright.measures.click_relevance import ESTIMATORS
from rankwright.measures.dialects import DIALECTS

if TYPE_CHECKING:
    from rankwright.measures.table_measure import TableMeasure


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a built-in measure: how to compute its gains, discounts and norm, and its options.

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
    click_options : tuple of str
        The options of its form that is estimated from clicks; empty if it has none, since it is no sum over documents.
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
    click_options: tuple[str, ...] = ()
    full_name: str | None = None
    aliases: tuple[str, ...] = field(default=())


def _compute_graded_gains(measure: TableMeasure, queries: Queries) -> Floats:
    """Return the gain of each document as a function of its grade: l, 2^l - 1 or 2^l."""
    if measure.gain == "linear":
        return queries.y
    gains: Floats = np.exp2(queries.y) - (1.0 if measure.gain == "exp" else 0.0)
    return gains


def _compute_binary_gains(measure: TableMeasure, queries: Queries) -> Floats:
    """Return 1 for each relevant document and 0 for each other one; from clicks, its estimated relevance."""
    if measure.is_from_clicks:
        return queries.y
    gains: Floats = (queries.y >= measure.rel).astype(np.float64)
    return gains


def _compute_stop_probabilities(measure: TableMeasure, queries: Queries) -> Floats:
    """Return the probability that a user stops at each document, the gain of ERR: (2^l - 1) / 2^max."""
    highest = queries.y.max() if measure.max == "data" else float(measure.max)
    gains: Floats = (np.exp2(queries.y) - 1.0) / np.exp2(highest)
    return gains


def _compute_top_grade_gains(measure: TableMeasure, queries: Queries) -> Floats:
    """Return 1 for each document of its query's highest grade, if that is above 0, and 0 for each other one."""
    top = np.maximum.reduceat(queries.y, queries.indptr[:-1])
    gains: Floats = ((queries.y == np.repeat(top, queries.sizes)) & (queries.y > 0)).astype(np.float64)
    return gains


def _get_cut_off(measure: TableMeasure) -> float:
    """Return the cut-off of a measure, infinity if it has no cut-off."""
    return np.inf if measure.k is None else float(measure.k)


def _make_logarithmic_discount(measure: TableMeasure) -> DiscountFunction:
    """Return the discount function of NDCG: 1 / log2(1 + rank), LETOR's, or 1 / rank."""
    if measure.discount == "reciprocal":
        return _make_harmonic_discount(measure)
    return DiscountFunction(LOGARITHMIC, 1.0 if measure.discount == "letor" else 0.0, cut_off=_get_cut_off(measure))


def _make_harmonic_discount(measure: TableMeasure) -> DiscountFunction:
    """Return the discount function 1 / rank, up to the cut-off."""
    return DiscountFunction(HARMONIC, cut_off=_get_cut_off(measure))


def _make_geometric_discount(measure: TableMeasure) -> DiscountFunction:
    """Return the discount function of RBP: (1 - p) p^(rank - 1), p being the measure's persistence."""
    return DiscountFunction(GEOMETRIC, measure.p, 1.0 - measure.p, _get_cut_off(measure))


def _make_flat_discount(measure: TableMeasure) -> DiscountFunction:
    """Return the discount function that is 1 at every rank up to the cut-off."""
    return DiscountFunction(GEOMETRIC, 1.0, 1.0, _get_cut_off(measure))


def _make_first_rank_discount(measure: TableMeasure) -> DiscountFunction:
    """Return the discount function that is 1 at the first rank and 0 after it."""
    return DiscountFunction(GEOMETRIC, 1.0, 1.0, 1.0)


def tabulate_discounts(function: DiscountFunction, longest: int) -> Floats:
    """Return the discounts of ranks 1, 2, ... up to the cut-off or the longest list, whichever is less.

    >>> tabulate_discounts(DiscountFunction(LOGARITHMIC, 1.0, cut_off=3), 10).round(3).tolist()  # LETOR's
    [1.0, 1.0, 0.631]
    """
    ranks = np.arange(1, int(min(longest, function.cut_off)) + 1)
    if function.kind == LOGARITHMIC:  # LETOR's is one late from rank 2 on: 1, 1, 1/log2(3), 1/log2(4), ...
        table: Floats = 1.0 / np.log2(1.0 + np.maximum(ranks - function.a, 1.0))
        return table
    return function.b * function.a ** (ranks - 1) if function.kind == GEOMETRIC else 1.0 / ranks


def _get_unit_norm(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> float:
    """Return 1 as the divisor of every query's sum, for measures that are not normalised."""
    return 1.0


def _compute_ideal_sums(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    """Return for each query the sum of its ideal ranking, or the floor if that is more, the divisor of NDCG."""
    ideals = compute_ideal_values(arrays)
    return np.maximum(ideals, measure.floor) if measure.floor > 0.0 else ideals


def _count_relevant(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    """Return for each query its number of relevant documents, the divisor of AP; at most k if norm is "min"."""
    relevant: Floats = np.add.reduceat(arrays.gain, arrays.indptr[:-1])  # gains are 0 or 1
    return np.minimum(relevant, measure.k) if measure.norm == "min" and measure.k is not None else relevant


def _compute_cut_off_norms(measure: TableMeasure, arrays: MeasureArrays, ranked: Ints) -> Floats:
    """Return for each query the divisor of precision: k, or its number of documents if there is no k.

    It is the number of documents, too, if the list is shorter than k and the option short is "list".
    """
    sizes = ranked.astype(np.float64)
    if measure.k is None:
        return sizes
    return np.minimum(sizes, measure.k) if measure.short == "list" else np.full(len(sizes), float(measure.k))


_ALWAYS = ("empty", "ties")
_CLICKS = ("clicks", "clip")

DEFINITIONS: Mapping[str, Definition] = {
    "ndcg": Definition(
        "normalised discounted cumulative gain",
        _compute_graded_gains,
        _make_logarithmic_discount,
        _compute_ideal_sums,
        ("gain", "discount", "short", *_ALWAYS),
        click_options=(*_CLICKS, "floor"),
    ),
    "dcg": Definition(
        "discounted cumulative gain",
        _compute_graded_gains,
        _make_logarithmic_discount,
        _get_unit_norm,
        ("gain", "discount", "short", *_ALWAYS),
        is_normalised=False,
        click_options=_CLICKS,
    ),
    "ap": Definition(
        "average precision; map is its mean",
        _compute_binary_gains,
        _make_harmonic_discount,
        _count_relevant,
        ("rel", "norm", "short", *_ALWAYS),
        u=1.0,
        full_name="map",
        aliases=("map",),
    ),
    "p": Definition(
        "precision",
        _compute_binary_gains,
        _make_flat_discount,
        _compute_cut_off_norms,
        ("rel", "short", *_ALWAYS),
        click_options=_CLICKS,
        aliases=("precision", "prec"),
    ),
    "recall": Definition(
        "recall: the part of the relevant documents found",
        _compute_binary_gains,
        _make_flat_discount,
        _count_relevant,
        ("rel", *_ALWAYS),
        click_options=_CLICKS,
        aliases=("r",),
    ),
    "rr": Definition(
        "reciprocal rank of the first relevant document; mrr is its mean",
        _compute_binary_gains,
        _make_harmonic_discount,
        _get_unit_norm,
        ("rel", *_ALWAYS),
        v=-1.0,
        full_name="mrr",
        aliases=("mrr",),
    ),
    "err": Definition(
        "expected reciprocal rank",
        _compute_stop_probabilities,
        _make_harmonic_discount,
        _get_unit_norm,
        ("max", *_ALWAYS),
        v=-1.0,
        has_power_gains=True,
    ),
    "wta": Definition(
        "winner takes all: the first document has the query's top grade",
        _compute_top_grade_gains,
        _make_first_rank_discount,
        _get_unit_norm,
        _ALWAYS,
        takes_cut_off=False,
    ),
    "rbp": Definition(
        "rank-biased precision",
        _compute_binary_gains,
        _make_geometric_discount,
        _get_unit_norm,
        ("p", "rel", *_ALWAYS),
        click_options=_CLICKS,
    ),
}


MAX_GRADE = 1000  # of err: 2^max must be finite
CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": ("exp", "linear", "pow2"),
    "discount": ("log2", "letor", "reciprocal"),
    "empty": ("0", "1", "skip"),
    "short": ("pad", "list", "zero"),
    "norm": ("all", "min"),
    "ties": ("pessimistic", "file", "reverse", "docid", "average"),
    "clicks": ESTIMATORS,
}


def check_cut_off(name: str, k: object) -> int | None:
    """Return a measure's cut-off as an int of at least 1, or None if k is None; raise InputError otherwise."""
    if k is None:
        return None
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InputError(f"{name}@{k}: the cut-off must be a whole number of at least 1")
    if not DEFINITIONS[name].takes_cut_off:
        raise InputError(f"{name} takes no cut-off")
    return int(k)


def check_option(option: str, value: object) -> str | float | int:
    """Return the value of a measure's option, converted to its type; raise InputError if it is not allowed."""
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
    if option == "clip" and not number >= 1.0:
        raise InputError(f"clip={text}; expected the largest weight of a click, a number of at least 1")
    if option == "floor" and not (math.isfinite(number) and number >= 0):
        raise InputError(f"floor={text}; expected a finite number of at least 0")
    if option == "p" and not 0 < number < 1:
        raise InputError(f"p={text}; expected a number between 0 and 1")
    if option == "rel" and not (math.isfinite(number) and number > 0):
        raise InputError(f"rel={text}; expected a number above 0")
    return int(number) if option == "max" else number


def resolve_dialect(dialect: str, name: str, k: int | None) -> tuple[int | None, dict[str, str | float | int]]:
    """Return the cut-off and options that give a tool's own figures; raise InputError if it lacks the measure."""
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
