"""Models of Elastic's native learning to rank, which needs no plugin."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.errors import InputError, quote
from rankwright.models.export.ltr_plugin import PARAMETER, PLACEHOLDER, check_range, check_texts
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_trees import Tree, make_leaf
from rankwright.scorers.score_parts import ScoreParts

_MODEL_ID = re.compile(r"[a-z0-9](?:[a-z0-9_\-.]{0,62}[a-z0-9])?")
_LARGEST = float(np.finfo(np.float64).max)


class ElasticTarget(Target):
    """The trained models of Elasticsearch 8.12 and later: trees that are added up in double precision.

    The score of a document is rounded to float32 at the end. Elasticsearch 8.19, 9.0.1 and later add a constant to all
    scores if one may be negative. The file has that constant, so that all versions return the same scores.
    """

    name: ClassVar[str] = "elastic"
    title: ClassVar[str] = "Elastic's native learning to rank"
    takes: ClassVar[frozenset[str]] = frozenset({"stumps", "trees"})
    precision: ClassVar[str] = "float32"
    nearby: ClassVar[tuple[str, ...]] = ("elasticsearch",)
    reasons: ClassVar[Mapping[str, str]] = {
        "linear": "it has trees only",
        "categories": "a split compares a feature with one number",
        "network": "it has trees only",
        "kernel sum": "it has trees only",
        "sum": "it has trees only",
    }

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if a name is empty, or has characters that no request can hold."""
        check_texts(names, self.title)

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the body of the request that creates the model, and its feature extractors as a skeleton."""
        if not _MODEL_ID.fullmatch(request.model_name):
            raise InputError(
                f"the name {quote(request.model_name)} of the model; {self.title} takes at most 64 lower-case letters, "
                "digits, and between them - _ and dots: give it another with model_name= (--name)"
            )
        trees = request.parts.list_trees()
        constant = _find_constant(request.parts, trees)
        if constant or not trees:
            trees.append(make_leaf(constant))
        check_range(trees, self.title)
        names = list(request.names)
        extractors = [_make_extractor(name) for name in names]
        offset = constant - request.parts.intercept
        return ExportedFiles(
            _write_body(trees, names, extractors),
            {".extractors.json": (json.dumps(extractors, indent=1) + "\n").encode()},
            offset,
            [*_describe_offset(offset), _describe_next(request)],
            _make_scoring_request(request.model_name, names),
        )


def _find_constant(parts: ScoreParts, trees: list[Tree]) -> float:
    """Return the intercept, or what makes the least score 0 if that is more; a little more, as sums are rounded."""
    leaves = [float(tree.values.min()) for tree in trees]
    rounding = 1e-15 * math.fsum(map(abs, leaves))
    return max(parts.intercept, rounding - math.fsum(leaves))


def _write_body(trees: list[Tree], names: list[str], extractors: list[dict[str, Any]]) -> bytes:
    """Return the body: the feature extractors on lines of their own, and then a line for each tree."""
    queries = ",\n".join(map(json.dumps, extractors))
    models = ",\n".join(json.dumps({"tree": _make_tree(tree, names)}, separators=(",", ":")) for tree in trees)
    return (
        f'{{"inference_config":{{"learning_to_rank":{{"feature_extractors":[\n{queries}\n]}}}},\n"definition":'
        f'{{"trained_model":{{"ensemble":{{"feature_names":{json.dumps(names)},"target_type":"regression",'
        f'"aggregate_output":{{"weighted_sum":{{}}}},"trained_models":[\n{models}\n]}}}}}}}}\n'
    ).encode()


def _make_tree(tree: Tree, names: list[str]) -> dict[str, Any]:
    """Return a tree as a list of nodes, splits first: their numbers stay, and leaves follow."""
    n = tree.n_splits
    left, right = (
        [child if child >= 0 else n + ~child for child in tree.columns[f"{side}_child"].tolist()]
        for side in ("left", "right")
    )
    # JSON has no infinity: the largest number splits missing values from all others as well. Elasticsearch takes -0.0
    # as less than 0.0: adding 0.0 changes its sign
    thresholds = (np.minimum(tree.columns["threshold"], _LARGEST) + 0.0).tolist()
    features, missing_left = tree.columns["split_feature"].tolist(), tree.missing_left.tolist()
    splits = [
        {
            "node_index": node,
            "decision_type": "lte",
            "threshold": thresholds[node],
            "split_feature": features[node],
            "default_left": missing_left[node],
            "left_child": left[node],
            "right_child": right[node],
        }
        for node in range(n)
    ]
    leaves = [{"node_index": n + at, "leaf_value": value} for at, value in enumerate(tree.values.tolist())]
    return {"feature_names": names, "target_type": "regression", "tree_structure": [*splits, *leaves]}


def _make_extractor(name: str) -> dict[str, Any]:
    """Return the extractor of a feature whose query is to be filled in."""
    return {"query_extractor": {"feature_name": name, "query": {PLACEHOLDER: {}}}}


def _describe_offset(offset: float) -> list[str]:
    """Return a sentence about the constant that makes all scores 0 or more."""
    if offset < 1e-9:
        return []
    return [f"{offset:.6g} is added to all scores, so that none is negative; rankings are the same"]


def _describe_next(request: ExportRequest) -> str:
    """Return a sentence that says how to create the model."""
    return (
        f"to create the model, fill in the queries of feature_extractors in {request.file_name} and send it to "
        f"_ml/trained_models/{request.model_name} with PUT; a feature without an extractor would always be missing"
    )


def _make_scoring_request(model_name: str, names: list[str]) -> dict[str, Any]:
    """Return the search for documents with their features and scores, and a way to score given values.

    Features of documents are the scores of named queries. For given values, the same definition is a regression model,
    which takes documents in a request.
    """
    named = [{"bool": {"must": {PLACEHOLDER: {}}, "_name": name}} for name in names]
    rescorer = {"model_id": model_name, "params": {PARAMETER: "KEYWORDS"}}
    search = {
        "size": 100,
        "query": {"bool": {"filter": {"ids": {"values": ["DOCUMENT_ID"]}}, "should": named}},
        "rescore": {"window_size": 100, "learning_to_rank": rescorer},
    }
    path = "/INDEX/_search?include_named_queries_score=true"
    return {
        "documents": {"method": "POST", "path": path, "body": search},
        "rows": {"inference_config": {"regression": {}}, "input": {"field_names": names}},
    }
