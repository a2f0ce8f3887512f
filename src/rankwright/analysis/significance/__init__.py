"""Significance: whether a difference between two methods on the same queries could be chance, and how large it is.

>>> round(randomisation([0.2, 0.4, 0.3, 0.1], [0.3, 0.6, 0.3, 0.5]), 3)  # 2 of 2^3: one query does not differ
0.25
"""

from rankwright.analysis.significance.comparison import Comparison as Comparison
from rankwright.analysis.significance.comparison import Comparisons as Comparisons
from rankwright.analysis.significance.comparison import PValues as PValues
from rankwright.analysis.significance.comparison import compare as compare
from rankwright.analysis.significance.method_pairs import EQUAL_WEIGHTS as EQUAL_WEIGHTS
from rankwright.analysis.significance.method_pairs import PairCounts as PairCounts
from rankwright.analysis.significance.method_pairs import QueryWeighting as QueryWeighting
from rankwright.analysis.significance.method_pairs import WinningNumber as WinningNumber
from rankwright.analysis.significance.method_pairs import count_wins as count_wins
from rankwright.analysis.significance.method_pairs import winning_number as winning_number
from rankwright.analysis.significance.p_values import cohen_d as cohen_d
from rankwright.analysis.significance.p_values import holm as holm
from rankwright.analysis.significance.p_values import paired_t as paired_t
from rankwright.analysis.significance.p_values import rank_biserial as rank_biserial
from rankwright.analysis.significance.p_values import wilcoxon as wilcoxon
from rankwright.analysis.significance.resampling import Interval as Interval
from rankwright.analysis.significance.resampling import bootstrap_interval as bootstrap_interval
from rankwright.analysis.significance.resampling import randomisation as randomisation
from rankwright.analysis.significance.simultaneous import simultaneous_intervals as simultaneous_intervals
