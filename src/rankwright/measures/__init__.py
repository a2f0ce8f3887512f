"""Measures: immutable values that print, parse and compare, and are prepared for queries.

>>> parse_measure("nDCG@10")
ndcg@10
>>> NDCG(10, gain="linear")
ndcg@10(gain=linear)
>>> parse_measure("AP(rel=2)@100") == AP(100, rel=2)
True
"""

from rankwright.kernels.measures.measure_values import MeasureArrays as MeasureArrays
from rankwright.measures.base import Measure as Measure
from rankwright.measures.base import PreparedMeasure as PreparedMeasure
from rankwright.measures.base import check_counted as check_counted
from rankwright.measures.base import compute_retrieved_values as compute_retrieved_values
from rankwright.measures.base import compute_values as compute_values
from rankwright.measures.base import weighted_mean as weighted_mean
from rankwright.measures.custom_measure import CustomMeasure as CustomMeasure
from rankwright.measures.definitions import DEFINITIONS as DEFINITIONS
from rankwright.measures.dialects import DIALECTS as DIALECTS
from rankwright.measures.jumps import Jumps as Jumps
from rankwright.measures.jumps import JumpTotals as JumpTotals
from rankwright.measures.jumps import ScoreLines as ScoreLines
from rankwright.measures.parsing import AP as AP
from rankwright.measures.parsing import DCG as DCG
from rankwright.measures.parsing import ERR as ERR
from rankwright.measures.parsing import NDCG as NDCG
from rankwright.measures.parsing import RBP as RBP
from rankwright.measures.parsing import RR as RR
from rankwright.measures.parsing import WTA as WTA
from rankwright.measures.parsing import P as P
from rankwright.measures.parsing import Recall as Recall
from rankwright.measures.parsing import make_measure as make_measure
from rankwright.measures.parsing import parse_measure as parse_measure
from rankwright.measures.parsing import split_measures as split_measures
from rankwright.measures.table_measure import PreparedTableMeasure as PreparedTableMeasure
from rankwright.measures.table_measure import TableMeasure as TableMeasure
