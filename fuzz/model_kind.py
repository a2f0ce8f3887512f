"""Saved models."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz import reference_model
from fuzz.cases import Kind
from fuzz.mutation import NO_NUMBERS, NUMBERS, maybe, mutate_bytes, wrap_text
from fuzz.trees import change_value, dump
from rankwright import InputError, Model, explain, load
from rankwright.models.model_json import format_model, parse_model

_MOST_SCORED = 50  # features of documents that are scored
_LARGE = 1e100  # scores that are larger may be infinite, or not, by the order of their sums
_TEXTS = ("AdaRank", "", "x\x1b[2J\r", "\u202e", "\ud800", "a\nb", "\0", "n" * 300)


class Loaded(NamedTuple):
    """A model, and the scores of some documents if they are finite."""

    model: Model
    scores: list[float] | None


class Models(Kind):
    """A model as JSON."""

    name = "model"

    def make(self, rng: Random) -> bytes:
        """Make a model, most of the time damaged in one place."""
        content = _make_model(rng)
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            change_value(rng, content)
        data = dump(content, rng).encode("utf-8", errors="surrogatepass")
        if maybe(rng, 0.2):
            data = mutate_bytes(rng, data)
        return wrap_text(rng, data) if maybe(rng, 0.3) else data

    def reference(self, data: bytes) -> reference_model.Content | None:
        """Read it the obvious way."""
        return reference_model.read_model(data)

    def read(self, data: bytes) -> Loaded:
        """Load it, use it, and load what is saved of it."""
        model = load(self.write(data))
        for use in (explain, lambda model: parse_model(format_model(model).encode(), "again")):
            try:
                str(use(model))
            except InputError:  # it has no function for each feature
                continue
        return Loaded(model, _score(model))

    def difference(self, expected: reference_model.Content, found: Loaded) -> str:
        """Compare what it says, and how it scores."""
        model = found.model
        said = (model.ranker, model.params, model.measure, model.n_features, model.scaling is not None, model.history)
        if said != (*expected[:4], expected.scaled, expected.history):
            return "what is said of the model"
        if (None if model.features is None else list(model.features)) != expected.features:
            return "the names of features"
        if model.scorer.kind != expected.kind:
            return "the kind of scorer"
        return _compare_scores(expected, found.scores)


def _documents(model_features: int, missing: bool) -> Any:
    rows = [np.linspace(-1.0, 2.0, model_features), np.zeros(model_features), np.full(model_features, 0.5)]
    if missing:
        rows.append(np.full(model_features, np.nan))
    return np.array(rows, dtype=np.float32)


def _score(model: Model) -> list[float] | None:
    if model.n_features > _MOST_SCORED or model.scaling is not None:
        return None
    try:
        scores: list[float] = model.predict(_documents(model.n_features, model.scorer.allow_nan)).tolist()
    except InputError:  # they are not finite
        return None
    return scores


def _compare_scores(expected: reference_model.Content, scores: list[float] | None) -> str:
    if expected.n_features > _MOST_SCORED or expected.scaled:
        return ""
    missing = expected.kind == "trees" or (scores is not None and len(scores) == 4)
    try:
        wanted = [expected.score([float(v) for v in row]) for row in _documents(expected.n_features, missing)]
    except OverflowError:
        return ""
    if not all(abs(value) < _LARGE for value in wanted):
        return ""
    if scores is None:
        return "scores that are finite"
    close = len(scores) == len(wanted) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(scores, wanted, strict=True)
    )
    return "" if close else "a score"


def _make_model(rng: Random) -> dict[str, Any]:
    n = rng.choice((1, 2, 3, 4))
    kind = rng.choice(tuple(_MAKERS))
    return {
        "format": "rankwright",
        "version": 1,
        "ranker": rng.choice(_TEXTS),
        "params": {"alpha": 1.0, "text": rng.choice(_TEXTS), "nested": {"a": [1, None, True]}, **_features(rng)},
        "measure": rng.choice(("ndcg@10", "map", "", "x")),
        "n_features": n,
        "features": [f"{rng.choice(_TEXTS)}{i}" for i in range(n)] if maybe(rng, 0.3) else None,
        "scaling": {"kind": "query"} if maybe(rng, 0.1) else None,
        "scorer": {"kind": kind, **_MAKERS[kind](rng, n)},
        "history": [{"round": i, "train": 0.5, "valid": None} for i in range(rng.randrange(3))],
    }


def _features(rng: Random) -> dict[str, Any]:
    """Parameters that name features."""
    lists = rng.choice(([[1, 2], ["bm25"]], [[1], 2], [[0]]))
    both = {"feature": rng.choice((1, 25, "bm25", 0, None)), "lightgbm_params": {"interaction_constraints": lists}}
    return {name: both[name] for name in both if maybe(rng, 0.1)}


def _weight(rng: Random) -> Any:
    return rng.choice((0, 1, -1, 1e308, -1e308, 1e-320, 3e38, 2**53 + 1)) if maybe(rng, 0.05) else rng.gauss(0, 1)


def _weights(rng: Random, n: int) -> list[Any]:
    return [_weight(rng) for _ in range(n)]


def _stumps(rng: Random, n: int) -> dict[str, Any]:
    size = rng.randrange(6)
    missing = [rng.randrange(2) for _ in range(size)] if maybe(rng, 0.5) else None
    columns = {
        "feature": [rng.randrange(n) for _ in range(size)],
        "threshold": [rng.choice((0, 0.5, -1.5)) for _ in range(size)],
    }
    return columns | {"weight": _weights(rng, size), "missing": missing}


def _kernel(rng: Random, n: int) -> dict[str, Any]:
    size, name = rng.randrange(1, 4), rng.choice(("rbf", "laplacian", "poly", "sigmoid", "linear"))
    scalars = {"kernel": name, "gamma": abs(_weight(rng)), "coef0": _weight(rng), "degree": rng.randrange(1, 4)}
    vectors = {"mean": _weights(rng, n), "factor": _weights(rng, n), "dual": _weights(rng, size)}
    return scalars | vectors | {"landmarks": [_weights(rng, n) for _ in range(size)], "intercept": _weight(rng)}


def _network(rng: Random, n: int) -> dict[str, Any]:
    widths = [n, *(rng.randrange(1, 4) for _ in range(rng.randrange(3))), 1]
    layers = [{"weights": [_weights(rng, b) for _ in range(a)], "bias": _weights(rng, b)} for a, b in pairwise(widths)]
    activation = rng.choice(("relu", "tanh", "sigmoid", "silu", "gelu"))
    return {"activation": activation, "mean": _weights(rng, n), "factor": _weights(rng, n), "layers": layers}


def _lightgbm(rng: Random, n: int) -> dict[str, Any]:
    lines = ["tree", f"version=v{rng.choice('34')}", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    lines += [f"max_feature_idx={n - 1}", f"feature_names={' '.join(f'f{i}' for i in range(n))}"]
    lines += [f"feature_infos={' '.join(rng.choice(('none', '[0:1]')) for _ in range(n))}"]
    if maybe(rng, 0.2):
        lines.append(f"monotone_constraints={' '.join(rng.choice(('-1', '0', '1')) for _ in range(n))}")
    lines += ["tree_sizes=1", ""]
    for i in range(rng.randrange(1, 4)):
        lines += [f"Tree={i}", *_tree_lines(rng, n, rng.choice((1, 2, 2, 3, 5))), ""]
    lines += ["end of trees", "", "parameters:", "end of parameters", ""]
    for _ in range(rng.choice((0, 0, 1))):
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(
            ([], [lines[at]] * 2, [_damage_line(rng, lines[at])], [lines[at], "average_output"])
        )
    return {"lightgbm": "\n".join(lines)}


def _tree_lines(rng: Random, n: int, leaves: int) -> list[str]:
    left, right = _shape(rng, leaves)
    nodes = range(leaves - 1)
    columns: dict[str, list[Any]] = {
        "split_feature": [rng.randrange(n) for _ in nodes],
        "split_gain": [abs(rng.gauss(0, 1)) for _ in nodes],
        "threshold": [rng.choice((0.0, 0.5, -1.0, "inf", 1e300)) for _ in nodes],
        "decision_type": [rng.choice((0, 2, 8, 10)) for _ in nodes],
        "left_child": left,
        "right_child": right,
        "leaf_value": _weights(rng, leaves),
        "leaf_weight": [1.0] * leaves,
        "leaf_count": [3] * leaves,
        "internal_value": _weights(rng, leaves - 1),
        "internal_weight": [1.0] * (leaves - 1),
        "internal_count": [5] * (leaves - 1),
    }
    lines = [f"num_leaves={leaves}", "num_cat=0"]
    lines += [f"{name}={' '.join(map(str, column))}" for name, column in columns.items()]
    return [*lines, "is_linear=0", "shrinkage=0.1"]


def _shape(rng: Random, leaves: int) -> tuple[list[int], list[int]]:
    """Children of nodes that make a tree: every split takes the place of a leaf."""
    left, right = [-1] * (leaves - 1), [-2] * (leaves - 1)
    places: list[tuple[list[int], int]] = []
    for node in range(leaves - 1):
        if node:
            side, at = places.pop(rng.randrange(len(places)))
            side[at] = node
        places += [(left, node), (right, node)]
    for leaf, (side, at) in enumerate(places):
        side[at] = -leaf - 1
    return left, right


def _damage_line(rng: Random, line: str) -> str:
    name, mark, values = line.partition("=")
    words = values.split(" ")
    words[rng.randrange(len(words))] = rng.choice(
        (*NUMBERS, *NO_NUMBERS, "none", "inf", "-inf", "99999999999", "-7", "3 3")
    )
    return f"{name}{mark}{' '.join(words)}"


_MAKERS = {
    "linear": lambda rng, n: {"coef": _weights(rng, n), "intercept": _weight(rng)},
    "feature": lambda rng, n: {"index": rng.randrange(n), "sign": rng.choice((1, -1))},
    "stumps": _stumps,
    "kernel": _kernel,
    "network": _network,
    "trees": _lightgbm,
}
