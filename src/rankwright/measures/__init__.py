"""Measures: immutable values that print, parse and compare, and are bound to queries for evaluation.

>>> parse_measure("nDCG@10")
ndcg@10
>>> NDCG(10, gain="linear")
ndcg@10(gain=linear)
>>> parse_measure("AP(rel=2)@100") == AP(100, rel=2)
True
"""

from rankwright.measures.base import (
    Jumps,
    Lines,
    Measure,
    MeasureArrays,
    PreparedMeasure,
    Tally,
    check_counted,
    compute_retrieved_values,
    compute_values,
    weighted_mean,
)
from rankwright.measures.custom import CustomMeasure
from rankwright.measures.definitions import DEFINITIONS
from rankwright.measures.dialects import DIALECTS
from rankwright.measures.parsing import (
    AP,
    DCG,
    ERR,
    NDCG,
    RBP,
    RR,
    WTA,
    P,
    Recall,
    make_measure,
    parse_measure,
    split_measures,
)
from rankwright.measures.table import PreparedTableMeasure, TableMeasure

__all__ = [
    "AP",
    "DCG",
    "DEFINITIONS",
    "DIALECTS",
    "ERR",
    "NDCG",
    "RBP",
    "RR",
    "WTA",
    "CustomMeasure",
    "Jumps",
    "Lines",
    "Measure",
    "MeasureArrays",
    "P",
    "PreparedMeasure",
    "PreparedTableMeasure",
    "Recall",
    "TableMeasure",
    "Tally",
    "check_counted",
    "compute_retrieved_values",
    "compute_values",
    "make_measure",
    "parse_measure",
    "split_measures",
    "weighted_mean",
]
