"""The models of the learning to rank plugin, which Elasticsearch and OpenSearch share: trees and linear functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.float32_thresholds import raise_to_next_float32
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_trees import Tree, make_leaf
from rankwright.scorers.score_parts import ScoreParts, find_least_score

PLACEHOLDER = "REPLACE_WITH_THE_QUERY_OF_THIS_FEATURE"  # no engine has such a query: what is forgotten is an error
PARAMETER = "keywords"
_MAX_DEPTH = 490  # of a tree: the engines read JSON up to 1,000 levels deep, two for each split
_MAX_FEATURES = 10_000
_MAX_NAME = 500  # bytes of the name of a model, which is stored as a document with the id model-NAME
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which UTF-8 has no bytes for
_LARGEST = float(np.finfo(np.float32).max)
_INFINITY = "1e39"  # the engines read it as the float32 infinity


class PluginTarget(Target):
    """The common part of the two plugins: trees or linear functions in float32, by the names of features.

    Attributes
    ----------
    zero_versions : str
        The versions in which a missing value is 0, whatever a split says.
    right_versions : str, optional
        The versions in which a missing value takes the branch ``no`` of every split, whatever it says. No way of
        writing a split changes that: ``no`` is always the branch of larger values.
    """

    zero_versions: ClassVar[str]
    right_versions: ClassVar[str | None] = None
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees"})
    precision: ClassVar[str] = "float32"
    reasons: ClassVar[Mapping[str, str]] = {
        "categories": "a split compares a feature with one number",
        "network": "it has linear functions and trees only, and the networks of RankLib end in a sigmoid",
        "kernel sum": "it has linear functions and trees only",
        "sum": "a model is either a linear function or trees",
    }

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError unless the names can be those of a feature set."""
        if len(names) > _MAX_FEATURES:
            raise InputError(f"{len(names)} features; a feature set of {self.title} has at most {_MAX_FEATURES}")
        check_texts(names, self.title)

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the body of the request that creates the model, and a skeleton of its feature set."""
        name = request.model_name
        if not 0 < len(name.encode(errors="replace")) <= _MAX_NAME or _LONE_SURROGATE.search(name):
            raise InputError(
                f"the name {quote(name)} of the model; {self.title} takes 1 to {_MAX_NAME} bytes: give it another with "
                "model_name= (--name)"
            )
        parts, notes, offset = request.parts, [], 0.0
        if parts.coef is not None:
            kind, definition = "model/linear", _write_linear(parts.coef, request.names, self.title)
            offset = -parts.intercept
            notes = self._describe_linear(parts)
        else:
            trees = parts.list_trees()
            if parts.intercept or not trees:
                trees.append(make_leaf(parts.intercept))
            kind, definition = "model/xgboost+json", _write_trees(trees, request.names, self.title)
            notes = [*self._describe_missing(trees), *_describe_negative(parts)]
        head = f'{{"model":{{"name":{json.dumps(name)},"model":{{"type":"{kind}","definition":'
        features = {"featureset": {"features": [_make_template(own) for own in request.names]}}
        notes.append(
            f"to create the model, send {request.file_name} to _ltr/_featureset/FEATURESET/_createmodel, where "
            f"FEATURESET has features of these names; if there is none, fill in {request.file_name}.featureset.json"
        )
        return ExportedFiles(
            f"{head}{definition}}}}}}}\n".encode(),
            {".featureset.json": (json.dumps(features, indent=1) + "\n").encode()},
            offset,
            notes,
            _make_scoring_request(request),
        )

    def _describe_missing(self, trees: list[Tree]) -> list[str]:
        """Return a sentence about missing values if some versions score documents that have them differently."""
        splits = [tree for tree in trees if tree.n_splits]
        is_zero = all((tree.missing_left == (tree.columns["threshold"] >= 0.0)).all() for tree in splits)
        is_right = not any(tree.missing_left.any() for tree in splits)
        wrong = [] if is_zero else [f"{self.zero_versions}, where a missing value is 0"]
        if self.right_versions and not is_right:
            wrong.append(f"{self.right_versions}, where it takes the branch of large values")
        if not wrong:
            return []
        way_out = (
            "there, let every feature's query match all documents, with 0 where it has no value: the scores are then "
            "those of all versions"
            if is_zero
            else "use a later version, or train with 0 in place of missing values"
        )
        return [f"documents that lack a feature are scored differently in {', and in '.join(wrong)}; {way_out}"]

    def _describe_linear(self, parts: ScoreParts) -> list[str]:
        """Return sentences about what a linear model of the plugin lacks."""
        notes = [f"features that a document lacks are 0 in a linear model of {self.title}"]
        if parts.intercept:
            notes.append(
                f"the intercept {parts.intercept:.6g} is left out, since {self.title} has none; rankings are the same"
            )
        return [*notes, "scores may be negative: let the search add a constant if it combines them with others"]


def check_texts(names: tuple[str, ...], title: str) -> None:
    """Raise InputError if a name is empty, or has characters that no request can hold."""
    for at, name in enumerate(names):
        if not name or _LONE_SURROGATE.search(name):
            raise InputError(
                f"feature {at + 1} has the name {quote(name)}, which {title} refuses; rename it with names= (--names)"
            )


def check_range(trees: list[Tree], title: str) -> None:
    """Raise InputError if scores of trees may be too large for float32."""
    if math.fsum(float(np.abs(tree.values).max()) for tree in trees) > _LARGEST:
        raise InputError(f"scores of trees beyond {_LARGEST:.1e}, which {title} cannot hold in float32")


def _write_trees(trees: list[Tree], names: tuple[str, ...], title: str) -> str:
    """Return the definition of a sum of trees; raise InputError if one is too deep or too large for float32."""
    for at, tree in enumerate(trees):
        if tree.depth > _MAX_DEPTH:
            raise InputError(
                f"tree {at + 1} is {tree.depth} splits deep; {title} reads at most {_MAX_DEPTH}: train with max_depth"
            )
    check_range(trees, title)
    keys = [json.dumps(name) for name in names]
    lines = ",\n".join(_write_tree(tree, keys) for tree in trees)
    return f'{{"splits":[\n{lines}\n]}}'


def _write_tree(tree: Tree, keys: list[str]) -> str:
    """Return a tree as nested splits; the text of a child is made before that of its parent."""
    n = tree.n_splits
    columns = {name: tree.columns[name].tolist() for name in ("split_feature", "left_child", "right_child")}
    depth = [0] * n
    for node, children in enumerate(zip(columns["left_child"], columns["right_child"], strict=True)):
        for child in children:
            if child >= 0:
                depth[child] = depth[node] + 1
    thresholds, missing_left = _write_limits(tree.columns["threshold"]), tree.missing_left.tolist()
    leaves = [f'{{"nodeid":{n + at},"leaf":{value}}}' for at, value in enumerate(_write_float32(tree.values))]
    texts = [""] * n
    for node in reversed(range(n)):
        left, right = columns["left_child"][node], columns["right_child"][node]
        yes, no = (child if child >= 0 else n + ~child for child in (left, right))
        below = ",".join(texts[child] if child >= 0 else leaves[~child] for child in (left, right))
        texts[node] = (
            f'{{"nodeid":{node},"depth":{depth[node]},"split":{keys[columns["split_feature"][node]]},'
            f'"split_condition":{thresholds[node]},"yes":{yes},"no":{no},"missing":{yes if missing_left[node] else no},'
            f'"children":[{below}]}}'
        )
    return texts[0] if n else leaves[0]


def _write_limits(thresholds: Floats) -> list[str]:
    """Return for each threshold t the number c for which ``x < c`` in float32 is ``x <= t``."""
    limits = raise_to_next_float32(thresholds)
    return [text if limit < np.inf else _INFINITY for limit, text in zip(limits, _write_float32(limits), strict=True)]


def _write_float32(values: Floats) -> list[str]:
    """Return the shortest text of each number that reads back as the same float32."""
    return [str(value) for value in values.astype(np.float32)]


def _write_linear(coef: Floats, names: tuple[str, ...], title: str) -> str:
    """Return the definition of a linear function: a weight by name."""
    if np.abs(coef).max(initial=0.0) > _LARGEST:
        raise InputError(f"a weight of {np.abs(coef).max():.3g}, which {title} cannot hold in float32")
    pairs = zip(names, _write_float32(coef), strict=True)
    return "{\n" + ",\n".join(f"{json.dumps(name)}:{weight}" for name, weight in pairs) + "\n}"


def _describe_negative(parts: ScoreParts) -> list[str]:
    """Return a sentence about negative scores where there may be some."""
    least = find_least_score(parts)
    if least is None or least >= -1e-6 * max(1.0, abs(parts.intercept)):
        return []
    return [
        f"scores may be as low as {least:.6g}: documents that a rescoring window leaves out keep their own scores, and "
        "may be ranked above negative ones; export with shift (--shift) to make all scores 0 or more"
    ]


def _make_template(name: str) -> dict[str, Any]:
    """Return a feature of a feature set whose query is to be filled in."""
    return {"name": name, "params": [PARAMETER], "template_language": "mustache", "template": {PLACEHOLDER: {}}}


def _make_scoring_request(request: ExportRequest) -> dict[str, Any]:
    """Return the search for documents with their logged features and scores, and a feature set that takes given values.

    A feature of that set is a quotient of two parameters of the search, a value and 1. It is missing if both are 0.
    """
    ranking = {"sltr": {"_name": "logged", "model": request.model_name, "params": {PARAMETER: "KEYWORDS"}}}
    documents = {"terms": {"_id": ["DOCUMENT_ID"]}}
    search = {
        "size": 100,
        "query": {"bool": {"filter": [documents], "must": [ranking]}},
        "ext": {"ltr_log": {"log_specs": {"name": "main", "named_query": "logged"}}},
    }
    features = [_make_given_feature(at, name) for at, name in enumerate(request.names)]
    return {
        "documents": {"method": "POST", "path": "/INDEX/_search", "body": search},
        "rows": {"featureset": {"features": features}},
    }


def _make_given_feature(at: int, name: str) -> dict[str, Any]:
    """Return a feature whose value is given in the search, by its number in the rows of the parity file."""
    params = [f"row_value_{at}", f"row_has_{at}"]
    return {"name": name, "params": params, "template_language": "derived_expression", "template": "/".join(params)}
