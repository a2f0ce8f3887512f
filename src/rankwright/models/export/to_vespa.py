"""Vespa: trees as LightGBM's JSON, linear models as ranking expressions, all others as ONNX; with a rank profile."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.models.export.to_onnx import INPUT, OUTPUT, write_onnx
from rankwright.models.export.vespa_trees import list_category_values, write_lightgbm_json
from rankwright.scorers.score_parts import ScoreParts

_MODEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_ARGUMENTS = r"\((?:[^()\"'#\s]|\([^()\"'#\s]*\))*\)"
_NAME = re.compile(rf"[A-Za-z_@][A-Za-z0-9_@]*(?:{_ARGUMENTS})?(?:\.[A-Za-z0-9_.]+)?", re.ASCII)
# Words of ranking expressions, which are no features unless arguments follow.
_WORDS = """
    if in switch case default f true false abs acos asin atan ceil cos cosh elu exp fabs floor isNan log log10 relu
    round sigmoid sign sin sinh square sqrt tan tanh erf atan2 fmod ldexp pow bit hamming map reduce join merge rename
    concat tensor range diag random matmul softmax argmax argmin expand avg count max median min prod sum
"""
_MAX_DEPTH = 900  # of a tree: Vespa's JSON reader takes 1,000 levels
_ADDITIONS = {"trees": ".json", "linear": ".expression", "onnx": ".onnx"}


class VespaTarget(Target):
    """The models of Vespa: LightGBM JSON, ranking expressions or ONNX, and a rank profile that computes the score.

    Vespa keeps leaves of large tree models in float32, and ONNX returns float32; all else is in double precision.
    """

    name: ClassVar[str] = "vespa"
    title: ClassVar[str] = "Vespa"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees", "categories", "network", "kernel sum"})
    mixes: ClassVar[bool] = True

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if a name is not that of a rank feature, such as bm25(title), or of a function."""
        for name in names:
            if not _NAME.fullmatch(name) or name in _WORDS.split():
                raise InputError(
                    f"the feature {quote(name)}; Vespa takes rank features such as bm25(title) or attribute(clicks), "
                    "or names of functions of a rank profile: give it such a name with names= (--names)"
                )

    def find_obstacle(self, parts: ScoreParts) -> str | None:
        """Return which of the parts Vespa cannot hold, and the reason; None if it can hold them all."""
        if parts.networks or parts.kernel_sums:
            return None
        if any(tree.depth > _MAX_DEPTH for tree in parts.trees):
            return f"trees of more than {_MAX_DEPTH} levels: its JSON reader refuses them"
        by_category = set(list_category_values(parts.trees, None))
        numbers = {int(f) for tree in parts.trees for f in tree.columns["split_feature"][~tree.categorical]}
        numbers |= {int(f) for stumps in parts.stumps for f in stumps.feature}
        numbers |= set() if parts.coef is None else set(np.flatnonzero(parts.coef).tolist())
        if by_category & numbers:
            return "a feature that is both a category and a number: its features are one of both"
        return None

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the model, and the rank profile that uses it."""
        name, parts = request.model_name, request.parts
        if not _MODEL_NAME.fullmatch(name):
            raise InputError(
                f"the name {quote(name)} of the model; Vespa takes letters, digits and underscores, a letter first: "
                "give it another with model_name"
            )
        trees, blocks = parts.list_trees(), ""
        if parts.networks or parts.kernel_sums:
            kind, model = "onnx", write_onnx(request)
            blocks, expression = _write_onnx_blocks(request), f"sum(onnx({name}).{OUTPUT})"
        elif trees or parts.coef is None:
            _check_values(request)
            kind, model = "trees", write_lightgbm_json(trees, parts.intercept, request.names, request.categories)
            terms = [] if parts.coef is None else _list_terms(parts.coef, request.names)
            expression = _join_terms([f'lightgbm("{name}.json")', *terms])
        else:
            kind = "linear"
            expression = _join_terms([*_list_terms(parts.coef, request.names), repr(parts.intercept)])
            model = f"{expression}\n".encode()
        profile = _write_profile(request, kind, blocks, expression)
        notes = [_describe_next(request, kind), *_describe_missing(request)]
        return ExportedFiles(model, {".profile.txt": profile.encode()}, 0.0, notes, _make_scoring_request(name))


def _check_values(request: ExportRequest) -> None:
    """Raise InputError if the value of a category cannot be a text in a ranking expression."""
    for feature, values in list_category_values(request.parts.trees, request.categories).items():
        wrong = [value for value in values if isinstance(value, str) and (not value or set(value) & set('"\\'))]
        if wrong:
            raise InputError(
                f"the category {quote(wrong[0])} of the feature {quote(request.names[feature])}; Vespa takes texts "
                "that are not empty and have no quotation marks and backslashes: rename it and train the model again"
            )


def _list_terms(coef: Floats, names: tuple[str, ...]) -> list[str]:
    """Return the terms of a linear function; a missing feature, which is NaN in Vespa, counts as 0."""
    return [
        f"{weight!r} * if(isNan({name}), 0, {name})"
        for weight, name in zip(coef.tolist(), names, strict=True)
        if weight
    ]


def _join_terms(terms: list[str]) -> str:
    """Return the sum of terms, a line for each."""
    return " +\n".join(terms)


def _write_onnx_blocks(request: ExportRequest) -> str:
    """Return the blocks of a rank profile that give the features to an ONNX model."""
    name, width = request.model_name, request.parts.n_features
    features = ",\n".join(f"                {own}" for own in request.names)
    return f"""\
    onnx-model {name} {{
        file: models/{name}.onnx
        input "{INPUT}": {name}_{INPUT}
        output "{OUTPUT}": {OUTPUT}
    }}

    function {name}_{INPUT}() {{
        expression {{
            tensor<float>(d0[1],d1[{width}]):[[
{features}
            ]]
        }}
    }}

"""


def _write_profile(request: ExportRequest, kind: str, blocks: str, expression: str) -> str:
    """Return a rank profile whose first phase is the model's score, and whose hits have the features beside them."""
    name = request.model_name
    plain = [own for own in request.names if re.fullmatch(r"[\w@]+", own)]
    functions = "".join(f"    function {own}() {{\n        expression: attribute({own})\n    }}\n\n" for own in plain)
    hint = "    # Define these features; attributes are a guess.\n" if plain else ""
    lines = expression.replace("\n", "\n            ")
    features = "".join(f"        {own}\n" for own in request.names)
    return f"""\
# {_describe_next(request, kind)}.
rank-profile {name} {{
{hint}{functions}{blocks}    first-phase {{
        expression {{
            {lines}
        }}
    }}

    match-features {{
{features}    }}
}}
"""


def _describe_next(request: ExportRequest, kind: str) -> str:
    """Return a sentence that says what to do with the files."""
    place = (
        f"copy {request.file_name} to models/{request.model_name}{_ADDITIONS[kind]} of the application package, and "
    )
    profile = f"the block of {request.file_name}.profile.txt into the schema"
    return f"{place}{profile}" if kind != "linear" else f"copy {profile}; it has the whole model"


def _describe_missing(request: ExportRequest) -> list[str]:
    """Return sentences about missing values and categories."""
    parts = request.parts
    notes = []
    if parts.trees or any(stumps.allow_nan for stumps in parts.stumps):
        notes.append(
            "an attribute without a value is missing (NaN), but a rank feature of a field that does not match has a "
            "default, mostly 0: train on what match-features returns"
        )
    if parts.kinds & {"categories"}:
        needs_numbers = bool(parts.networks or parts.kernel_sums) or request.categories is None
        form = "the number of its value in the model's list, from 0" if needs_numbers else "its value, a string"
        notes.append(f"a feature with categories must be {form}")
    return notes


def _make_scoring_request(name: str) -> dict[str, Any]:
    """Return the query whose hits have their features (matchfeatures) and scores (relevance)."""
    body = {"yql": "select * from sources * where userQuery()", "query": "KEYWORDS", "ranking": name, "hits": 100}
    return {"method": "POST", "path": "/search/", "body": body}
