"""Model texts of RankLib: MART, LambdaMART, Random Forests, RankBoost, AdaRank, Coordinate Ascent and the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.float32_thresholds import round_down_to_float32
from rankwright.models.imports.ranklib_networks import parse_network
from rankwright.models.imports.ranklib_trees import Token, parse_doubles, parse_ensembles, parse_feature_id
from rankwright.models.model import Model
from rankwright.scorers import Linear, Scorer, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree

TAKES_N_FEATURES = True  # the texts name the features they use, and not how many there are
_MAX_ID = 1_000_000  # of a feature: a short text must not need much memory
_LARGEST = float(np.finfo(np.float32).max)

Lines = Sequence[str]
Found = tuple[Callable[[int], Scorer], int, Mapping[str, Any]]  # what makes the scorer, the largest id, the record


def recognises_object(source: Any) -> bool:
    """Return False: RankLib has no objects in Python."""
    return False


def recognises_file(data: bytes) -> bool:
    """Return whether the content of a file is a model text of RankLib, which begins with ## and a name."""
    return data.startswith(b"## ")


def import_object(source: Any) -> Model:
    """Raise InputError: RankLib has no objects in Python."""
    raise InputError("RankLib has no objects in Python; expected the path of its model text")


def import_file(data: bytes, n_features: int | None = None) -> Model:
    """Return the model of a text; it takes a missing value as 0, as RankLib does.

    Its number of features is the largest id in the text, or ``n_features`` if that is given. The parameters of the
    model keep the name of the text's form and the order of its terms, so that an export writes the same text.
    """
    lines = re.split("\r\n|\r|\n", data.decode("latin-1"))
    form = lines[0].replace("## ", "").strip()
    known = {name.lower(): name for name in _PARSERS}
    if form.lower() not in known:
        raise InputError(f"line 1: a RankLib model called {quote(form)}; expected one of {', '.join(_PARSERS)}")
    form = known[form.lower()]
    make_scorer, largest, record = _PARSERS[form](lines)
    if largest > _MAX_ID:
        raise InputError(f"a feature with the number {largest}; expected at most {_MAX_ID}")
    n = largest if n_features is None else n_features
    if not largest <= n <= _MAX_ID:
        raise InputError(f"n_features={n}; expected {largest}, the largest feature of the text, to {_MAX_ID}")
    return Model("RankLib", {"form": form, **record}, "ndcg@10", make_scorer(n), n)


def _find_line(lines: Lines) -> Token:
    """Return the one line with the terms of a model, without the comment behind them."""
    found = [
        Token(line.strip(), number)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.strip().startswith("##")
    ]
    if not found:
        raise InputError(f"line {len(lines)}: the text ends; expected a line of weights")
    if len(found) > 1:
        raise InputError(f"line {found[1].line}: {quote(found[1].text)} behind the weights; expected nothing")
    text, mark, _ = found[0].text.rpartition("#")
    return Token(text.strip(), found[0].line) if mark else found[0]


def _split_terms(line: Token, n_parts: int) -> list[list[Token]]:
    """Return for each part of the terms, such as id and weight, its texts; at least one term."""
    terms = [term.split(":") for term in line.text.split(" ") if term]
    for term in terms:
        if len(term) != n_parts:
            expected = "id:weight" if n_parts == 2 else "id:threshold:weight"
            raise InputError(f"line {line.line}: {quote(':'.join(term))}; expected {expected}, and blanks between")
    if not terms:
        raise InputError(f"line {line.line}: no weights; expected at least one")
    return [[Token(part, line.line) for part in parts] for parts in zip(*terms, strict=True)]


def _parse_finite(tokens: Sequence[Token]) -> Floats:
    """Return decimal numbers; raise InputError if one is infinite."""
    found = parse_doubles(tokens)
    for i in np.flatnonzero(~np.isfinite(found))[:1].tolist():
        raise InputError(f"line {tokens[i].line}: the number {quote(tokens[i].text)}; expected a finite one")
    return found


def parse_terms(line: Token) -> tuple[Ints, Floats]:
    """Return the ids and the weights of a linear model, in the order of the text."""
    ids, weights = _split_terms(line, 2)
    return np.array([parse_feature_id(token) for token in ids], dtype=np.int64), _parse_finite(weights)


def sum_terms(ids: Ints, weights: Floats, n_features: int) -> Floats:
    """Return the weight of each feature: an id may occur several times, and its weights add up."""
    coef = np.zeros(n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(coef, ids - 1, weights)
    if not np.isfinite(coef).all():
        raise InputError("weights of a feature that add up to infinity; expected finite sums")
    return coef


def _parse_linear(lines: Lines) -> Found:
    """Parse Coordinate Ascent and AdaRank: weights of features."""
    line = _find_line(lines)
    ids, weights = parse_terms(line)
    is_sorted = bool((np.diff(ids) > 0).all())
    return lambda n: Linear(sum_terms(ids, weights, n)), int(ids.max()), {} if is_sorted else {"terms": line.text}


def _parse_regression(lines: Lines) -> Found:
    """Parse Linear Regression: weights of features, and an intercept with the id 0."""
    line = _find_line(lines)
    terms = [term for term in line.text.split(" ") if term]
    constants = [term for term in terms if re.match("0+:", term)]
    if len(constants) != 1:
        raise InputError(f"line {line.line}: {len(constants)} intercepts, with the id 0; expected one")
    intercept = float(_parse_finite(_split_terms(Token(constants[0], line.line), 2)[1])[0])
    own = Token(" ".join(term for term in terms if term != constants[0]), line.line)
    if not own.text:
        return lambda n: Linear(np.zeros(n), intercept), 1, {}
    ids, weights = parse_terms(own)
    is_sorted = bool((np.diff(ids) > 0).all())
    record = {} if is_sorted else {"terms": own.text}
    return lambda n: Linear(sum_terms(ids, weights, n), intercept), int(ids.max()), record


def _parse_rankboost(lines: Lines) -> Found:
    """Parse RankBoost: stumps, which compare in double precision; for float32 values float32 thresholds are equal."""
    line = _find_line(lines)
    own_ids, thresholds, own_weights = _split_terms(line, 3)
    ids = np.array([parse_feature_id(token) for token in own_ids], dtype=np.int64)
    threshold, weight = parse_doubles(thresholds), _parse_finite(own_weights)
    is_always_above, is_split = threshold < -_LARGEST, np.abs(threshold) <= _LARGEST
    at = round_down_to_float32(threshold[is_split]).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        stumps = Stumps(ids[is_split] - 1, at, weight[is_split], at < 0.0)
        constant = float(weight[is_always_above].sum())
    if not np.isfinite([*stumps.steps.values, constant]).all():
        raise InputError(f"line {line.line}: weights that add up to infinity; expected finite sums")
    scorer: Scorer = WeightedSum([stumps], np.ones(1), constant) if constant else stumps
    return lambda n: scorer, int(ids.max()), {}


def _parse_boosted_trees(lines: Lines) -> Found:
    """Parse MART and LambdaMART: one sum of trees."""
    ensembles = parse_ensembles(lines)
    if len(ensembles) != 1:
        raise InputError(f"line {len(lines)}: {len(ensembles)} ensembles of trees; expected one")
    return _make_trees(ensembles[0], len(lines), {})


def _parse_forests(lines: Lines) -> Found:
    """Parse Random Forests: the mean of several sums of trees."""
    ensembles = parse_ensembles(lines)
    n = len(ensembles)
    trees = [
        Tree({**tree.columns, "leaf_value": tree.values / n}, tree.shrinkage / n)
        for ensemble in ensembles
        for tree in ensemble
    ]
    return _make_trees(trees, len(lines), {"bags": [len(ensemble) for ensemble in ensembles]})


def _make_trees(trees: Sequence[Tree], n_lines: int, record: Mapping[str, Any]) -> Found:
    """Return trees as a scorer; raise InputError if there are none."""
    if not trees:
        raise InputError(f"line {n_lines}: the text ends; expected at least one tree")
    used = [int(tree.columns["split_feature"].max(initial=0)) for tree in trees]
    return lambda n: Trees(Forest.from_trees(trees, n)), max(used) + 1, record


def _parse_networks(lines: Lines) -> Found:
    """Parse RankNet, LambdaRank and ListNet: networks with a sigmoid in every neuron."""
    own = [Token(line.strip(), number) for number, line in enumerate(lines, start=1)]
    make_scorer, largest = parse_network([token for token in own if token.text and not token.text.startswith("##")])
    return make_scorer, largest, {}


_PARSERS: dict[str, Callable[[Lines], Found]] = {
    "MART": _parse_boosted_trees,
    "LambdaMART": _parse_boosted_trees,
    "Random Forests": _parse_forests,
    "RankBoost": _parse_rankboost,
    "AdaRank": _parse_linear,
    "Coordinate Ascent": _parse_linear,
    "Linear Regression": _parse_regression,
    "RankNet": _parse_networks,
    "LambdaRank": _parse_networks,
    "ListNet": _parse_networks,
}
