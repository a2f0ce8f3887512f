"""The function that exports a model to any target: it checks, builds all files, and writes them together."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote, suggest
from rankwright.basics.file_groups import write_files_atomic
from rankwright.basics.files import StrPath, check_outputs
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.models.export.feature_names import read_names
from rankwright.models.export.parity import write_parity
from rankwright.models.export.target import ExportRequest, Target
from rankwright.models.imports import as_model
from rankwright.models.imports.first_columns import describe_first_column
from rankwright.models.model import Model
from rankwright.scorers.score_parts import ScoreParts, find_least_score, split_scorer

# Targets by name, with their modules in this folder and classes, from the most to the least general.
TARGETS = {
    "onnx": ("to_onnx", "OnnxTarget"),
    "c": ("to_c", "CTarget"),
    "lightgbm": ("to_lightgbm", "LightGBMTarget"),
    "xgboost": ("to_xgboost", "XGBoostTarget"),
    "elasticsearch": ("to_elasticsearch", "ElasticsearchTarget"),
    "opensearch": ("to_opensearch", "OpenSearchTarget"),
    "elastic": ("to_elastic", "ElasticTarget"),
    "solr": ("to_solr", "SolrTarget"),
    "vespa": ("to_vespa", "VespaTarget"),
    "ranklib": ("to_ranklib", "RankLibTarget"),
}


def export(
    fitted: Any,
    to: str,
    path: StrPath,
    *,
    names: Mapping[str, str] | StrPath | None = None,
    model_name: str | None = None,
    shift: bool = False,
    data: Queries | None = None,
) -> list[Path]:
    """Export a model to a search engine or another library, with a parity file that proves its scores.

    Parameters
    ----------
    fitted : Ranker, Model, or a model of another library
        The model.
    to : str
        The target, such as "elasticsearch", "solr" or "onnx".
    path : str or Path
        The file to write the model to. Files beside it have its name with an addition, such as ".parity.json".
    names : mapping, str or Path, optional
        The names of features in the target, by their names in the model, or a CSV file with lines feature,name;
        features that are not in it keep theirs.
    model_name : str, optional
        The name of the model in the target; by default that of the file, up to its first dot.
    shift : bool
        Whether to add a constant that makes all scores 0 or more, as rescoring in Elasticsearch needs.
    data : Queries, optional
        Documents, some of which the parity file takes.

    Returns
    -------
    list of Path
        The files that were written: the model, the files beside it, and the parity file.

    Notes
    -----
    What the user must know, such as an intercept that is left out, is logged: ``logging.basicConfig(level="INFO")``
    shows it.
    """
    contents, notes = build_files(*(fitted, to, path), names=names, model_name=model_name, shift=shift, data=data)
    check_outputs({str(own): own for own in contents}, [])
    write_files_atomic(contents)
    for note in notes:
        logging.getLogger("rankwright").info("%s", note)
    return list(contents)


def build_files(
    fitted: Any,
    to: str,
    path: StrPath,
    *,
    names: Mapping[str, str] | StrPath | None = None,
    model_name: str | None = None,
    shift: bool = False,
    data: Queries | None = None,
) -> tuple[dict[Path, bytes], list[str]]:
    """Return the contents of all files of an export, by path, and sentences for the user; write nothing."""
    model, target, path = as_model(fitted), find_target(to), Path(path)
    if path.suffix in (".gz", ".xz"):
        raise InputError(f"{path}: files for {target.title} are not compressed; expected another name")
    if data is not None and not isinstance(data, Queries):
        raise InputError(f"data: found an object of {type(data).__name__}; expected Queries, as rw.read_letor returns")
    if isinstance(names, (str, PathLike)):
        names = read_names(names, name_features(model.features, model.n_features))
    request = make_request(model, target, path, names, model_name)
    added = _shift_scores(request.parts) if shift else 0.0
    files = target.build(request)
    if shift and files.offset:
        raise InputError(f"shift (--shift): {target.title} has no place for a constant in such a model; leave it out")
    parity = write_parity(model, target, request, files, added, data)
    contents = {"": files.model, **files.beside, ".parity.json": parity}
    notes = [*describe_first_column(model), *_describe_unmapped(model, names), *files.notes]
    return {path.with_name(path.name + addition): content for addition, content in contents.items()}, notes


def _describe_unmapped(model: Model, names: Mapping[str, str] | None) -> list[str]:
    """Return a note about the features that a mapping of names leaves as they are; none without a mapping."""
    left = [name for name in name_features(model.features, model.n_features) if name not in names] if names else []
    some = ", ".join(left[:4]) + (", ..." if len(left) > 4 else "")
    return [f"{len(left)} of {model.n_features} features are not in the names and keep theirs: {some}"] if left else []


def find_target(name: str) -> Target:
    """Return the target of this name; raise InputError if there is none."""
    if name not in TARGETS:
        raise InputError(f"target {quote(name)}; {suggest(str(name), TARGETS)}")
    module, kind = TARGETS[name]
    found: Target = getattr(import_module(f"rankwright.models.export.{module}"), kind)()
    return found


def make_request(
    model: Model, target: Target, path: Path, names: Mapping[str, str] | None, model_name: str | None
) -> ExportRequest:
    """Return the model as the target takes it; raise InputError if it cannot, with the nearest target that can."""
    if model.scaling is not None:
        raise InputError(
            f"this {model.ranker} model scales features within each query, which {target.title} cannot do, nor any "
            'other target; train it with scale="standard"'
        )
    parts = split_scorer(model.scorer, model.n_features)
    _check_parts(parts, target)
    mapped = _map_names(tuple(name_features(model.features, model.n_features)), names or {})
    target.check_names(mapped)
    called = path.name.partition(".")[0] if model_name is None else model_name
    if not isinstance(called, str) or not called:
        raise InputError(f"the name {quote(called)} of the model; expected a text: give one with model_name= (--name)")
    return ExportRequest(parts, mapped, called, path.name, model.categories, model.params)


def _map_names(own: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the features in the target; raise InputError if they are not texts that differ."""
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"names={quote(names)}; expected texts by feature, such as {{{own[0]!r}: 'bm25'}}")
    unknown = [name for name in names if name not in own]
    if unknown:
        raise InputError(f"names: the model has no feature {quote(unknown[0])}; {suggest(str(unknown[0]), own)}")
    found: dict[str, str] = {}  # the features by their names in the target
    for feature in own:
        name = names.get(feature, feature)
        if name in found:
            raise InputError(
                f"{quote(name)} is the name of the features {found[name]} and {feature} in the target; expected names "
                "that differ: give one of them another with names= (--names)"
            )
        found[name] = feature
    return tuple(found)


def _check_parts(parts: ScoreParts, target: Target) -> None:
    """Raise InputError if a target cannot hold these parts, with the reason and the nearest target that can."""
    obstacle = target.find_obstacle(parts)
    if obstacle is None:
        return
    others = [find_target(name) for name in dict.fromkeys((*target.nearby, *TARGETS)) if name != target.name]
    able = [other.name for other in others if other.find_obstacle(parts) is None]
    nearest = f"the nearest target that can is {able[0]}" if able else "no target can"
    raise InputError(f"{target.title} cannot hold {obstacle}; {nearest}")


def _shift_scores(parts: ScoreParts) -> float:
    """Add to the intercept what makes the least score 0 or more, and return it; raise InputError if there is none.

    Rounding in float32 may lower a score; the constant has room for that.
    """
    least = find_least_score(parts)
    if least is None:
        kinds = " and ".join(sorted(parts.merged_kinds))
        raise InputError(
            f"shift (--shift) with a {kinds} model, whose scores have no least value; expected trees or stumps: "
            "leave it out and let the query add a constant"
        )
    trees = parts.list_trees()
    largest = sum(float(np.abs(tree.values).max()) for tree in trees) + abs(parts.intercept) + abs(least)
    added = (len(trees) + 4) * 2.0**-24 * largest - least
    parts.intercept += added
    return added
