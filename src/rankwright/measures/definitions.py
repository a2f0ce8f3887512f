"""How each measure is made: a gain per document, a discount per rank, a norm per query, a family.

To add a measure, write its entry in ``DEFINITIONS``; parsing, printing and training follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.discounts import GEOMETRIC, HARMONIC, LOGARITHMIC, Law
from rankwright.kernels.measures.measure_values import ideal_values

if TYPE_CHECKING:
    from rankwright.measures.table import TableMeasure


class View(NamedTuple):
    """What a norm may look at: the judged documents of each query, those that no run found among them."""

    indptr: Ints
    ranked: Ints  # per query, how many of its documents are ranked
    gain: Floats
    discount: Floats
    u: float
    v: float


@dataclass(frozen=True, slots=True)
class Definition:
    """How a measure is made.

    Parameters
    ----------
    title : str
        What it is, for people.
    gains : callable
        (measure, queries) -> a gain per document.
    law : callable
        measure -> the discount of every rank.
    norm : callable
        (measure, view) -> what each query's sum is divided by.
    options : tuple of str
        The options that mean something to it.
    u, v : float
        Its family: (0, 0) additive, (1, 0) average precision, (0, -1) cascade; see ``kernels/measures.py``.
    cut : bool
        Whether it takes a cut-off.
    powers : bool
        Whether its gains are powers of two whatever its options.
    bounded : bool
        Whether its values lie between 0 and 1.
    full_name : str, optional
        Its name without a cut-off, where that differs.
    aliases : tuple of str
        Other tools' names for it.
    """

    title: str
    gains: Callable[[TableMeasure, Queries], Floats]
    law: Callable[[TableMeasure], Law]
    norm: Callable[[TableMeasure, View], Floats | float]
    options: tuple[str, ...]
    u: float = 0.0
    v: float = 0.0
    cut: bool = True
    powers: bool = False
    bounded: bool = True
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


def _logarithmic(measure: TableMeasure) -> Law:
    return Law(LOGARITHMIC, 1.0 if measure.discount == "letor" else 0.0, cut_off=_cut(measure))


def _harmonic(measure: TableMeasure) -> Law:
    return Law(HARMONIC, cut_off=_cut(measure))


def _geometric(measure: TableMeasure) -> Law:
    return Law(GEOMETRIC, measure.p, 1.0 - measure.p, _cut(measure))


def _flat(measure: TableMeasure) -> Law:
    return Law(GEOMETRIC, 1.0, 1.0, _cut(measure))


def _first_alone(measure: TableMeasure) -> Law:
    return Law(GEOMETRIC, 1.0, 1.0, 1.0)


def discounts(law: Law, longest: int) -> Floats:
    """The discounts of the ranks of lists no longer than this.

    >>> discounts(Law(LOGARITHMIC, 1.0, cut_off=3), 10).round(3).tolist()  # LETOR's
    [1.0, 1.0, 0.631]
    """
    ranks = np.arange(1, int(min(longest, law.cut_off)) + 1)
    if law.kind == LOGARITHMIC:  # LETOR's is one late from rank 2 on: 1, 1, 1/log2(3), 1/log2(4), ...
        table: Floats = 1.0 / np.log2(1.0 + np.maximum(ranks - law.a, 1.0))
        return table
    return law.b * law.a ** (ranks - 1) if law.kind == GEOMETRIC else 1.0 / ranks


def _one(measure: TableMeasure, view: View) -> float:
    return 1.0


def _ideal(measure: TableMeasure, view: View) -> Floats:
    return ideal_values(view.gain, view.discount, view.u, view.v, view.indptr)


def _all_relevant(measure: TableMeasure, view: View) -> Floats:
    relevant: Floats = np.add.reduceat(view.gain, view.indptr[:-1])  # gains are 0 or 1
    return np.minimum(relevant, measure.k) if measure.norm == "min" and measure.k is not None else relevant


def _cut_off(measure: TableMeasure, view: View) -> Floats:
    sizes = view.ranked.astype(np.float64)
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
        bounded=False,
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
        "expected reciprocal rank", _stop_probability, _harmonic, _one, ("max", *_ALWAYS), v=-1.0, powers=True
    ),
    "wta": Definition(
        "winner takes all: the first document has the query's top grade",
        _top_grade,
        _first_alone,
        _one,
        _ALWAYS,
        cut=False,
    ),
    "rbp": Definition("rank-biased precision", _binary, _geometric, _one, ("p", "rel", *_ALWAYS)),
}
