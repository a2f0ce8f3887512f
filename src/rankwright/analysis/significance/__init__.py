"""Significance: whether a difference between two methods on the same queries could be chance, and how large it is.

>>> round(randomisation([0.2, 0.4, 0.3, 0.1], [0.3, 0.6, 0.3, 0.5]), 3)  # 2 of 2^3: one query does not differ
0.25
"""

from rankwright.analysis.significance.comparison import Comparison, PValues, compare
from rankwright.analysis.significance.method_pairs import EQUAL_WEIGHTS, PairCounts, QueryWeighting, count_wins
from rankwright.analysis.significance.p_values import cohen_d, holm, paired_t, rank_biserial, wilcoxon
from rankwright.analysis.significance.resampling import Interval, bootstrap_interval, randomisation
from rankwright.analysis.significance.winning_number import WinningNumber, winning_number

__all__ = [
    "EQUAL_WEIGHTS",
    "Comparison",
    "Interval",
    "PValues",
    "PairCounts",
    "QueryWeighting",
    "WinningNumber",
    "bootstrap_interval",
    "cohen_d",
    "compare",
    "count_wins",
    "holm",
    "paired_t",
    "randomisation",
    "rank_biserial",
    "wilcoxon",
    "winning_number",
]
