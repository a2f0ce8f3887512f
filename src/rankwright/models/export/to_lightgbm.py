"""LightGBM's model text, which ``lightgbm.Booster(model_file=...)`` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import Categories, list_categorical
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_text import Forest, are_valid_names
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

_ZERO = float(np.float32(1e-35))  # values up to here, of either sign, become 0 before LightGBM compares them
_NEAR_ZERO = 1.01e-35


class LightGBMTarget(Target):
    """The model text of LightGBM: trees in double precision, with its own comparison and missing values."""

    name: ClassVar[str] = "lightgbm"
    title: ClassVar[str] = "LightGBM"
    takes: ClassVar[frozenset[str]] = frozenset({"stumps", "trees", "categories"})
    precision: ClassVar[str] = "float64"
    nearby: ClassVar[tuple[str, ...]] = ("xgboost",)
    reasons: ClassVar[Mapping[str, str]] = dict.fromkeys(("linear", "network", "kernel sum"), "it holds trees only")

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if LightGBM refuses a name: one with spaces, quotes, brackets, a comma, a colon or =."""
        for name in names:
            if not are_valid_names([name]):
                raise InputError(
                    f"LightGBM refuses the name {quote(name)} of a feature; give it another with names= (--names)"
                )

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the text; an intercept is a tree without splits."""
        trees = request.parts.list_trees()
        if request.parts.intercept or not trees:
            trees.append(make_leaf(request.parts.intercept))
        forest = Forest.from_trees(trees, request.parts.n_features).with_names(request.names)
        near_zero = _list_features_split_near_zero(trees)
        some = ", ".join(request.names[feature] for feature in near_zero)
        notes = [f"LightGBM takes values from -1e-35 to 1e-35 as 0; thresholds of {some} are there"] if some else []
        gaps = [gap for feature in near_zero for gap in ((feature, 0.0, _NEAR_ZERO), (feature, -_NEAR_ZERO, 0.0))]
        text = forest.text()
        if request.categories is not None:
            text = _add_categories(text, request.categories)
            notes.append("give LightGBM a data frame whose columns of categories have texts, or the numbers of these")
        return ExportedFiles(text.encode(), notes=notes, gaps=gaps)


def _add_categories(text: str, categories: Categories) -> str:
    """Return LightGBM's text with the values of categories, and the columns that they belong to."""
    columns = list_categorical(categories)
    listed = f"parameters:\n[categorical_feature: {','.join(map(str, columns))}]\n"
    values = json.dumps([categories[column] for column in columns])
    return text.replace("parameters:\n", listed, 1) + f"\npandas_categorical:{values}\n"


def _list_features_split_near_zero(trees: Sequence[Tree]) -> list[int]:
    """Return the features with a threshold that separates 0 from values which LightGBM takes as 0."""
    found: set[int] = set()
    for tree in trees:
        threshold = tree.columns["threshold"]
        is_near = (threshold >= -_ZERO) & (threshold < _ZERO) & ~tree.categorical
        found.update(tree.columns["split_feature"][is_near].tolist())
    return sorted(found)
