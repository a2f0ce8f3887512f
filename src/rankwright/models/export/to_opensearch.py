"""Models of the learning to rank plugin of OpenSearch, whose versions differ in missing values."""

from __future__ import annotations

from typing import ClassVar

from rankwright.models.export.ltr_plugin import PluginTarget
from rankwright.scorers.lightgbm_trees import Tree


class OpenSearchTarget(PluginTarget):
    """The learning to rank plugin of OpenSearch.

    A missing value is 0 before version 3.2, takes the branch ``no`` of every split from 3.2 to 3.7, and the branch that
    a split names from 3.8 on. No way of writing a split changes that: ``no`` is always the branch of larger values.
    """

    name: ClassVar[str] = "opensearch"
    title: ClassVar[str] = "OpenSearch"

    def describe_missing(self, trees: list[Tree]) -> list[str]:
        """Return sentences that name the versions whose scores of documents with missing values differ."""
        splits = [tree for tree in trees if tree.n_splits]
        is_zero = all((tree.missing_left == (tree.columns["threshold"] >= 0.0)).all() for tree in splits)
        is_right = not any(tree.missing_left.any() for tree in splits)
        if is_right and is_zero:
            return []
        wrong = [
            *(() if is_zero else ("before 3.2, where a missing value is 0",)),
            *(() if is_right else ("3.2 to 3.7, where it takes the branch of large values",)),
        ]
        way_out = (
            "there, let every feature's query match all documents, with 0 where it has no value: the scores are then "
            "those of all versions"
            if is_zero
            else "use 3.8 or later, or train with 0 in place of missing values"
        )
        return [f"documents that lack a feature are scored differently in OpenSearch {' and '.join(wrong)}; {way_out}"]
