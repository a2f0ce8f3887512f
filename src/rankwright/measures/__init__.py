"""Measures: immutable values that print, parse and compare, and are bound to queries for evaluation.

>>> parse("nDCG@10")
ndcg@10
>>> NDCG(10, gain="linear")
ndcg@10(gain=linear)
>>> parse("AP(rel=2)@100") == AP(100, rel=2)
True
"""

from rankwright.measures.base import (
    BoundMeasure,
    Jumps,
    Lines,
    Measure,
    MeasureArrays,
    Tally,
    bound_values,
    check_counted,
    values_of_found,
    weighted_mean,
)
from rankwright.measures.custom import CustomMeasure
from rankwright.measures.definitions import DEFINITIONS
from rankwright.measures.dialects import DIALECTS
from rankwright.measures.parsing import AP, DCG, ERR, NDCG, RBP, RR, WTA, P, Recall, measure, parse, split
from rankwright.measures.table import BoundTable, TableMeasure

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
    "BoundMeasure",
    "BoundTable",
    "CustomMeasure",
    "Jumps",
    "Lines",
    "Measure",
    "MeasureArrays",
    "P",
    "Recall",
    "TableMeasure",
    "Tally",
    "bound_values",
    "check_counted",
    "measure",
    "parse",
    "split",
    "values_of_found",
    "weighted_mean",
]
