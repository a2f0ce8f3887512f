"""Comparisons of ranking methods on the same queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.data import Floats
from rankwright.errors import InputError, suggest
from rankwright.significance.effects import signed_rank_share, standardised_mean
from rankwright.significance.p_values import holm, signed_rank_p_value, t_p_value
from rankwright.significance.pairs import as_values, rounded_difference
from rankwright.significance.resampling import (
    Interval,
    check_confidence,
    check_resamples,
    flip_p_values,
    mean_intervals,
)

# Comparisons that are resampled together, so that the memory does not grow with the number of methods.
TOGETHER = 256

Names = tuple[str, str]
Mask = NDArray[np.bool_]


class PValues(NamedTuple):
    """The two-sided p-value of each test; see ``paired_t``, ``wilcoxon`` and ``randomisation``."""

    t: float
    wilcoxon: float
    randomisation: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What tells two methods apart on the queries that both count; every query counts the same, whatever its weight.

    Parameters
    ----------
    first, second : str
        The methods; everything with a sign is positive where the second is better.
    n : int
        The number of pairs: queries where neither method is NaN. With fewer than 2, all but the counts and
        the difference are NaN.
    difference : float
        The mean of second - first.
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

    def turned(self) -> Comparison:
        """The same comparison seen from the second method."""
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


_DRAWS, _FLIPS_A_PAIR = 10_000, 200


def compare(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    confidence: float = 0.95,
    n: int | None = None,
    random_state: int = 0,
) -> list[Comparison]:
    """Compare methods on the same queries: every pair, or each with a baseline.

    Parameters
    ----------
    values : mapping of str to array-like of shape (n_queries,)
        The values of each method, in the same order of queries; NaN where the measure skips a query.
    baseline : str, optional
        The method that comes first in every comparison. Without one every pair is compared, in the order of ``values``.
    confidence : float
        Of the bootstrap intervals.
    n : int, optional
        The number of resamples of the randomisation test and of the bootstrap: by default 10,000, and for the test 200
        for each comparison if that is more, so that Holm's adjustment leaves room for p down to 0.005.
    random_state : int
        The seed; what a comparison finds depends on it, not on the other comparisons (but for ``adjusted``).

    Returns
    -------
    list of Comparison

    Examples
    --------
    >>> values = {"bm25": [0.1, 0.4, 0.3, 0.2, 0.0], "mine": [0.3, 0.5, 0.7, 0.5, 0.0]}
    >>> [found] = compare(values, baseline="bm25")
    >>> round(found.difference, 3), found.wins, found.ties, found.losses, found.p.randomisation
    (0.2, 4, 1, 0, 0.125)
    """
    check_confidence(confidence)
    table = _table(values)
    pairs = _pairs(list(table), baseline)
    drawn, flips = (_DRAWS, max(_DRAWS, _FLIPS_A_PAIR * len(pairs))) if n is None else (n, n)
    check_resamples(drawn)
    found: dict[Names, Comparison] = {}
    for members, counted in _sharing(pairs, table):
        rows = np.stack([rounded_difference(table[a][counted], table[b][counted]) for a, b in members])
        intervals = mean_intervals(rows, confidence, drawn, random_state)
        flipped = flip_p_values(rows, flips, random_state)
        for names, row, interval, p in zip(members, rows, intervals, flipped, strict=True):
            found[names] = _comparison(names, row, interval, float(p))
    return _adjusted([found[names] for names in pairs])


def _table(values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    table = {name: as_values(column, f"the values of {name!r}") for name, column in values.items()}
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        (first, expected), *others = lengths.items()
        name, length = next(item for item in others if item[1] != expected)
        raise InputError(f"{name!r} has {length} values and {first!r} has {expected}; expected the same queries")
    return table


def _pairs(names: list[str], baseline: str | None) -> list[Names]:
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise InputError(f"no method {baseline!r} to be the baseline; {suggest(baseline, names)}")
    return [(baseline, name) for name in names if name != baseline]


def _sharing(pairs: Sequence[Names], table: Mapping[str, Floats]) -> Iterator[tuple[list[Names], Mask]]:
    """Pairs that count the same queries, and those queries: they can share their resamples."""
    absent = {name: np.isnan(column) for name, column in table.items()}
    groups: defaultdict[bytes, list[Names]] = defaultdict(list)
    for a, b in pairs:
        groups[(~(absent[a] | absent[b])).tobytes()].append((a, b))
    for counted, members in groups.items():
        for start in range(0, len(members), TOGETHER):
            yield members[start : start + TOGETHER], np.frombuffer(counted, dtype=np.bool_)


def _comparison(names: Names, d: Floats, interval: Interval, p_randomisation: float) -> Comparison:
    p = PValues(t_p_value(d), signed_rank_p_value(d), p_randomisation)
    wins, losses = int(np.count_nonzero(d > 0)), int(np.count_nonzero(d < 0))
    return Comparison(
        first=names[0],
        second=names[1],
        n=len(d),
        difference=float(d.mean()) if len(d) else float("nan"),
        low=interval.low,
        high=interval.high,
        wins=wins,
        ties=len(d) - wins - losses,
        losses=losses,
        p=p,
        adjusted=p,  # a family of one; compare adjusts for its own
        effect=standardised_mean(d),
        rank_biserial=signed_rank_share(d),
    )


def _adjusted(family: list[Comparison]) -> list[Comparison]:
    by_test = zip(*(comparison.p for comparison in family), strict=True)
    adjusted = zip(*(holm(p_values).tolist() for p_values in by_test), strict=True)
    return [replace(found, adjusted=PValues(*p)) for found, p in zip(family, adjusted, strict=True)]
