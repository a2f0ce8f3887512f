"""Solr's learning to rank models, which ``/schema/model-store`` takes: linear, additive trees, neural network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.score_parts import ScoreParts
from rankwright.models.export.solr_networks import choose_scaling, find_network_obstacle, join_networks
from rankwright.models.export.solr_thresholds import (
    ThresholdScaling,
    choose_scaling_of_thresholds,
    list_inexact_thresholds,
)
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

_PACKAGE = "org.apache.solr.ltr"
_MAX_DEPTH = 500  # of a tree: Solr builds nodes inside each other on its stack
_MAX_BYTES = 1 << 20  # of all models of a collection, where ZooKeeper keeps them
_RERANKED = 100  # documents that the scoring request asks for


class SolrTarget(Target):
    """The model store of Solr: float32 sums, and trees whose thresholds Solr raises by a slack."""

    name: ClassVar[str] = "solr"
    title: ClassVar[str] = "Solr"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees", "network"})
    reasons: ClassVar[Mapping[str, str]] = {
        "categories": "its trees compare numbers only",
        "kernel sum": "it has linear models, trees and neural networks only",
        "sum": "a model of Solr is linear, or trees, or a neural network",
    }

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError for a name that Solr's log of features cannot hold."""
        for name in names:
            if not name or any(mark in name for mark in ",=") or not name.isprintable():
                raise InputError(
                    f"the name {quote(name)} of a feature; Solr separates logged features by commas and equals signs: "
                    "give it another with names"
                )

    def find_obstacle(self, parts: ScoreParts) -> str | None:
        """Return which of the parts it cannot hold and why; networks need activations that Solr has."""
        return super().find_obstacle(parts) or find_network_obstacle([network for _, network in parts.networks])

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the model, and beside it a feature store with a placeholder for each feature."""
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", request.model_name):
            raise InputError(
                f"the model name {quote(request.model_name)}; expected letters, digits, '_', '-' and '.', for queries "
                "of Solr: pass model_name"
            )
        notes: list[str] = []
        gaps: list[tuple[int, float, float]] = []
        offset, has_missing, parts = 0.0, False, request.parts
        if parts.coef is not None:
            entries = _build_linear(parts.coef, request.names)
            if parts.intercept:
                offset = -parts.intercept
                notes.append(f"Solr's LinearModel has no intercept: its scores lack {parts.intercept!r}.")
        elif parts.networks:
            entries = _build_network(parts, request.names)
        else:
            trees = parts.list_trees()
            if parts.intercept or not trees:
                trees.append(make_leaf(parts.intercept))
            has_missing = any((tree.missing_left != (tree.columns["threshold"] >= 0.0)).any() for tree in trees)
            scalings = _choose_scalings(trees, request.names)
            entries = _build_trees(trees, request.names, scalings, has_missing)
            for column in [column for column, own in scalings.items() if own.moves_zero_split]:
                name = request.names[column]
                notes.append(f"Values of {name} between 0 and 1e-35, which LightGBM takes for 0, are above 0 in Solr.")
                gaps.append((column, 0.0, 1.01e-35))
        content = {"store": request.model_name, "name": request.model_name, **entries}
        model = json.dumps(content, separators=(",", ":")).encode()
        beside = {".features.json": json.dumps(_build_features(request, has_missing), indent=1).encode()}
        notes += _write_notes(has_missing, len(model))
        return ExportedFiles(model, beside, offset, notes, _build_query(request), gaps)


def _build_linear(coef: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a LinearModel."""
    weights = [float(str(weight)) for weight in _round_to_float32(coef, "weight")]
    return {
        "class": f"{_PACKAGE}.model.LinearModel",
        "features": [{"name": name} for name in names],
        "params": {"weights": dict(zip(names, weights, strict=True))},
    }


def _build_trees(
    trees: Sequence[Tree], names: Sequence[str], scalings: Mapping[int, ThresholdScaling], has_missing: bool
) -> dict[str, Any]:
    """Return the entries of a MultipleAdditiveTreesModel."""
    params: dict[str, Any] = {"isNullSameAsZero": False} if has_missing else {}
    factors = [scalings.get(column, ThresholdScaling()).exponent for column in range(len(names))]
    roots = [_build_tree(tree, names, scalings, has_missing) for tree in trees]
    return {
        "class": f"{_PACKAGE}.model.MultipleAdditiveTreesModel",
        "features": [{"name": name, **_build_norm(0.0, 2.0**-e)} for name, e in zip(names, factors, strict=True)],
        "params": {**params, "trees": [{"weight": "1", "root": root} for root in roots]},
    }


def _choose_scalings(trees: Sequence[Tree], names: Sequence[str]) -> dict[int, ThresholdScaling]:
    """Return for each feature that trees split what it is multiplied by; raise InputError if Solr cannot hold it."""
    feature = np.concatenate([tree.columns["split_feature"] for tree in trees])
    threshold = np.concatenate([tree.columns["threshold"] for tree in trees])
    found = {}
    for column in np.unique(feature).tolist():
        own = np.unique(threshold[feature == column])
        scaling = choose_scaling_of_thresholds(own)
        if scaling is None:
            some = ", ".join(map(str, list_inexact_thresholds(own)[:4]))
            raise InputError(
                f"Solr cannot hold the thresholds {some} of feature {quote(names[column])}: it adds 1e-6 to them, and "
                f"the feature has others up to {np.abs(own[np.isfinite(own)]).max():.3g}; scale or cut its values and "
                "train again; the nearest target that can is elasticsearch"
            )
        found[column] = scaling
    return found


def _build_tree(
    tree: Tree, names: Sequence[str], scalings: Mapping[int, ThresholdScaling], has_missing: bool
) -> dict[str, Any]:
    """Return the root of a tree, with its nodes inside it."""
    if tree.depth > _MAX_DEPTH:
        raise InputError(f"Solr cannot hold a tree of {tree.depth} levels; expected at most {_MAX_DEPTH}")
    leaves = [{"value": str(value)} for value in _round_to_float32(tree.values, "leaf")]
    feature, left, right = (tree.columns[name].tolist() for name in ("split_feature", "left_child", "right_child"))
    thresholds, sides = tree.columns["threshold"], tree.missing_left.tolist()
    nodes: list[dict[str, Any]] = [{} for _ in feature]
    for i in reversed(range(len(nodes))):  # a child has a larger number than its parent
        threshold = scalings[feature[i]].write(thresholds[i : i + 1])[0]
        nodes[i] = {
            "feature": names[feature[i]],
            "threshold": "Infinity" if np.isinf(threshold) else str(threshold),
            **({"missing": "left" if sides[i] else "right"} if has_missing else {}),
            "left": nodes[left[i]] if left[i] >= 0 else leaves[~left[i]],
            "right": nodes[right[i]] if right[i] >= 0 else leaves[~right[i]],
        }
    return nodes[0] if nodes else leaves[0]


def _build_network(parts: ScoreParts, names: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a NeuralNetworkModel; scaling is left to Solr's normalizers, which lose fewer digits."""
    mean, deviation = choose_scaling(parts.networks[0][1])
    layers = join_networks(parts.networks, parts.intercept, mean, deviation)
    return {
        "class": f"{_PACKAGE}.model.NeuralNetworkModel",
        "features": [
            {"name": name, **_build_norm(*scale)} for name, *scale in zip(names, mean, deviation, strict=True)
        ],
        "params": {
            "layers": [
                {
                    "matrix": [_list_numbers(row) for row in _round_to_float32(matrix, "weight")],
                    "bias": _list_numbers(_round_to_float32(bias, "bias")),
                    "activation": activation,
                }
                for matrix, bias, activation in layers
            ]
        },
    }


def _build_norm(mean: float, deviation: float) -> dict[str, Any]:
    """Return the entry of a normalizer, (x - mean) / deviation; none if it changes nothing."""
    if mean == 0.0 and deviation == 1.0:
        return {}
    params = {"avg": str(np.float32(mean)), "std": str(np.float32(deviation))}
    return {"norm": {"class": f"{_PACKAGE}.norm.StandardNormalizer", "params": params}}


def _build_features(request: ExportRequest, has_missing: bool) -> list[dict[str, Any]]:
    """Return a feature store whose features take their values from the request, to be replaced by real ones."""
    default = {"defaultValue": "NaN"} if has_missing else {}
    return [
        {
            "store": request.model_name,
            "name": name,
            "class": f"{_PACKAGE}.feature.ValueFeature",
            "params": {"value": f"${{{_name_parameter(name, i)}}}", "required": True, **default},
        }
        for i, name in enumerate(request.names)
    ]


def _build_query(request: ExportRequest) -> dict[str, Any]:
    """Return the query that reranks documents and logs their features, whose response ``rankwright check`` reads."""
    return {
        "method": "GET",
        "path": "/solr/COLLECTION/select",
        "params": {
            "q": "QUERY",
            "rq": f"{{!ltr model={request.model_name} reRankDocs={_RERANKED} efi.text='QUERY'}}",
            "fl": f"id,score,[features store={request.model_name} format=dense]",
            "rows": _RERANKED,
        },
    }


def _name_parameter(name: str, column: int) -> str:
    """Return the name of the request's parameter (efi) for a feature."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"f{column + 1}"


def _write_notes(has_missing: bool, size: int) -> list[str]:
    """Return what the user must know about the files."""
    notes = [
        "The feature store has placeholders, which take values from the request (efi): replace each with a SolrFeature "
        "or a FieldValueFeature before you serve the model."
    ]
    if has_missing:
        notes.append(
            'The model knows missing values: keep "defaultValue": "NaN" in every feature. It needs Solr 9.2 or later.'
        )
    if size > _MAX_BYTES:
        notes.append(
            f"The model has {size / _MAX_BYTES:.1f} MB, more than ZooKeeper holds by default: put the file on Solr's "
            "resource path and upload a DefaultWrapperModel that names it."
        )
    return notes


def _round_to_float32(values: Floats, what: str) -> Floats:
    """Return numbers in float32; raise InputError if one is too large."""
    with np.errstate(over="ignore"):
        found = np.asarray(values, np.float64).astype(np.float32)
    if not np.isfinite(found).all():
        raise InputError(f"a {what} of {np.abs(values).max():.3g}; Solr computes in float32, up to 3.4e38")
    return found


def _list_numbers(values: Floats) -> list[float]:
    """Return float32 numbers as floats whose text is the shortest that identifies them."""
    return [float(str(value)) for value in values]
