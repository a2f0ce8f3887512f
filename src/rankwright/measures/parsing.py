"""Names of measures: the parser, and functions that make measures."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.measures.base import Measure
from rankwright.measures.custom_measure import CustomMeasure, MeasureFunction, takes_two_arguments
from rankwright.measures.definitions import DEFINITIONS
from rankwright.measures.table_measure import TableMeasure

_NAME = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:@(\d+))?\s*(?:\((.*)\))?\s*(?:@(\d+))?\s*")
_KNOWN = {alias: name for name, d in DEFINITIONS.items() for alias in (name, *d.aliases)}
_IR_MEASURES_DCG = {"log2": "linear", "exp-log2": "exp"}  # ir_measures' nDCG(dcg=...)
_custom: dict[str, CustomMeasure] = {}

Maker = Callable[..., TableMeasure]
NDCG: Maker = partial(TableMeasure.of, "ndcg")
DCG: Maker = partial(TableMeasure.of, "dcg")
AP: Maker = partial(TableMeasure.of, "ap")
P: Maker = partial(TableMeasure.of, "p")
Recall: Maker = partial(TableMeasure.of, "recall")
RR: Maker = partial(TableMeasure.of, "rr")
ERR: Maker = partial(TableMeasure.of, "err")
WTA: Maker = partial(TableMeasure.of, "wta")
RBP: Maker = partial(TableMeasure.of, "rbp")


def parse_measure(text: str | Measure) -> Measure:
    """Return the measure that a text such as ``ndcg@10(gain=linear)`` names.

    Besides Rankwright's own names, those of ir_measures and RankLib parse. They mean Rankwright's definitions: to get
    another tool's figures name its dialect, as in ``ndcg@10(dialect=trec_eval)``.

    Parameters
    ----------
    text : str or Measure
        The name; a measure is returned as it is.

    Examples
    --------
    >>> parse_measure("ndcg@10(gain=linear)"), parse_measure("AP(rel=2)@100")
    (ndcg@10(gain=linear), ap@100(rel=2))
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        way_out = "; make_measure makes one of a function" if callable(text) else ""
        raise InputError(f"measure={quote(text)}; expected a name such as 'ndcg@10' or a Measure{way_out}")
    if text in _custom:
        return _custom[text]
    match = _NAME.fullmatch(text)
    if match is None:
        raise InputError(f"cannot read the measure {quote(text)}; expected a name such as ndcg@10 or map(rel=2)")
    head, k1, arguments, k2 = match.groups()
    if head.lower() not in _KNOWN:
        hint = suggest(head.lower(), [*_KNOWN, *_custom])
        cut = f"@{k1 or k2}" if (k1 or k2) and hint.endswith("?") else ""
        raise InputError(f"unknown measure {quote(text)}; {hint.removesuffix('?') + cut + '?' if cut else hint}")
    if k1 and k2:
        raise InputError(f"the measure {quote(text)} has two cut-offs")
    cut = k1 or k2
    return TableMeasure.of(
        _KNOWN[head.lower()], None if cut is None else int(cut), **_parse_options(text, arguments or "")
    )


def make_measure(function: MeasureFunction, name: str) -> CustomMeasure:
    """Make a measure of a Python function of one query's grades in ranked order, with values from 0 to 1.

    A function of two arguments gets, as the second, the grades of judged documents that no run retrieved (TREC data
    have such): they belong to an ideal ranking. The name can then be used wherever a measure's name can.

    Parameters
    ----------
    function : callable
        A function of an array of grades, the first document first; it returns a number from 0 to 1.
    name : str
        The name of the measure; a second measure of this name replaces the first.

    Examples
    --------
    >>> top = make_measure(lambda grades: float(grades[0] >= 2), name="top_is_good")
    >>> parse_measure("top_is_good")
    top_is_good
    """
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise InputError(f"{name!r} cannot name a measure; use letters, digits, '_', '.' and '-'")
    if name.lower() in _KNOWN:
        raise InputError(f"{name!r} is a built-in measure; choose another name")
    _custom[name] = CustomMeasure(name, function, takes_two_arguments(function))
    return _custom[name]


def split_measures(text: str) -> list[str]:
    """Split a text at the commas outside parentheses into a list of measures' names.

    >>> split_measures("ndcg@10(gain=linear,empty=skip), map")
    ['ndcg@10(gain=linear,empty=skip)', 'map']
    """
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _parse_options(text: str, arguments: str) -> dict[str, object]:
    """Return the options in the parentheses of a measure's name, given as ``option=value, ...``, as a dict."""
    options: dict[str, object] = {}
    for argument in filter(None, (part.strip() for part in arguments.split(","))):
        option, equals, value = (part.strip() for part in argument.partition("="))
        value = value.strip("'\"")
        if not equals or not value:
            raise InputError(f"cannot read {quote(argument)} in {quote(text)}; expected option=value")
        if option == "dcg" and value in _IR_MEASURES_DCG:
            option, value = "gain", _IR_MEASURES_DCG[value]
        if option in options:
            raise InputError(f"{option} is given twice in {quote(text)}")
        options[option] = value
    return options
