"""Sums of regression trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.kernels.scorers.tree_scores import compute_block_scores, compute_tree_scores, find_leaves
from rankwright.runtime.backends import Backend, count_threads, resolve
from rankwright.scorers.base import Scorer
from rankwright.scorers.lightgbm_text import Forest

_MAX_DEPTH = 4_096  # LightGBM's SHAP values take memory that is quadratic in the depth
_LARGE = 10_000_000  # values of features times trees: below it LightGBM gets one thread
_ROWS = 16_384  # documents that a thread scores at a time
_FEW = 2  # documents from which on many are scored at a time


@dataclass(frozen=True, slots=True, eq=False)
class Trees(Scorer):
    """A scorer that is a sum of regression trees, grown by LightGBM.

    Scores equal LightGBM's to the last bit, and are computed without LightGBM.

    Parameters
    ----------
    forest : Forest
        The trees.

    Examples
    --------
    >>> Trees(Forest.constant(3))(np.zeros((2, 3), np.float32)).tolist()
    [0.0, 0.0]
    """

    kind: ClassVar[str] = "trees"
    forest: Forest

    @property
    def allow_nan(self) -> bool:
        """Whether it can score documents with missing features: every split has a side for them."""
        return True

    @property
    def trees(self) -> Trees:
        """The scorer itself: it is a sum of trees."""
        return self

    @property
    def categorical(self) -> frozenset[int]:
        """The features that a tree splits by category."""
        return self.forest.categorical

    def __call__(self, X: Floats) -> Floats:
        """Return the sums of the values of the trees, added in the order of the trees."""
        if not self.accepts(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; the trees were trained on {self.forest.n_features}")
        if len(X) <= _ROWS:
            return self._score_rows(X)
        parts = [X[start : start + _ROWS] for start in range(0, len(X), _ROWS)]
        return np.concatenate(resolve(None).each(self._score_rows, parts))

    def _score_rows(self, X: Floats) -> Floats:
        """Return the scores of documents, on the calling thread."""
        forest = self.forest
        if len(X) < _FEW or X.dtype != np.float32 or not X.flags.c_contiguous:
            return compute_tree_scores(X, forest.nodes)
        return compute_block_scores(X, forest.nodes, forest.layout)

    def __len__(self) -> int:
        return len(self.forest)

    def slice_terms(self, start: int, stop: int) -> Trees:
        """Return the sum of the trees ``start`` to ``stop``."""
        forest = self.forest
        trees = forest.trees[start:stop]
        return Trees(replace(forest, trees=trees) if trees else Forest.constant(forest.n_features))

    def accepts(self, n_features: int) -> bool:
        """Return whether there are as many features as in training."""
        return self.forest.n_features == n_features

    def leaves(self, X: Floats, backend: Backend | None = None) -> Ints:
        """Return for each tree (a row) the leaf of each document (a column), counted from 0."""
        nodes = self.forest.nodes
        most = int(np.diff(nodes.first_leaf).max())
        out = np.empty((len(self), len(X)), dtype=np.uint8 if most <= 256 else np.uint16)
        starts = range(0, len(X), _ROWS)
        found = resolve(backend)
        found.each(lambda i: find_leaves(X[i : i + _ROWS], nodes, out[:, i : i + _ROWS]), starts)
        return out

    def importance(self, kind: str = "gain") -> Floats:
        """Return for each feature the summed gain of its splits, or their number (``kind="split"``)."""
        if kind not in ("gain", "split"):
            raise InputError(f"kind={kind!r}; expected 'gain' or 'split'")
        total = np.zeros(self.forest.n_features)
        for tree in self.forest.trees:
            gain = tree.columns["split_gain"]
            np.add.at(total, tree.columns["split_feature"], gain if kind == "gain" else np.ones(len(gain)))
        return total

    def booster(self) -> Any:
        """Return the trees as a Booster of LightGBM."""
        return require("lightgbm").Booster(model_str=self.forest.text())

    def contributions(self, X: Floats) -> Floats:
        """Return the SHAP value of each feature for each document, computed by LightGBM.

        A last column holds the mean score, so that each row adds up to the score of its document.
        """
        trees = self.forest.trees
        if any(tree.depth > _MAX_DEPTH for tree in trees):
            raise InputError(f"a tree of more than {_MAX_DEPTH} levels; expected less deep ones for SHAP values")
        if any((tree.columns[name] < 1).any() for tree in trees for name in ("leaf_count", "internal_count")):
            raise InputError("trees without the number of documents in each leaf; expected counts for SHAP values")
        threads = count_threads(resolve(None)) if X.size * len(trees) > _LARGE else 1
        found: Floats = self.booster().predict(X, pred_contrib=True, num_threads=threads)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the trees as LightGBM's model text."""
        return {"lightgbm": self.forest.text()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trees:
        """Read what ``to_json`` wrote."""
        text = values["lightgbm"]
        if not isinstance(text, str):
            raise InputError(f"a {type(text).__name__} in place of LightGBM's text")
        return cls(Forest.from_text(text))
