"""Paired values: the values of two methods on the same queries, their differences, wins, and LETOR's winning number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError

# Values that are equal up to rounding differ by a few units of 2^-53, relative to the largest. A grid of 2^-40 is far
# above that and far below any difference that matters. It also leaves 13 bits for sums: up to thousands of times the
# largest value they are exact, so that no order of summation, and so no number of threads, changes them.
GRID_BITS = 40

Mask = NDArray[np.bool_]


class PairCounts(NamedTuple):
    """The mean difference of two methods, and the number of queries that each of them wins.

    Parameters
    ----------
    n : int
        The number of queries that both methods have a value of and that count in the mean.
    difference : float
        The mean of second - first.
    wins, ties, losses : int
        Queries where the second is better, equal (up to rounding), worse.
    """

    n: int
    difference: float
    wins: int
    ties: int
    losses: int


class QueryWeighting(NamedTuple):
    """A weighting of queries in a mean: by their weights, and each fold equally; plain where both are None."""

    weight: Floats | None = None
    fold: NDArray[np.generic] | None = None

    def counted(self, first: Floats, second: Floats) -> Mask:
        """Return a flag per query: whether both methods have a value and the weight is positive."""
        known: Mask = ~(np.isnan(first) | np.isnan(second))
        return known if self.weight is None else known & (self.weight > 0)

    def factors(self, counted: Mask) -> Floats | float:
        """Return n w for each of the n counted queries; w is its share of the mean of the fold means.

        The plain mean of values times these is that mean.
        """
        if self.weight is None and self.fold is None:
            return 1.0
        n = int(counted.sum())
        weight = np.ones(n) if self.weight is None else self.weight[counted]
        if self.fold is None:
            return np.asarray(n * weight / weight.sum())
        names, place = np.unique(self.fold[counted], return_inverse=True)
        total = np.bincount(place, weights=weight, minlength=len(names))
        return np.asarray(n * weight / (total[place] * len(names)))


def count_differences(plain: Floats, weighted: Floats) -> PairCounts:
    """Return the wins, ties and losses of plain differences, and the mean of weighted ones."""
    wins, losses = int(np.count_nonzero(plain > 0)), int(np.count_nonzero(plain < 0))
    mean = float(weighted.mean()) if len(weighted) else math.nan
    return PairCounts(len(plain), mean, wins, len(plain) - wins - losses, losses)


EQUAL_WEIGHTS = QueryWeighting()


def count_wins(a: ArrayLike, b: ArrayLike, weighting: QueryWeighting = EQUAL_WEIGHTS) -> PairCounts:
    """Return the mean of ``b - a`` and the queries that each method wins, without those where either is NaN.

    >>> count_wins([0.5, 0.5, 0.5], [0.5, 0.25, 1.0], QueryWeighting(weight=np.array([1.0, 2.0, 1.0])))
    PairCounts(n=3, difference=0.0, wins=1, ties=1, losses=1)
    """
    first, second = as_values(a, "a"), as_values(b, "b")
    counted = weighting.counted(first, second)
    plain = round_difference(first[counted], second[counted])
    return count_differences(plain, apply_weights(plain, weighting.factors(counted)))


def apply_weights(differences: Floats, factors: Floats | float) -> Floats:
    """Return differences times weights, rounded so that their sum does not depend on the order of addition."""
    product: Floats = differences * factors
    return round_to_grid(product, max_magnitude(product))


def pair_differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return ``b - a`` on the queries where neither is NaN, rounded so that rounding noise becomes zero.

    >>> pair_differences([0.1 + 0.2, 0.5, np.nan], [0.3, 0.75, 1.0]).tolist()
    [0.0, 0.25]
    """
    first, second = as_values(a, "a"), as_values(b, "b")
    if len(first) != len(second):
        raise InputError(f"a has {len(first)} values and b has {len(second)}; expected one of each per query")
    counted = ~(np.isnan(first) | np.isnan(second))
    return round_difference(first[counted], second[counted])


def round_difference(a: Floats, b: Floats) -> Floats:
    """Return ``b - a``, without NaN, rounded to multiples of about 2^-40 of the largest value."""
    return round_to_grid(b - a, max(max_magnitude(a), max_magnitude(b)))


def round_to_grid(values: Floats, unit: float) -> Floats:
    """Return values rounded to multiples of a power of two, about 2^-40 of ``unit``."""
    shift = GRID_BITS - math.frexp(unit)[1]
    on_grid: Floats = np.ldexp(np.rint(np.ldexp(values, shift)), -shift) + 0.0  # never -0.0
    return on_grid


def max_magnitude(values: Floats) -> float:
    """Return the largest absolute value; 0 if there are no values."""
    return float(np.abs(values).max(initial=0.0))


def is_constant(values: Floats) -> bool:
    """Return whether all values, of which there must be at least one, are equal."""
    return bool((values == values[0]).all())


def as_values(values: ArrayLike, what: str) -> Floats:
    """Return one number per query as an array, NaN where a measure skips it; raise InputError if it is not that."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not numeric: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{what} has shape {array.shape}; expected one value per query")
    infinite = np.isinf(array)
    if infinite.any():
        raise InputError(
            f"{what}[{int(np.argmax(infinite))}] is infinite; expected numbers, or NaN for skipped queries"
        )
    return array


class WinningNumber(NamedTuple):
    """The number of comparisons that a method won against other methods over data sets, and of all comparisons."""

    wins: int
    comparisons: int

    @property
    def normalised(self) -> float:
        """The share of the comparisons that were won; NaN without any."""
        return self.wins / self.comparisons if self.comparisons else float("nan")


def winning_number(tables: Mapping[str, Mapping[str, float]]) -> dict[str, WinningNumber]:
    """Return LETOR's winning number of each method: how often it beats another method, over several data sets.

    With M_i(j) the measure of method i on data set j, ``W_i = sum over j and k of 1{M_i(j) > M_k(j)}``; values that are
    equal up to rounding are equal. A method that is missing on a data set (or NaN) neither wins nor loses there. As it
    cannot win as often as the others, the number of comparisons that it took part in (the ideal winning number) is
    given too, and the ratio as ``normalised``.

    Parameters
    ----------
    tables : mapping of str to mapping of str to float
        For each data set the value of each method.

    Returns
    -------
    dict of str to WinningNumber
        In order of the methods' first appearance.

    References
    ----------
    T.-Y. Liu. Learning to Rank for Information Retrieval. Springer, 2011: the winning number.

    N. Tax, S. Bockting, D. Hiemstra. A cross-benchmark comparison of 87 learning to rank methods. Information
    Processing & Management 51, 2015: the ideal and the normalised one.

    Examples
    --------
    >>> numbers = winning_number({"td2003": {"A": 0.3, "B": 0.4, "C": 0.2}, "td2004": {"A": 0.5, "B": 0.5}})
    >>> numbers["B"]
    WinningNumber(wins=2, comparisons=3)
    >>> {method: round(number.normalised, 2) for method, number in numbers.items()}
    {'A': 0.33, 'B': 0.67, 'C': 0.0}
    """
    numbers: dict[str, WinningNumber] = {}
    for data_set, table in tables.items():
        values = as_values(list(table.values()), f"the values of {data_set!r}")
        present = values[~np.isnan(values)]
        for method, value in zip(table, values, strict=True):
            wins, comparisons = numbers.get(method, WinningNumber(0, 0))
            if not np.isnan(value):
                wins += int(np.count_nonzero(round_difference(present, np.full(len(present), value)) > 0))
                comparisons += len(present) - 1
            numbers[method] = WinningNumber(wins, comparisons)
    return numbers
