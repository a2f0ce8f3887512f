"""Comparisons of ranking methods on the same queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.significance.method_pairs import (
    EQUAL_WEIGHTS,
    Mask,
    QueryWeighting,
    apply_weights,
    as_values,
    count_differences,
    round_difference,
)
from rankwright.analysis.significance.p_values import (
    holm,
    signed_rank_p_value,
    signed_rank_share,
    standardised_mean,
    t_p_value,
)
from rankwright.analysis.significance.resampling import (
    Interval,
    check_confidence,
    check_resamples,
    flip_p_values,
    mean_intervals,
)
from rankwright.basics.aligned_tables import format_aligned
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, suggest
from rankwright.basics.html_tables import format_html_table

# Comparisons that are resampled together, so that the memory does not grow with the number of methods.
TOGETHER = 256

Names = tuple[str, str]


class PValues(NamedTuple):
    """The two-sided p-values of a comparison by the paired t-test, Wilcoxon's test and the randomisation test."""

    t: float
    wilcoxon: float
    randomisation: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two methods on the queries where both have a value.

    Parameters
    ----------
    first, second : str
        The methods; everything with a sign is positive where the second is better.
    n : int
        The number of pairs: queries where neither method is NaN and that have a weight. With fewer than 2, all but
        the counts and the difference are NaN.
    difference : float
        The mean of second - first, weighted as ``compare`` was asked to.
    low, high : float
        The bootstrap interval of the difference.
    wins, ties, losses : int
        Queries where the second is better, equal (up to rounding), worse.
    p : PValues
        The p-value of each test.
    adjusted : PValues
        The same after Holm's adjustment over all comparisons made in one call.
    effect : float
        Cohen's d of paired values.
    rank_biserial : float
        The matched-pairs rank-biserial correlation.
    """

    first: str
    second: str
    n: int
    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p: PValues
    adjusted: PValues
    effect: float
    rank_biserial: float

    def swap_methods(self) -> Comparison:
        """Return the same comparison seen from the second method."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
            wins=self.losses,
            losses=self.wins,
            effect=-self.effect,
            rank_biserial=-self.rank_biserial,
        )

    def __str__(self) -> str:
        return str(Comparisons([self]))

    def _repr_html_(self) -> str:
        return Comparisons([self])._repr_html_()


class Comparisons(list[Comparison]):
    """A list of comparisons, which ``print`` and a notebook show as a table."""

    def __repr__(self) -> str:
        return f"Comparisons({', '.join(f'{each.second} - {each.first}' for each in self)})"

    def __str__(self) -> str:
        from rankwright.analysis.significance.comparison_table import tabulate_comparisons  # which imports this module

        return format_aligned(tabulate_comparisons(self, "The second method minus the first, paired by query."))

    def _repr_html_(self) -> str:
        names = ("first", "second", "difference", "low", "high", "wins", "ties", "losses")
        rows = [
            (*(getattr(each, name) for name in names), each.p.randomisation, each.adjusted.randomisation)
            for each in self
        ]
        note = (
            "A difference is the second method minus the first, with its bootstrap interval; wins are queries on "
            "which the second is better; p is that of the randomisation test."
        )
        return format_html_table("Comparisons", [*names, "p", "p (Holm)"], rows, note)


_DRAWS, _FLIPS_A_PAIR = 10_000, 200


def compare(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    weight: ArrayLike | None = None,
    fold: ArrayLike | None = None,
    confidence: float = 0.95,
    n: int | None = None,
    random_state: int = 0,
) -> Comparisons:
    """Compare methods on the same queries, every pair or each with a baseline, and return the comparisons.

    Parameters
    ----------
    values : mapping of str to array-like of shape (n_queries,)
        The values of each method, in the same order of queries; NaN where the measure skips a query.
    baseline : str, optional
        The method that comes first in every comparison. Without one every pair is compared, in the order of ``values``.
    weight : array-like of shape (n_queries,), optional
        The weight of each query in a mean; by default all are equal. A query of weight 0 is left out.
    fold : array-like of shape (n_queries,), optional
        The fold of each query: differences are means of the folds' means, so that every fold counts the same.
    confidence : float
        Of the bootstrap intervals.
    n : int, optional
        The number of resamples of the randomisation test and of the bootstrap: by default 10,000, and for the test 200
        for each comparison if that is more, so that Holm's adjustment leaves room for p down to 0.005.
    random_state : int
        The seed; what a comparison finds depends on it, not on the other comparisons (but for ``adjusted``).

    Returns
    -------
    Comparisons
        A list with one for each pair of methods, in the order of ``values``.

    Examples
    --------
    >>> values = {"bm25": [0.1, 0.4, 0.3, 0.2, 0.0], "mine": [0.3, 0.5, 0.7, 0.5, 0.0]}
    >>> [found] = compare(values, baseline="bm25")
    >>> round(found.difference, 3), found.wins, found.ties, found.losses, found.p.randomisation
    (0.2, 4, 1, 0, 0.125)
    """
    check_confidence(confidence)
    table = check_table(values)
    pairs = list_pairs(list(table), baseline)
    weighting = check_weighting(weight, fold, len(next(iter(table.values())))) if pairs else EQUAL_WEIGHTS
    drawn, flips = (_DRAWS, max(_DRAWS, _FLIPS_A_PAIR * len(pairs))) if n is None else (n, n)
    check_resamples(drawn)
    found: dict[Names, Comparison] = {}
    for members, counted in _group_pairs(pairs, table, weighting):
        plain = [round_difference(table[a][counted], table[b][counted]) for a, b in members]
        factors = weighting.factors(counted)
        rows = np.stack([apply_weights(each, factors) for each in plain])
        intervals = mean_intervals(rows, confidence, drawn, random_state)
        flipped = flip_p_values(rows, flips, random_state)
        for names, each, row, interval, p in zip(members, plain, rows, intervals, flipped, strict=True):
            found[names] = _compare_pair(names, each, row, interval, float(p))
    return Comparisons(_adjust_p_values([found[names] for names in pairs]))


def check_table(values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return each method's values by query as an array; raise InputError if methods have more or fewer than others."""
    table = {name: as_values(column, f"the values of {name!r}") for name, column in values.items()}
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        (first, expected), *others = lengths.items()
        name, length = next(item for item in others if item[1] != expected)
        raise InputError(f"{name!r} has {length} values and {first!r} has {expected}; expected the same queries")
    return table


def list_pairs(names: list[str], baseline: str | None) -> list[Names]:
    """Return the pairs of methods to compare: each method with the baseline, or every two methods."""
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise InputError(f"no method {baseline!r} to be the baseline; {suggest(baseline, names)}")
    return [(baseline, name) for name in names if name != baseline]


def check_weighting(weight: ArrayLike | None, fold: ArrayLike | None, n_queries: int) -> QueryWeighting:
    """Return the weighting of queries by weights and folds; raise InputError if these are not as many as queries."""
    weights = None if weight is None else as_values(weight, "weight")
    folds = None if fold is None else np.asarray(fold)
    for what, column in (("weight", weights), ("fold", folds)):
        if column is not None and column.shape != (n_queries,):
            raise InputError(f"{what} has shape {column.shape}; expected one for each of the {n_queries} queries")
    if weights is not None and not (weights >= 0).all():
        raise InputError(f"weight[{int(np.argmin(weights >= 0))}] is negative or NaN; expected 0 or more")
    return QueryWeighting(weights, folds)


def _group_pairs(
    pairs: Sequence[Names], table: Mapping[str, Floats], weighting: QueryWeighting
) -> Iterator[tuple[list[Names], Mask]]:
    """Yield lists of pairs of methods that have values on the same queries, with the flags of those queries."""
    groups: defaultdict[bytes, list[Names]] = defaultdict(list)
    for a, b in pairs:
        groups[weighting.counted(table[a], table[b]).tobytes()].append((a, b))
    for counted, members in groups.items():
        for start in range(0, len(members), TOGETHER):
            yield members[start : start + TOGETHER], np.frombuffer(counted, dtype=np.bool_)


def _compare_pair(names: Names, plain: Floats, d: Floats, interval: Interval, p_randomisation: float) -> Comparison:
    """Return the comparison of two methods: counts from plain differences, all else from weighted ones."""
    p = PValues(t_p_value(d), signed_rank_p_value(d), p_randomisation)
    return Comparison(
        first=names[0],
        second=names[1],
        **count_differences(plain, d)._asdict(),
        low=interval.low,
        high=interval.high,
        p=p,
        adjusted=p,  # a family of one; compare adjusts for its own
        effect=standardised_mean(d),
        rank_biserial=signed_rank_share(d),
    )


def _adjust_p_values(family: list[Comparison]) -> list[Comparison]:
    """Return the comparisons of a family with p-values adjusted by Holm's method."""
    by_test = zip(*(comparison.p for comparison in family), strict=True)
    adjusted = zip(*(holm(p_values).tolist() for p_values in by_test), strict=True)
    return [replace(found, adjusted=PValues(*p)) for found, p in zip(family, adjusted, strict=True)]
