"""LightGBM's model text, which ``lightgbm.Booster(model_file=...)`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rankwright.basics.errors import InputError, quote
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_text import Forest, are_valid_names
from rankwright.scorers.lightgbm_trees import make_leaf


class LightGBMTarget(Target):
    """The model text of LightGBM: trees in double precision, with its own comparison and missing values."""

    name: ClassVar[str] = "lightgbm"
    title: ClassVar[str] = "LightGBM"
    takes: ClassVar[frozenset[str]] = frozenset({"stumps", "trees", "categories"})
    precision: ClassVar[str] = "float64"
    reasons: ClassVar[Mapping[str, str]] = dict.fromkeys(("linear", "network", "kernel sum"), "it holds trees only")

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if LightGBM refuses a name: one with spaces, quotes, brackets, a comma, a colon or =."""
        for name in names:
            if not are_valid_names([name]):
                raise InputError(f"LightGBM refuses the name {quote(name)} of a feature; give it another with names")

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the text; an intercept is a tree without splits."""
        trees = request.parts.list_trees()
        if request.parts.intercept or not trees:
            trees.append(make_leaf(request.parts.intercept))
        forest = Forest.from_trees(trees, request.parts.n_features).with_names(request.names)
        return ExportedFiles(forest.text().encode())
