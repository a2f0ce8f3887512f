"""LETOR's winning number: one figure for many data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rankwright.analysis.significance.method_pairs import as_values, round_difference


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
