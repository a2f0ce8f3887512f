"""Solr's learning to rank models, which ``/schema/model-store`` takes: linear, additive trees, neural network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.solr_networks import choose_scaling, find_network_obstacle, join_networks
from rankwright.models.export.solr_thresholds import ABOVE_ZERO_SPLIT
from rankwright.models.export.solr_trees import DEEP, PACKAGE, build_norm, build_trees, round_to_float32
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.score_parts import ScoreParts

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
                    "give it another with names= (--names)"
                )

    def find_obstacle(self, parts: ScoreParts) -> str | None:
        """Return which of the parts it cannot hold and why; networks need activations that Solr has."""
        return super().find_obstacle(parts) or find_network_obstacle([network for _, network in parts.networks])

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the model, and beside it a feature store with a placeholder for each feature."""
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", request.model_name):
            raise InputError(
                f"the name {quote(request.model_name)} of the model; Solr's queries take letters, digits, '_', '-' and "
                "'.': give it another with model_name= (--name)"
            )
        notes: list[str] = []
        gaps: list[tuple[int, float, float]] = []
        offset, has_missing, parts = 0.0, False, request.parts
        if parts.coef is not None:
            entries = _build_linear(parts.coef, request.names)
            if parts.intercept:
                offset = -parts.intercept
                notes.append(
                    f"the intercept {parts.intercept:.6g} is left out, since Solr has none; rankings are the same"
                )
        elif parts.networks:
            entries = _build_network(parts, request.names)
        else:
            built = build_trees(parts, request.names)
            entries, has_missing = built.entries, built.has_missing
            if built.depth > DEEP:
                stack = "start Solr with SOLR_JAVA_STACK_SIZE=-Xss1m"
                notes.append(f"trees of {built.depth} levels need a larger stack: {stack}")
            gaps = [(column, 0.0, ABOVE_ZERO_SPLIT) for column in built.moved_splits]
            if gaps:
                some = ", ".join(request.names[column] for column in built.moved_splits[:4])
                more = ", ..." if len(gaps) > 4 else ""
                notes.append(f"values of {some}{more} between 0 and 1e-35 are above 0 in Solr, and 0 in the model")
        content = {"store": request.model_name, "name": request.model_name, **entries}
        model = json.dumps(content, separators=(",", ":")).encode()
        beside = {".features.json": json.dumps(_build_features(request, has_missing), indent=1).encode()}
        notes += _write_notes(has_missing, len(model))
        return ExportedFiles(model, beside, offset, notes, _build_query(request), gaps)


def _build_linear(coef: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a LinearModel."""
    weights = [float(str(weight)) for weight in round_to_float32(coef, "weight")]
    return {
        "class": f"{PACKAGE}.model.LinearModel",
        "features": [{"name": name} for name in names],
        "params": {"weights": dict(zip(names, weights, strict=True))},
    }


def _build_network(parts: ScoreParts, names: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a NeuralNetworkModel; scaling is left to Solr's normalizers, which lose fewer digits."""
    mean, deviation = choose_scaling(parts.networks[0][1])
    layers = join_networks(parts.networks, parts.intercept, mean, deviation)
    return {
        "class": f"{PACKAGE}.model.NeuralNetworkModel",
        "features": [{"name": name, **build_norm(*scale)} for name, *scale in zip(names, mean, deviation, strict=True)],
        "params": {
            "layers": [
                {
                    "matrix": [_list_numbers(row) for row in round_to_float32(matrix, "weight")],
                    "bias": _list_numbers(round_to_float32(bias, "bias")),
                    "activation": activation,
                }
                for matrix, bias, activation in layers
            ]
        },
    }


def _build_features(request: ExportRequest, has_missing: bool) -> list[dict[str, Any]]:
    """Return a feature store whose features take their values from the request, to be replaced by real ones."""
    default = {"defaultValue": "NaN"} if has_missing else {}
    return [
        {
            "store": request.model_name,
            "name": name,
            "class": f"{PACKAGE}.feature.ValueFeature",
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
        "the feature store has placeholders, which take values from the request (efi): replace each with a SolrFeature "
        "or a FieldValueFeature before you serve the model"
    ]
    notes.append(
        'the model knows missing values: keep "defaultValue": "NaN" in every feature; it needs Solr 9.2 or later'
        if has_missing
        else 'the model takes a missing value as 0: no feature may have "defaultValue": "NaN"'
    )
    if size > _MAX_BYTES:
        notes.append(
            f"the model has {size / _MAX_BYTES:.1f} MB, more than ZooKeeper holds by default: put the file on Solr's "
            "resource path and upload a DefaultWrapperModel that names it"
        )
    return notes


def _list_numbers(values: Floats) -> list[float]:
    """Return float32 numbers as floats whose text is the shortest that identifies them."""
    return [float(str(value)) for value in values]
