"""Dialects: for each tool and measure, the options that give the tool's own figures.

An entry is the tool's options for a measure, or the reason why Rankwright refuses it. The tool does not define the
measures that are not listed. ``docs/measures.md`` says where each rule comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dialect:
    """The rules of one evaluation tool, such as trec_eval: its options for each measure, and its limits.

    Parameters
    ----------
    measures : mapping of str to (mapping or str)
        By measure: the options that differ from Rankwright's own, or the reason to refuse it.
    integers_only : bool
        Whether the tool takes integer grades only.
    max_grade : int, optional
        The highest grade the tool knows.
    without_cut_off : mapping of str to (int or str)
        By measure, the meaning of a name without a cut-off: a cut-off, or the reason to refuse it.
    """

    measures: Mapping[str, Mapping[str, str | float] | str]
    integers_only: bool = False
    max_grade: int | None = None
    without_cut_off: Mapping[str, int | str] = field(default_factory=dict)


_LETOR_NDCG = {"discount": "letor", "short": "zero", "ties": "file"}
_FILE = {"ties": "file"}
_NO_CUT = "RankLib's MAP has no cut-off: use map(dialect=ranklib)"
_LIBRARY_MAP = {"norm": "min", "empty": "1", "ties": "file"}
_TREC = {"ties": "docid"}

DIALECTS: Mapping[str, Dialect] = {
    "letor3": Dialect(
        {"ndcg": _LETOR_NDCG, "map": _FILE, "p": {"short": "zero", "ties": "file"}}, integers_only=True, max_grade=2
    ),
    "letor4": Dialect({"ndcg": _LETOR_NDCG, "map": _FILE, "p": _FILE}, integers_only=True, max_grade=2),
    "mslr": Dialect(
        {"ndcg": _LETOR_NDCG, "map": {"rel": 2, "ties": "file"}, "p": {"rel": 2, "ties": "file"}},
        integers_only=True,
        max_grade=4,
    ),
    "ranklib": Dialect(
        {
            "ndcg": _FILE,
            "dcg": _FILE,
            "map": _FILE,
            "ap": _NO_CUT,
            "p": {"short": "list", "ties": "file"},
            "err": _FILE,
            "rr": _FILE,
        },
        integers_only=True,
        without_cut_off={"rr": "RankLib reads RR without a cut-off as RR@0 and prints 0: use rr@k(dialect=ranklib)"},
    ),
    "trec_eval": Dialect(
        {
            "ndcg": {"gain": "linear", "ties": "docid"},
            "map": _TREC,
            "ap": _TREC,
            "p": _TREC,
            "recall": _TREC,
            "rr": _TREC,
        },
        integers_only=True,
    ),
    "lightgbm": Dialect(
        {"ndcg": {"empty": "1", "ties": "file"}, "map": _LIBRARY_MAP, "ap": _LIBRARY_MAP},
        integers_only=True,
        max_grade=30,
    ),
    "xgboost": Dialect(
        {"ndcg": {"empty": "1", "ties": "file"}, "map": _LIBRARY_MAP, "ap": _LIBRARY_MAP},
        integers_only=True,
        max_grade=31,
        without_cut_off={"ndcg": 32, "map": 32},
    ),
    "catboost": Dialect(
        {
            "ndcg": {"gain": "linear", "empty": "1"},
            "map": {"norm": "min"},
            "ap": {"norm": "min"},
            "rr": {},
            "err": "CatBoost takes the grade itself as a probability, so its ERR exceeds 1 on graded labels",
        }
    ),
    "sklearn": Dialect({"ndcg": {"gain": "linear", "ties": "average"}, "dcg": {"gain": "linear", "ties": "average"}}),
}
