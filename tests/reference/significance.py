"""Statistics straight from their definitions, on exact numbers (integers or fractions) where the outcome is a count."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import inf, nan
from statistics import mean, stdev


def paired(a, b):
    """The differences b - a of the queries that both have; None is a skipped query."""
    return [y - x for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def randomisation(d):
    """The share of all ways to give signs whose sum is at least as far from zero."""
    if len(d) < 2:
        return nan
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in product([-1, 1], repeat=len(d))]
    return Fraction(sum(abs(s) >= abs(sum(d)) for s in sums), len(sums))


def ranks(d):
    """The rank of each |d|, equal ones sharing their mean: how many are smaller, and half of the equal ones."""
    size = [abs(x) for x in d]
    return [sum(y < x for y in size) + Fraction(sum(y == x for y in size) + 1, 2) for x in size]


def wilcoxon(d):
    """Twice the smaller tail of the sum of positive ranks, over all ways to give signs."""
    if len(d) < 2:
        return nan
    r = ranks([x for x in d if x])
    observed = sum(rank for rank, x in zip(r, [x for x in d if x], strict=True) if x > 0)
    sums = [sum(rank for rank, up in zip(r, ups, strict=True) if up) for ups in product([0, 1], repeat=len(r))]
    tails = sum(s >= observed for s in sums), sum(s <= observed for s in sums)
    return min(Fraction(1), Fraction(2 * min(tails), len(sums)))


def rank_biserial(d):
    if len(d) < 2:
        return nan
    r = ranks([x for x in d if x])
    signed = [rank if x > 0 else -rank for rank, x in zip(r, [x for x in d if x], strict=True)]
    return Fraction(sum(signed)) / sum(r) if r else 0


def cohen_d(d):
    if len(d) < 2:
        return nan
    if len(set(d)) == 1:
        return 0 if d[0] == 0 else inf if d[0] > 0 else -inf
    return mean(d) / stdev(d)


def holm(p):
    """Closed testing: a hypothesis is as doubtful as the worst Bonferroni test of any set that it belongs to."""
    numbers = [i for i, x in enumerate(p) if x == x]
    sets = [s for size in range(1, len(numbers) + 1) for s in combinations(numbers, size)]
    return [
        max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) if i in numbers else nan
        for i in range(len(p))
    ]


def winning_number(tables):
    """(wins, comparisons) of each method."""
    methods = list(dict.fromkeys(method for table in tables.values() for method in table))
    result = {}
    for i in methods:
        met = [(table[i], table[k]) for table in tables.values() for k in methods if k != i and {i, k} <= table.keys()]
        result[i] = (sum(mine > other for mine, other in met), len(met))
    return result
