"""The function that exports a model to any target: it checks, builds all files, and writes them together."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, check_outputs, write_atomic_binary
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.models.export.parity import write_parity
from rankwright.models.export.score_parts import ScoreParts, find_least_score, split_scorer
from rankwright.models.export.target import ExportRequest, Target
from rankwright.models.imports import as_model
from rankwright.models.model import Model

# Targets by name, with their modules in this folder and classes, from the most to the least general.
TARGETS = {
    "onnx": ("to_onnx", "OnnxTarget"),
    "lightgbm": ("to_lightgbm", "LightGBMTarget"),
}


def export(
    fitted: Any,
    to: str,
    path: StrPath,
    *,
    names: Mapping[str, str] | None = None,
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
    names : mapping, optional
        The names of features in the target, by their names in the model; features that are not in it keep theirs.
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
    """
    model, target, path = as_model(fitted), find_target(to), Path(path)
    request = make_request(model, target, path, names, model_name)
    if shift:
        _shift_scores(request.parts, target)
    files = target.build(request)
    contents = {"": files.model, **files.beside, ".parity.json": write_parity(model, target, request, files, data)}
    paths = [path.with_name(path.name + addition) for addition in contents]
    check_outputs({str(own): own for own in paths}, [])
    for own, content in zip(paths, contents.values(), strict=True):
        with write_atomic_binary(own) as file:
            file.write(content)
    return paths


def find_target(name: str) -> Target:
    """Return the target of this name; raise InputError if there is none."""
    if name not in TARGETS:
        raise InputError(f"target {quote(name)}; expected one of {', '.join(TARGETS)}")
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
    own = tuple(name_features(model.features, model.n_features))
    unknown = [name for name in names or {} if name not in own]
    if unknown:
        raise InputError(f"a name for the feature {quote(unknown[0])}, which the model does not have")
    mapped = tuple((names or {}).get(name, name) for name in own)
    target.check_names(mapped)
    return ExportRequest(parts, mapped, model_name or path.name.partition(".")[0], path.name, model.categories)


def _check_parts(parts: ScoreParts, target: Target) -> None:
    """Raise InputError if a target cannot hold these parts, with the reason and the nearest target that can."""
    lacking = sorted(parts.kinds - target.takes)
    is_mixed = len(parts.families) > 1 and not target.mixes
    if not lacking and not is_mixed:
        return
    others = [find_target(name) for name in TARGETS if name != target.name]
    able = [o.name for o in others if parts.kinds <= o.takes and (o.mixes or len(parts.families) < 2)]
    what = (
        f"a sum of {' and '.join(sorted(parts.families))}" if not lacking else f"a model with {' and '.join(lacking)}"
    )
    reason = target.reasons.get(lacking[0] if lacking else "sum", "its format has no place for it")
    nearest = f"the nearest target that can is {able[0]}" if able else "no target can"
    raise InputError(f"{target.title} cannot hold {what}: {reason}; {nearest}")


def _shift_scores(parts: ScoreParts, target: Target) -> None:
    """Add to the intercept what makes the least score 0; raise InputError if scores have no least value."""
    least = find_least_score(parts)
    if least is None:
        families = " and ".join(sorted(parts.families))
        raise InputError(
            f"shift with a {families} model, whose scores have no least value; expected trees or stumps: leave it out "
            "and let the query add a constant"
        )
    parts.intercept -= least
